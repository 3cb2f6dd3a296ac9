import numpy as np
import paddle

x = paddle.to_tensor(np.array([np.inf, np.nan, 1], np.float32).reshape(1, 1, 1, 3))
print(*(paddle.nn.functional.max_pool2d(x, [1, 3], return_mask=mask)[0].numpy().ravel() for mask in (False, True)))
# got [1.] [inf]
