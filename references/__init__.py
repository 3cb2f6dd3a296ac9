"""The reference: the operator family as data, its geometry, exact sums, the criterion and the contract.

Nothing here knows a framework, a device or pytest. It takes and returns numpy arrays, with ml_dtypes for bfloat16.
"""
