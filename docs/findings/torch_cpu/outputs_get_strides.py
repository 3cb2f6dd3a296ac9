import torch

x, base = torch.tensor([5.0, 6.0]).view(1, 1, 1, 1, 2), torch.zeros(1, 1, 1, 1, 4)
out, indices = base[..., ::2], torch.zeros(1, 1, 1, 1, 2, dtype=torch.long)
torch.ops.aten.max_pool3d_with_indices.out(x, 1, out=out, indices=indices)
print(out.stride(), out.equal(x), base.flatten().tolist())  # got (2, 2, 2, 2, 1) True [5.0, 6.0, 0.0, 0.0]
