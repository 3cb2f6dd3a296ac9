"""The truth: the operator family as data, its geometry, exact sums, the criterion and the contract.

Nothing here knows a framework, a device or pytest: numpy (with ml_dtypes for bfloat16) in, numpy out.
"""
