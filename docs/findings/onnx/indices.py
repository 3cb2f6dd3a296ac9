import numpy as np
from onnx.helper import make_node
from onnx.reference import ReferenceEvaluator

x = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
for stride in (1, 2):
    node = make_node("MaxPool", ["x"], ["out", "indices"], kernel_shape=[2, 2], strides=[stride] * 2)
    print(ReferenceEvaluator(node).run(None, {"x": x})[1].ravel().tolist())
# got [6, 6]
# got [3, 7]
