import mlx.core as mx
import mlx.nn as nn

for value, padding in ((1.0, 0), (-mx.inf, 1)):
    pool = nn.MaxPool1d(2, 1, padding)
    x = mx.full((1, 3, 1), value)
    print(mx.grad(lambda x: pool(x).sum())(x).flatten().tolist())
# got [0.5, 1.0, 0.5]
# got [1.0, 1.0, 1.0]
