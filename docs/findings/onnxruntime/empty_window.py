import numpy as np
import onnx
import onnxruntime

node = onnx.helper.make_node(
    "MaxPool", ["x"], ["out", "indices"], kernel_shape=[2, 1], pads=[1, 0, 1, 0], dilations=[2, 1]
)
shapes = [onnx.helper.make_tensor_value_info(n, t, [None] * 4) for n, t in (("x", 1), ("out", 1), ("indices", 7))]
graph = onnx.helper.make_graph([node], "pool", shapes[:1], shapes[1:])
model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 12)], ir_version=8)
session = onnxruntime.InferenceSession(model.SerializeToString())
print([array.ravel().tolist() for array in session.run(None, {"x": np.ones((1, 1, 1, 1), np.float32)})])
# got [[-3.4028234663852886e+38], [-2]]
