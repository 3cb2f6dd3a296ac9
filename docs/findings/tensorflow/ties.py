import tensorflow as tf


def gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        out = tf.nn.max_pool3d(x, (1, 1, 1, 2, 1), (1, 1, 1, 2, 1), "VALID")
    return tape.gradient(out, x)


x = tf.ones((1, 1, 1, 2, 1))
print(gradient(x).numpy().ravel().tolist(), tf.function(gradient)(x).numpy().ravel().tolist())
# got [1.0, 1.0] [1.0, 0.0]
