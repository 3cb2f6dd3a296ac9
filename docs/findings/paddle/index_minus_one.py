import numpy as np
import paddle

paddle.disable_signal_handler()
for planes in [0.0, np.nan], [np.nan]:
    cells = np.repeat(np.array(planes, np.float32), 4).reshape(1, -1, 2, 2)
    x = paddle.to_tensor(cells, stop_gradient=False)
    out, mask = paddle.nn.functional.max_pool2d(x, 2, return_mask=True)
    out.sum().backward()  # dies of a corrupted heap, the second time
    print(mask.numpy().ravel().tolist(), x.grad.numpy().ravel().tolist(), flush=True)
# got [0, -1] [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
