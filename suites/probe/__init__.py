"""The model probe: how an implementation computes, as seen from its outputs only.

For each operator, dtype and memory format it finds how gradients are added and rounded, and by which rules a forward
picks its index. It also tests subnormals, overflow, signed zeros and repetitions. It uses a backend's declaration only
to report disagreements.
"""
