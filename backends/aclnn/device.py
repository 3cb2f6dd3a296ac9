"""An NPU through the AscendCL runtime: streams, memory, options and versions.

Every function that fails raises `AclError` with the library's own text.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.aclnn.libraries import AclnnLibraries
from poolproof.backends.aclnn.prototypes import (
    DEVICE_TO_HOST,
    HBM_MEMORY,
    HOST_TO_DEVICE,
    MALLOC_HUGE_FIRST,
    OPTION_DETERMINISTIC,
    SATURATION,
)
from poolproof.backends.aclnn.status import SUCCESS, AclError, describe
from poolproof.backends.base import BackendUnavailable

_ALREADY_INITIALISED = 100002
_STUB = 100039

SYNCHRONISE_MILLISECONDS = 60_000
"""Time-out of a stream, after which `AclError` 507046 is raised; the case's own is shorter or the user's choice."""


class Device:
    """An initialised device with one stream that is not the default one; ``choose`` picks it from their count.

    `BackendUnavailable` when the runtime is a stub, no device is there or it cannot be opened.
    """

    def __init__(self, libraries: AclnnLibraries, choose: Callable[[int], int]) -> None:
        self._functions = libraries.runtime()
        self.number = self._initialise(choose)
        self.stream = self.pointer("aclrtCreateStream")

    def call(self, function: str, *arguments: object) -> None:
        """Call a runtime function that returns a status."""
        code = self._functions[function](*arguments)
        if code != SUCCESS:
            raise AclError(function, code, self.recent_error())

    def status(self, function: str, *arguments: object) -> int:
        """Call a runtime function and return its status, whatever that is."""
        return int(self._functions[function](*arguments))

    def handle(self, function: str, *arguments: object) -> int:
        """Call a function that returns a pointer; `AclError` when it is null."""
        pointer = self._functions[function](*arguments)
        if not pointer:
            raise AclError(function, 0, self.recent_error() or "returned a null pointer")
        return int(pointer)

    def recent_error(self) -> str:
        """Read and clear this thread's last error: the first line of the library's text, empty when there is none."""
        text = self._functions["aclGetRecentErrMsg"]()
        return text.decode(errors="replace").strip().splitlines()[0] if text and text.strip() else ""

    @property
    def soc_name(self) -> str:
        """Name of the chip, such as ``Ascend910B1``."""
        return (self._functions["aclrtGetSocName"]() or b"").decode()

    @property
    def saturates(self) -> bool:
        """Whether the device clamps overflowing results instead of giving infinities."""
        mode = ctypes.c_int()
        get = self._functions.get("aclrtGetDeviceSatMode")
        return get is not None and get(ctypes.byref(mode)) == SUCCESS and mode.value == SATURATION

    def versions(self) -> dict[str, str]:
        """Read the versions of the runtime and its packages that this generation of the runtime reports."""
        found = {}
        for package in ("runtime", "driver", "opp", "compiler"):
            buffer = ctypes.create_string_buffer(128)
            get = self._functions.get("aclsysGetVersionStr")
            if get is not None and get(package.encode(), buffer) == SUCCESS:
                found[package] = buffer.value.decode(errors="replace")
        numbers = [ctypes.c_int32() for _ in range(3)]
        get = self._functions.get("aclrtGetVersion")
        if get is not None and get(*map(ctypes.byref, numbers)) == SUCCESS:
            found["acl"] = ".".join(str(number.value) for number in numbers)
        return found

    def set_deterministic(self, enabled: bool) -> None:
        """Set both determinism options: pages name the context's, the library reads the process's."""
        for function in ("aclrtSetSysParamOpt", "aclrtCtxSetSysParamOpt"):
            self.call(function, OPTION_DETERMINISTIC, int(enabled))

    def free_memory(self) -> int:
        """Count the free bytes of device memory."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("aclrtGetMemInfo", HBM_MEMORY, ctypes.byref(free), ctypes.byref(total))
        return free.value

    def pointer(self, function: str, *arguments: object) -> int:
        """Return the pointer that a function writes through its first argument."""
        pointer = ctypes.c_void_p()
        self.call(function, ctypes.byref(pointer), *arguments)
        return int(pointer.value or 0)

    def context(self) -> int:
        """Return this thread's context."""
        return self.pointer("aclrtGetCurrentContext")

    @contextmanager
    def another_stream(self) -> Iterator[int]:
        """Create a stream for the duration of the block."""
        stream = self.pointer("aclrtCreateStream")
        try:
            yield stream
        finally:
            self.call("aclrtDestroyStream", stream)

    @contextmanager
    def event(self) -> Iterator[int]:
        """Create an event for the duration of the block."""
        event = self.pointer("aclrtCreateEvent")
        try:
            yield event
        finally:
            self.call("aclrtDestroyEvent", event)

    def synchronise(self, stream: int) -> None:
        self.call("aclrtSynchronizeStreamWithTimeout", stream, SYNCHRONISE_MILLISECONDS)

    @contextmanager
    def memory(self, size: int) -> Iterator[int]:
        """Allocate ``size`` bytes of device memory until the end of the block; address 0 for size 0."""
        if size == 0:
            yield 0
            return
        address = self.allocate(size)
        try:
            yield address
        finally:
            self.call("aclrtFree", address)

    def allocate(self, size: int) -> int:
        """Allocate ``size`` > 0 bytes of device memory, which the caller frees."""
        return self.pointer("aclrtMalloc", size, MALLOC_HUGE_FIRST)

    def upload(self, address: int, data: NDArray[np.uint8]) -> None:
        if data.size:
            self.call("aclrtMemcpy", address, data.size, data.ctypes.data, data.size, HOST_TO_DEVICE)

    def fill(self, address: int, size: int, byte: int) -> None:
        if size:
            self.call("aclrtMemset", address, size, byte, size)

    def download(self, data: NDArray[np.uint8], address: int) -> None:
        if data.size:
            self.call("aclrtMemcpy", data.ctypes.data, data.size, address, data.size, DEVICE_TO_HOST)

    def timed(self, stream: int, action: Callable[[], Any]) -> float:
        """Run ``action``, which works on ``stream``, to its end; return the seconds between two events around it."""
        elapsed = ctypes.c_float()
        with self.event() as start, self.event() as end:
            self.call("aclrtRecordEvent", start, stream)
            action()
            self.call("aclrtRecordEvent", end, stream)
            self.synchronise(stream)
            self.call("aclrtEventElapsedTime", ctypes.byref(elapsed), start, end)
        return elapsed.value / 1000.0

    def _initialise(self, choose: Callable[[int], int]) -> int:
        """Open a device; return its number."""
        code = self._functions["aclInit"](None)
        if code == _STUB:
            raise BackendUnavailable(
                f"aclInit returned {describe(code)}: a compile-time stub of the runtime was loaded; "
                "put the real library's folder before the one of the stubs"
            )
        if code not in (SUCCESS, _ALREADY_INITIALISED):
            raise BackendUnavailable(f"aclInit returned {describe(code)} {self.recent_error()}")
        count = ctypes.c_uint32()
        code = self._functions["aclrtGetDeviceCount"](ctypes.byref(count))
        number = choose(count.value)
        if code != SUCCESS or count.value <= number:
            raise BackendUnavailable(f"there is no NPU {number} here: the runtime counts {count.value} devices")
        code = self._functions["aclrtSetDevice"](number)
        if code != SUCCESS:
            raise BackendUnavailable(f"NPU {number} cannot be opened: {describe(code)} {self.recent_error()}")
        return number
