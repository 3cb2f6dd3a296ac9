import numpy as np
import tinygrad

for cells in ([np.nan, np.inf], [np.inf, np.nan]):
    x = tinygrad.Tensor(np.array(cells, np.float32).reshape(1, 1, 1, 2))
    print([tensor.flatten().tolist() for tensor in x.max_pool2d((1, 2), return_indices=True)])
# got [[nan], [2]]
# got [[inf], [0]]
