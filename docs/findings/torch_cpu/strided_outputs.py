import torch

x, out = torch.tensor([5.0, 6.0]).view(1, 1, 1, 1, 2), torch.zeros(1, 1, 1, 1, 4)[..., ::2]
indices = torch.zeros(1, 1, 1, 1, 2, dtype=torch.long)
torch.ops.aten.adaptive_max_pool3d.out(x, [1, 1, 2], out=out, indices=indices)
print(out.flatten().tolist())  # got [5.0, 0.0]
