import torch

x, indices = torch.zeros(1, 1, 1, 1, 2), torch.tensor([0, 0, 1, 0]).view(1, 1, 1, 1, 4)[..., ::2]
gradient = torch.ones(1, 1, 1, 1, 2)
print(torch.ops.aten.adaptive_max_pool3d_backward(gradient, x, indices).flatten().tolist())  # got [2.0, 0.0]
