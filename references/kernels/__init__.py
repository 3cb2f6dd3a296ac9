"""Compiled loops over one plane: exact sums, admissible outputs, forward maxima, and one-pass judgement.

The source also runs uncompiled, and tests compare it with exact fractions. A `compiled` function and its helpers belong
in this folder: a change of its sources invalidates the cache of compiled code.
"""
