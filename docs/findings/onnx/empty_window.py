import numpy as np
from onnx.helper import make_node
from onnx.reference import ReferenceEvaluator

for rank in (2, 3):
    others = [0] * (rank - 1)
    node = make_node(
        "MaxPool",
        ["x"],
        ["out", "indices"],
        kernel_shape=[2] + [1] * (rank - 1),
        pads=([1] + others) * 2,
        dilations=[2] + [1] * (rank - 1),
    )
    made = ReferenceEvaluator(node).run(None, {"x": np.ones((1, 1, *(1,) * rank), np.float32)})
    print(*(array.ravel().tolist() for array in made))
# got [0.0] [-1]
# got [nan] [-3]
