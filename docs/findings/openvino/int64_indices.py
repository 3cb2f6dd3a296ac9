import numpy as np
import openvino
from openvino import opset14

x = opset14.parameter([1, 1, 2], np.float32)
pool = opset14.adaptive_max_pool(x, opset14.constant(np.array([1])))
try:
    openvino.compile_model(openvino.Model(pool.outputs(), [x]), "CPU")
except RuntimeError as error:
    print(*(line for line in str(error).splitlines() if "i64" in line))
# got CPU plugin does not support i64 for use with oneDNN.
