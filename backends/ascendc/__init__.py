"""Kernel sources in Ascend C as backends: compiled against a model of the API that runs on the CPU.

``model`` is the model, in C++; ``cann_launch`` what launches on CANN's; ``host_stub`` what a kernel's own host code is
compiled against; ``ops_nn`` holds manifests of the operator library's kernels. The judge and
its hosts read two environment variables (``SOURCES_VARIABLE``, ``MODEL_VARIABLE`` of `backends.base`):

POOLPROOF_ASCENDC_SOURCES    the folder in which paths of ``ops_nn`` and relative paths of manifests begin
POOLPROOF_ASCENDC_MODEL      ``cann``: the CPU library of CANN in place of ``model``
"""
