import numpy as np
import paddle

paddle.disable_signal_handler()
x = paddle.to_tensor(np.ones((1, 2, 3, 3), np.float32), stop_gradient=False)
out, mask = paddle.nn.functional.max_pool2d(x, 1, 3, ceil_mode=True, return_mask=True)
out.sum().backward()  # dies of a corrupted heap, in the end
print(mask.numpy().ravel().tolist(), x.grad.numpy().reshape(2, 9)[:, [0, 8]].tolist(), flush=True)
# got [0, -1, -1, -1, 0, -1, -1, -1] [[1.0, 3.0], [1.0, 0.0]]
