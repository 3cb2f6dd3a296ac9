import torch
import torch.nn.functional as F

x = torch.ones(1, 1, 1, 1 << 22, requires_grad=True)
y, indices = F.max_pool2d(x, (2, 1), 1, (1, 0), (2, 1), return_indices=True)
print(indices.max().item(), flush=True)  # got 8388607
y.sum().backward()  # dies
