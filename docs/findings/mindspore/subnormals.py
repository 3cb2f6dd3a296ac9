import numpy as np
from mindspore import Tensor, ops

for batch in (1, 64):
    x = np.zeros((batch, 1, 2, 2), np.float32)
    x[:, 0, 1, 1] = 1e-40
    out, indices = ops.adaptive_max_pool2d(Tensor(x), 1, return_indices=True)
    print(out.asnumpy().ravel()[-1], indices.asnumpy().ravel()[-1])
# got 1e-40 3
# got 0.0 0
