import tensorflow as tf


@tf.function
def gradient(x):
    return tf.gradients(tf.nn.max_pool3d(x, (1, 1, 1, 257, 1), (1, 1, 1, 1, 1), "VALID"), x)[0]


x = tf.cast(tf.reshape(tf.range(257), (1, 1, 1, 257, 1)) > 255, tf.bfloat16)
print(min(float(tf.reduce_sum(gradient(x))) for _ in range(100)))
# got 0.0
