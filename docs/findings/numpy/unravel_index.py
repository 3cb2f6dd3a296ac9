import numpy as np

rows, _ = np.unravel_index(np.arange(9000).reshape(9000, 1), (9000, 1))
print(rows[8193, 0])  # got 8192
