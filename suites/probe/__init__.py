"""The model probe: how an implementation computes, found out from its outputs alone.

For each operator, dtype and memory format it finds how gradients are added and rounded, what becomes of subnormals,
overflow and signed zeros, whether repetitions agree, and by which rules a forward picks its index. It knows what a
backend declares only to say where the declaration disagrees.
"""
