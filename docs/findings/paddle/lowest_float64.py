import numpy as np
import paddle

x = paddle.to_tensor(np.full((1, 1, 2, 2), -1e39))
print(*(array.numpy().ravel().tolist() for array in paddle.nn.functional.max_pool2d(x, 2, return_mask=True)))
# got [-3.4028234663852886e+38] [-1]
