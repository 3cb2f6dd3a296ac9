"""What frameworks declare whose threads take subnormal numbers for zero, in comparisons as in sums.

As the probe found it of JAX and TensorFlow. float16, whose arithmetic is emulated in a wider dtype, does not feel it.
"""

from __future__ import annotations

from poolproof.references.accumulation import NATIVE, AccumulationModel

SUMS = {
    "float64": AccumulationModel("acc32", flushes_subnormals=True),
    "float32": AccumulationModel("acc32", flushes_subnormals=True),
    "float16": NATIVE,
    "bfloat16": AccumulationModel("native", flushes_subnormals=True),
}


def flushes(dtype: str) -> bool:
    """Whether subnormal cells count as zero."""
    return dtype != "float16"
