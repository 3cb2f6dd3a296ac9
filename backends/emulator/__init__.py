"""aclnn's ABI implemented on the CPU, so that everything above it runs without an NPU.

The library behaves as the real one: same symbols, statuses and life cycles, and one choice of kernel per geometry and
product. But device memory is host memory, times mean nothing, and numbers of cores and sizes of buffers only decide how
work is split. The bit order in the blocked mask of the mask operators (kernels of one cell, and every kernel of the
910) is not published. On A2 and A3 the emulator has a bit order of its own; on the 910 and 310P the kernel counts as
not installed.

The folders are the real libraries: ``ascendcl`` the runtime, ``nnopbase`` tensors and executors, ``opapi`` the
operators. ``opapi_math`` (copies and casts) and ``op_compiler`` (options, and stubs that abort with their name) are for
torch_npu, and only ``poolproof emulator env`` builds them.

A loaded library reads its environment once: ``POOLPROOF_EMULATOR_*`` of `poolproof.references.variables`. Some
variables choose the machine. Others choose an order or rounding that a correct library may have
(``ascendcl/variations.h``).
"""

from poolproof.backends.emulator.build import library

__all__ = ["library"]
