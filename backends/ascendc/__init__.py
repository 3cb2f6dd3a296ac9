"""Kernel sources in Ascend C as backends: compiled against a model of the API that runs on the CPU.

``model`` is the model, in C++. ``cann_launch`` launches kernels on CANN's library. ``host_stub`` replaces the framework
for a kernel's own host code. ``ops_nn`` holds manifests of the operator library's kernels. The judge and its hosts read
two environment variables (``SOURCES_VARIABLE``, ``MODEL_VARIABLE`` of `backends.base`):

    POOLPROOF_ASCENDC_SOURCES    folder for paths of ``ops_nn`` and relative paths of manifests
    POOLPROOF_ASCENDC_MODEL      ``cann``: use the CPU library of CANN instead of ``model``
"""
