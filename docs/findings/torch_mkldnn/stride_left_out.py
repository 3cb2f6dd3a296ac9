import torch
import torch.nn.functional as F

out = F.max_pool2d(torch.ones(1, 1, 4, 4, requires_grad=True).to_mkldnn(), 2)
out.to_dense().sum().backward()
# got RuntimeError: expected stride to be a single integer value or a list of 2 values to match the convolution dimensions, but got stride=[]
