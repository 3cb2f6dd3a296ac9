"""aclnn's ABI implemented on the CPU, so that everything above it runs without an NPU.

The library answers as the real one does: same symbols, same statuses, same life cycles, one choice of kernel per
geometry and product. It is not the real one: device memory is host memory, times mean nothing, numbers of cores and
sizes of buffers only decide how work is cut. The order of the bits in the blocked mask of the mask operators (kernels
of one cell, and every kernel of the 910) is not published: on A2 and A3 the emulator has one of its own, on the 910
and 310P the kernel counts as not installed.

Folders are the libraries of the real thing: ``ascendcl`` the runtime, ``nnopbase`` tensors and executors, ``opapi``
the operators. ``opapi_math`` (copies and casts) and ``op_compiler`` (options, and stubs that abort with their name)
are for torch_npu, and are built for ``poolproof emulator env`` only. Read once by a loaded library:

POOLPROOF_EMULATOR_PRODUCT    A2 (default), A3, 950; 910, 310P and 310B refuse what they refuse
POOLPROOF_EMULATOR_MEMORY     bytes of device memory, per device (8 GiB)
POOLPROOF_EMULATOR_DEVICES    number of devices (1)
POOLPROOF_EMULATOR_VERSION    version of CANN to report (9.0.0)
POOLPROOF_EMULATOR_DEFECTS    seeded defects, ids separated by commas (none); ``ascendcl/seeds.def`` lists them
POOLPROOF_EMULATOR_SYSTEM_WORKSPACE    bytes of every workspace that the runtime of the 950 keeps for itself (16 MiB)
DISABLE_L2_CACHE, ACLNN_CACHE_LIMIT    as the real library has them

Another library may honestly add in another way, which these imitate (``ascendcl/variations.h``):

POOLPROOF_EMULATOR_ORDER           route (each route's own, default), forward, reverse, random, pairwise; random is a
                                   new order with each launch, or a fixed one with determinism on
POOLPROOF_EMULATOR_ACCUMULATION    acc32, native: precision of partial sums, where the route's own is not wanted

and these make it round, flush or choose otherwise, to be recognised:

POOLPROOF_EMULATOR_NARROWING       even (default), away, truncate, up, down: float32 sums to half precision
POOLPROOF_EMULATOR_SUBNORMALS      keep (default), flush, in half precision
POOLPROOF_EMULATOR_OVERFLOW        inf (default), saturate, in half precision
POOLPROOF_EMULATOR_TIES            first (default), last: which of equal maxima a forward chooses
POOLPROOF_EMULATOR_NANS            last (default), first, ignore: which NaN a forward chooses

and by ``build.py``: CXX, XDG_CACHE_HOME, and POOLPROOF_EMULATOR_SANITIZER (address or thread, see ``sanitized.py``).
"""

from poolproof.backends.emulator.build import library

__all__ = ["library"]
