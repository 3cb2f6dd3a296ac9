import numpy as np
import openvino
from openvino import opset14

x = opset14.parameter([1, 1, 1, 1], np.float32)
pool = opset14.max_pool(x, [1, 1], [2, 1], [1, 0], [1, 0], [2, 1], axis=2)
model = openvino.compile_model(openvino.Model(pool.outputs(), [x]), "CPU")
print(*(array.item() for array in model(np.ones((1, 1, 1, 1), np.float32)).to_tuple()))
# got -3.4028234663852886e+38 0
