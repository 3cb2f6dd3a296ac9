"""What is right: the family as data, its geometry, the exact oracle and the criterion.

Nothing here knows a framework, a device or pytest: numpy (with ml_dtypes for bfloat16) in, numpy out.
"""
