"""Status numbers of AscendCL and aclnn: their names, and those that do not blame the operator.

Sources: the library's page on aclnn return codes and the runtime's error code header.
"""

from __future__ import annotations

NAMES = {
    0: "success",
    100000: "invalid argument",
    100001: "not initialised",
    100002: "already initialised",
    100037: "finalised twice",
    100039: "stub library in use",
    107000: "invalid value",
    107001: "invalid device",
    107002: "no context in this thread",
    107003: "stream of another context",
    107016: "invalid memory type",
    107017: "invalid handle",
    107018: "invalid allocation type",
    107019: "wait timed out",
    107020: "task timed out",
    107021: "option never set",
    161001: "null argument",
    161002: "invalid argument",
    200000: "host allocation failed",
    200001: "API not supported",
    200002: "invalid device",
    200006: "feature not supported",
    207000: "feature not supported",
    207001: "memory allocation failed",
    207002: "memory release failed",
    207003: "overflow reported",
    207004: "no device",
    207005: "resources exhausted",
    207016: "overflow reported",
    207017: "overflow reported",
    207018: "device out of memory",
    300000: "storage limit exceeded",
    361001: "runtime call failed",
    500000: "internal failure",
    500001: "failure",
    500003: "runtime failure",
    507000: "runtime internal error",
    507014: "AI Core timed out",
    507015: "AI Core exception",
    507018: "AI CPU exception",
    507034: "vector core timed out",
    507035: "vector core exception",
    507046: "stream synchronisation timed out",
    507053: "device memory error",
    507899: "driver internal error",
    507901: "connection to the device closed",
    561000: "internal error",
    561001: "shape inference failed",
    561002: "tiling failed",
    561003: "kernel not found",
    561101: "executor not created",
    561102: "executor not released",
    561103: "not supported by any kernel",
    561104: "wrong number of attributes",
    561105: "kernel key conflict",
    561106: "invalid implementation mode",
    561107: "operator package path not set",
    561108: "kernel description not loadable",
    561109: "kernel description incomplete",
    561110: "kernel description has an invalid format",
    561111: "kernel description has an invalid dtype",
    561112: "kernel package not installed",
    561113: "kernel description invalid",
    561114: "too many attributes",
    561115: "attribute too long",
    561116: "too many inputs in kernel description",
    561117: "inputs missing in kernel description",
    561118: "invalid static workspace",
    561119: "invalid static block dimension",
    561201: "invalid handle",
}


PROVES_NOTHING = {
    *(100039, 107001, 200002, 207004, 561003, 561107, 561108, 561112, 507899, 507901),  # not installed, no device
    *(200000, 207001, 207018, 207005),  # no memory
}
"""Statuses that blame the environment, not the operator."""

LOSES_THE_CONTEXT = {507014, 507015, 507018, 507034, 507035, 507046, 507053}
"""Statuses after which the process can make no further calls."""
