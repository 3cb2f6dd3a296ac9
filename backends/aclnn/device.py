"""An NPU through the AscendCL runtime: streams, memory, objects of a call, options and versions.

Every function that fails raises `AclError` with the library's own text.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, partial
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.aclnn import prototypes
from poolproof.backends.aclnn.libraries import AclnnLibraries
from poolproof.backends.aclnn.status import SUCCESS, AclError, describe
from poolproof.backends.base import BackendUnavailable
from poolproof.references.contract.statuses import LOSES_THE_CONTEXT

_ALREADY_INITIALISED = 100002
_STUB = 100039

SYNCHRONISE_MILLISECONDS = 60_000
"""Timeout of a stream, after which `AclError` 507046 is raised. The timeout of a case is shorter, or the user's
choice."""

_BLOCK = 1 << 22
"""Bytes that one copy of a delay copies."""

_DELAY_SECONDS = 2e-3
"""Length of a delay: many times what the host needs to queue a call."""

_MOST_COPIES = 128
"""Most copies of one delay, for a device too fast for `_DELAY_SECONDS`; queues hold a thousand tasks and more."""


class Device:
    """An initialised device with one non-default stream.

    ``choose`` picks it, given the number of devices. `BackendUnavailable` is raised if the runtime is a stub, or if the
    device does not exist or cannot be opened.
    """

    def __init__(self, libraries: AclnnLibraries, choose: Callable[[int], int]) -> None:
        self._functions = libraries.runtime()
        self.number = self._initialise(choose)
        self.is_lost = False  # a status said that this process can make no further calls
        self.stream = self.pointer("aclrtCreateStream")

    def status(self, function: str, *arguments: object) -> int:
        """Call a runtime function and return its status."""
        return int(self._functions[function](*arguments))

    def has(self, function: str) -> bool:
        return function in self._functions

    def call(self, function: str, *arguments: object) -> None:
        code = self.status(function, *arguments)
        if code != SUCCESS:
            raise self.error(function, code)

    def error(self, function: str, code: int) -> AclError:
        """Return the error of a failing status; note here whether it loses the context, in case it is handled."""
        self.is_lost |= code in LOSES_THE_CONTEXT
        return AclError(function, code, self.recent_error())

    def pointer(self, function: str, *arguments: object) -> int:
        """Return the pointer that a function writes through its first argument."""
        pointer = ctypes.c_void_p()
        self.call(function, ctypes.byref(pointer), *arguments)
        return int(pointer.value or 0)

    def handle(self, function: str, *arguments: object) -> int:
        """Return the pointer that a function returns; raise `AclError` if it is null."""
        pointer = self._functions[function](*arguments)
        if not pointer:
            raise AclError(function, 0, self.recent_error() or "returned a null pointer")
        return int(pointer)

    def recent_error(self) -> str:
        """Read and clear this thread's last error: the first line of the library's text, or an empty text."""
        text = self._functions["aclGetRecentErrMsg"]()
        return text.decode(errors="replace").strip().splitlines()[0] if text and text.strip() else ""

    @property
    def soc_name(self) -> str:
        """Name of the chip, such as ``Ascend910B1``."""
        return (self._functions["aclrtGetSocName"]() or b"").decode()

    @property
    def saturates(self) -> bool:
        """Whether the device clamps overflowing results instead of returning infinities."""
        mode = ctypes.c_int()
        return self._reports("aclrtGetDeviceSatMode", ctypes.byref(mode)) and mode.value == prototypes.SATURATION

    def route(self) -> str:
        """Name the branch of the latest launch, if the library reports it; CANN's do not."""
        report = self._functions.get("poolproof_emulator_last_route")
        return "" if report is None else (report() or b"").decode()

    def versions(self) -> dict[str, str]:
        """Return the versions of the runtime and its packages, as far as this runtime reports them."""
        known = {}
        for package in ("runtime", "driver", "opp", "compiler"):
            buffer = ctypes.create_string_buffer(128)
            if self._reports("aclsysGetVersionStr", package.encode(), buffer):
                known[package] = buffer.value.decode(errors="replace")
        numbers = [ctypes.c_int32() for _ in range(3)]
        if self._reports("aclrtGetVersion", *map(ctypes.byref, numbers)):
            known["acl"] = ".".join(str(number.value) for number in numbers)
        return known

    def _reports(self, function: str, *arguments: object) -> bool:
        """Call a function that not every runtime has; return whether it exists and succeeded."""
        return function in self._functions and self.status(function, *arguments) == SUCCESS

    def set_deterministic(self, enabled: bool) -> None:
        """Set both determinism options: pages name that of the context, the library reads that of the process."""
        for function in ("aclrtSetSysParamOpt", "aclrtCtxSetSysParamOpt"):
            self.call(function, prototypes.OPTION_DETERMINISTIC, int(enabled))

    def another_stream(self) -> AbstractContextManager[int]:
        return self._created("aclrtCreateStream", "aclrtDestroyStream")

    def event(self) -> AbstractContextManager[int]:
        return self._created("aclrtCreateEvent", "aclrtDestroyEvent")

    def memory(self, size: int) -> AbstractContextManager[int]:
        """Allocate ``size`` bytes of device memory until the end of the block; the address is 0 for size 0."""
        if size == 0:
            return nullcontext(0)
        return self._created("aclrtMalloc", "aclrtFree", size, prototypes.MALLOC_HUGE_FIRST)

    @contextmanager
    def _created(self, create: str, destroy: str, *arguments: object) -> Iterator[int]:
        created = self.pointer(create, *arguments)
        try:
            yield created
        finally:
            self.call(destroy, created)

    def synchronise(self, stream: int) -> None:
        self.call("aclrtSynchronizeStreamWithTimeout", stream, SYNCHRONISE_MILLISECONDS)

    def timed(self, stream: int, action: Callable[[], Any]) -> float:
        """Run ``action``, which works on ``stream``, and wait; return the seconds between two events around it."""
        elapsed = ctypes.c_float()
        with self.event() as start, self.event() as end:
            self.call("aclrtRecordEvent", start, stream)
            action()
            self.call("aclrtRecordEvent", end, stream)
            self.synchronise(stream)
            self.call("aclrtEventElapsedTime", ctypes.byref(elapsed), start, end)
        return elapsed.value / 1000.0

    def copy(self, stream: int, target: int, source: int, size: int) -> None:
        """Queue a copy within device memory."""
        self.call("aclrtMemcpyAsync", target, size, source, size, prototypes.DEVICE_TO_DEVICE, stream)

    def hold_up(self, stream: int) -> None:
        """Keep a stream busy for one delay, by copies between two halves of a block of memory."""
        block, copies = self._delay
        for _ in range(copies):
            self.copy(stream, block, block + _BLOCK, _BLOCK)

    @cached_property
    def _delay(self) -> tuple[int, int]:
        """Return (address of a block of memory, number of copies that take `_DELAY_SECONDS`); a first copy warms up."""
        block = self.pointer("aclrtMalloc", 2 * _BLOCK, prototypes.MALLOC_HUGE_FIRST)
        copy = partial(self.copy, self.stream, block, block + _BLOCK, _BLOCK)
        copy()
        seconds = self.timed(self.stream, copy)
        return block, min(_MOST_COPIES, ceil(_DELAY_SECONDS / seconds)) if seconds > 0 else _MOST_COPIES

    def free_memory(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("aclrtGetMemInfo", prototypes.HBM_MEMORY, ctypes.byref(free), ctypes.byref(total))
        return free.value

    def upload(self, address: int, data: NDArray[np.uint8]) -> None:
        self.call("aclrtMemcpy", address, data.size, data.ctypes.data, data.size, prototypes.HOST_TO_DEVICE)

    def download(self, data: NDArray[np.uint8], address: int) -> None:
        self.call("aclrtMemcpy", data.ctypes.data, data.size, address, data.size, prototypes.DEVICE_TO_HOST)

    def fill(self, address: int, size: int, byte: int) -> None:
        self.call("aclrtMemset", address, size, byte, size)

    def holds(self, address: int, size: int, byte: int) -> bool:
        """Check whether ``size`` bytes of device memory all equal ``byte``."""
        held = np.empty(size, np.uint8)
        self.download(held, address)
        return bool((held == byte).all())

    def _initialise(self, choose: Callable[[int], int]) -> int:
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
