"""Compiled loops over one plane: exact sums, admissible outputs, forward maxima, and their judgement in one pass.

The source also runs uncompiled, and is tested against exact fractions. A `compiled` function and its helpers belong in
this folder: a change of its sources invalidates the cache of compiled code.
"""
