"""The aclnn operators of an Ascend NPU through ctypes: two-phase calls on device memory we own.

libraries   which shared objects to load, in the order that CANN installations need, and their symbols
prototypes  the C prototypes of everything called here
status      status numbers: their names, and which of them blame the environment
device      the AscendCL runtime: device, streams, guarded device memory, options, versions
operands    aclTensor and aclIntArray objects and their lifetimes
execution   the two-phase call
phases      unusual ways through the two phases
streams     the two-phase call among other work on streams
backend     all of that behind the `Backend` protocol
"""
