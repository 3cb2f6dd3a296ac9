import torch
import torch.nn.functional as F

x = torch.full((1, 33, 4, 4, 4), -torch.inf).to(memory_format=torch.channels_last_3d)
print(F.max_pool3d(x, 2, return_indices=True)[1][0, 32].flatten().tolist())  # got [0, 2, 8, 10, 0, 2, 8, 10]
