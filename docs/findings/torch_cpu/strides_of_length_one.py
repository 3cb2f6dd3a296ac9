import torch
import torch.nn.functional as F

F.max_pool3d(torch.randn(1, 1, 2, 2).permute(0, 3, 1, 2), 1)
# got RuntimeError: Unsupported memory format. Supports only ChannelsLast3d, Contiguous
