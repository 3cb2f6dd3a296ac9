import numpy as np
import onnx
import onnxruntime

for names in (["out"], ["out", "indices"]):
    node = onnx.helper.make_node("MaxPool", ["x"], names, kernel_shape=[1, 2])
    shapes = [onnx.helper.make_tensor_value_info(n, t, [None] * 4) for n, t in zip(["x", *names], (1, 1, 7))]
    graph = onnx.helper.make_graph([node], "pool", shapes[:1], shapes[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 12)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    x = np.array([-np.inf, -np.inf, np.nan, np.nan], np.float32).reshape(1, 2, 1, 2)
    print(session.run(["out"], {"x": x})[0].ravel().tolist())
# got [-3.4028234663852886e+38, -3.4028234663852886e+38]
# got [-inf, nan]
