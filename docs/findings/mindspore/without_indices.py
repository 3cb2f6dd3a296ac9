import numpy as np
from mindspore import Tensor, ops

x = Tensor(np.array([2, np.nan, 1, -np.inf, -np.inf, -np.inf]).reshape(1, 1, 2, 3))
print(ops.MaxPool((1, 3), (1, 3), pad_mode="valid")(x).asnumpy().ravel().tolist())
# got [1.0, -3.4028234663852886e+38]
