import numpy as np
from onnx.helper import make_node
from onnx.reference import ReferenceEvaluator

node = make_node("MaxPool", ["x"], ["out", "indices"], kernel_shape=[3, 3], pads=[1] * 4, ceil_mode=1)
print(ReferenceEvaluator(node).run(None, {"x": np.ones((1, 1, 7, 7), np.float32)})[0].shape)  # got (1, 1, 9, 9)
