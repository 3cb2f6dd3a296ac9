"""The specification as loops over one plane, compiled: sums, what is admissible, and the verdict, in one pass.

The same source runs uncompiled, which is how it is held against fractions. Every function here that is `compiled` has
its helpers here, too: the cache of compiled code knows by the sources of this folder whether it is up to date.
"""
