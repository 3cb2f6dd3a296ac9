import time

import mindspore
import numpy as np
from mindspore import Tensor, ops
from mindspore.ops.operations import _grad_ops


def seconds(width):
    x = Tensor(np.zeros((1, 1, 12, width), np.float32))
    out, indices = ops.MaxPoolWithArgmaxV2(3, 1, 1, argmax_type=mindspore.int64)(x)
    started = time.process_time()
    _grad_ops.MaxPoolGradWithArgmaxV2(3, 1, 1, argmax_type=mindspore.int64)(x, out, indices).asnumpy()
    return time.process_time() - started


print(seconds(4000) > 6 * seconds(1000))  # got True
