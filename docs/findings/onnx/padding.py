import numpy as np
from onnx.helper import make_node
from onnx.reference import ReferenceEvaluator

for rank, kernel, padding in ((2, [2, 3], [0, 1]), (3, [2, 2, 2], [1, 1, 1])):
    node = make_node("MaxPool", ["x"], ["out", "indices"], kernel_shape=kernel, pads=padding * 2)
    x = np.ones((1, 1, *(6 - rank,) * rank), np.float32)
    print(ReferenceEvaluator(node).run(None, {"x": x})[0].shape, flush=True)
# got (1, 1, 4, 3)
# got IndexError: index 2 is out of bounds for axis 4 with size 2
