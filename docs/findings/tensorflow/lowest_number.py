import numpy as np
import tensorflow as tf

for cells in ([-np.inf, -np.inf], [-np.inf, np.finfo(np.float32).min]):
    x = tf.constant(np.array(cells, np.float32).reshape(1, 1, 1, 2, 1))

    @tf.function
    def gradient(x):
        out = tf.nn.max_pool3d(x, (1, 1, 1, 2, 1), (1, 1, 1, 2, 1), "VALID")
        return out, tf.gradients(out, x)[0]

    print(*(array.numpy().ravel().tolist() for array in gradient(x)))
# got [-3.4028234663852886e+38] [1.0, 0.0]
# got [-3.4028234663852886e+38] [1.0, 0.0]
