import numpy as np
import openvino
from openvino import opset14

lowest = np.finfo(np.float32).min
for v in (-np.inf, lowest, np.nan):
    x = opset14.parameter([1, 1, 1, 2], np.float32)
    pool = opset14.max_pool(x, [1, 1], [1, 1], [0, 0], [0, 0], [1, 1], axis=2)
    other = opset14.adaptive_max_pool(x, opset14.constant(np.array([1, 2])), "i32")
    model = openvino.compile_model(openvino.Model(pool.outputs() + other.outputs(), [x]), "CPU")
    made = model(np.array([1, v], np.float32).reshape(1, 1, 1, 2)).to_tuple()
    print(*(array.ravel().tolist() for array in made))
# got [1.0, -3.4028234663852886e+38] [0, 0] [1.0, -inf] [0, 1]
# got [1.0, -3.4028234663852886e+38] [0, 0] [1.0, -3.4028234663852886e+38] [0, 1]
# got [1.0, -3.4028234663852886e+38] [0, 0] [1.0, nan] [0, 1]
