import mindspore
import numpy as np
from mindspore import Tensor, ops
from mindspore.ops.operations import _grad_ops

x = Tensor(np.full((1, 2, 2, 2), -np.inf, np.float32))
out, indices = ops.MaxPoolWithArgmaxV2(2, argmax_type=mindspore.int64)(x)
print(out.asnumpy().ravel().tolist(), indices.asnumpy().ravel().tolist())
# got [-3.4028234663852886e+38, -3.4028234663852886e+38] [0, 4]
ones = Tensor(np.ones((1, 2, 1, 1), np.float32))
grad = _grad_ops.MaxPoolGradWithArgmaxV2(2, argmax_type=mindspore.int64)(x, ones, indices)
print(grad.asnumpy().ravel().tolist())  # got [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
