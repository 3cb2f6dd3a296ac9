"""Declarations of frameworks whose threads take subnormal numbers for zero, in comparisons and in sums.

The probe found this of JAX and TensorFlow. float16, whose arithmetic is emulated in a wider dtype, is not affected.
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
    return dtype != "float16"
