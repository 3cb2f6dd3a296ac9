import numpy as np
import tinygrad

x = tinygrad.Tensor(np.full((1, 1, 2, 2), np.nan, np.float32))
print([tensor.flatten().tolist() for tensor in x.max_pool2d(return_indices=True)])  # got [[nan], [4]]
x = tinygrad.Tensor.ones(1, 1, 1, 1)
pooled = x.max_pool2d((2, 1), 1, (2, 1), (1, 0), return_indices=True)
print([tensor.flatten().tolist() for tensor in pooled])  # got [[-inf], [-2147483647]]
