import numpy as np
import openvino
from openvino import opset14

for size, windows, number in ((5999, 3000, 2998), (32959, 13363, 580)):
    x = opset14.parameter([1, 1, size], np.float32)
    pool = opset14.adaptive_max_pool(x, opset14.constant(np.array([windows])), "i32")
    model = openvino.compile_model(openvino.Model(pool.outputs(), [x]), "CPU")
    print(model(np.arange(size, dtype=np.float32).reshape(1, 1, size))[1].ravel()[number])
# got 5996
# got 1433
