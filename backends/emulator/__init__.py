"""aclnn's ABI implemented on the CPU, so that everything above it runs without an NPU.

The library answers as the real one does: same symbols, same statuses, same life cycles, one choice of kernel per
geometry and product. It is not the real one: device memory is host memory, times mean nothing, numbers of cores and
sizes of buffers only decide how work is cut. The order of the bits in the blocked mask of the mask operators (kernels
of one cell, and every kernel of the 910) is not published: on A2 and A3 the emulator has one of its own, on the 910
and 310P the kernel counts as not installed.

Folders are the libraries of the real thing: ``ascendcl`` the runtime, ``nnopbase`` tensors and executors, ``opapi``
the operators. ``opapi_math`` (copies and casts) and ``op_compiler`` (options, and stubs that abort with their name)
are for torch_npu, and are built for ``poolproof emulator env`` only.

A loaded library reads its environment once: ``POOLPROOF_EMULATOR_*`` of `poolproof.references.variables`. Some of
these choose the machine, others an honest order or rounding that another library may have (``ascendcl/variations.h``).
"""

from poolproof.backends.emulator.build import library

__all__ = ["library"]
