import torch
import torch.nn.functional as F

pool = torch.compile(lambda x: F.max_pool2d(x, (2, 1), 1, (1, 0), (2, 1), return_indices=True))
out, indices = pool(torch.ones(1, 1, 1, 1, requires_grad=True))
out.sum().backward()  # got RuntimeError: index -1 is out of bounds for dimension 1 with size 1
