"""The aclnn operators of an Ascend NPU through ctypes: two-phase calls on device memory we own.

libraries   which shared objects to load, in the order that CANN installations need, and their symbols
prototypes  the C prototypes of everything called here
status      status numbers: their names, and which of them blame the environment
device      the AscendCL runtime: device, streams, guarded device memory, options, versions
calls       a call as the library gets it described
execution   the two-phase call and the objects that it takes; low-level calls, legal or not
sequences   actions on executors, streams, threads and memory around calls
backend     all of that behind the `Backend` interface
"""
