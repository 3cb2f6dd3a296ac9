import mindspore
import numpy as np
from mindspore import Tensor, ops
from mindspore.ops.operations import _grad_ops

windows = (2, 1, 1), 1, (1, 0, 0), (2, 1, 1)
x = Tensor(np.ones((2, 1, 1, 1, 1), np.float32))
out, indices = ops.MaxPool3DWithArgmax(*windows, argmax_type=mindspore.int64)(x)
gradient = Tensor(np.array([5, 7], np.float32).reshape(2, 1, 1, 1, 1))
grad = _grad_ops.MaxPool3DGradWithArgmax(*windows)(x, gradient, indices)
print(indices.asnumpy().ravel().tolist(), grad.asnumpy().ravel().tolist())  # got [1, 1] [0.0, 5.0]
