"""aclnn's ABI implemented on the CPU, so that everything above it runs without an NPU.

The library answers as the real one does: same symbols, same statuses, same life cycles, one choice of kernel per
geometry and product. It is not the real one: device memory is host memory, times mean nothing, numbers of cores and
sizes of buffers only decide how work is cut, and the blocked bit mask of the mask operators (kernels of one element,
and every kernel of the 910) is refused in phase one, because its bit order is not published.

Folders are the libraries of the real thing: ``ascendcl`` the runtime, ``nnopbase`` tensors and executors, ``opapi``
the operators. Read once by a loaded library:

POOLPROOF_EMULATOR_PRODUCT    A2 (default), A3, 950; 910, 310P and 310B refuse what they refuse
POOLPROOF_EMULATOR_MEMORY     bytes of device memory, per device (8 GiB)
POOLPROOF_EMULATOR_DEVICES    number of devices (1)
POOLPROOF_EMULATOR_DEFECTS    seeded defects, ids separated by commas (none); ``ascendcl/seeds.def`` lists them
DISABLE_L2_CACHE, ACLNN_CACHE_LIMIT    as the real library has them

and by ``build.py``: CXX, XDG_CACHE_HOME, and POOLPROOF_EMULATOR_SANITIZER (address or thread, see ``sanitized.py``).
"""

from poolproof.backends.emulator.build import BuildFailed, CompilerMissing, library, sanitizer_runtime

__all__ = ["BuildFailed", "CompilerMissing", "library", "sanitizer_runtime"]
