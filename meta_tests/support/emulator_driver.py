"""A plain caller of the emulator's ABI, for tests of the emulator itself.

It shares the prototypes and numbers of C with the binding that the suite uses, and nothing else: no guard bands, no
statuses turned into exceptions, no caching. That the two were written apart is the point.
"""

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from ctypes import byref, c_bool, c_char_p, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)
import numpy as np
from numpy.typing import NDArray

from poolproof.backends.aclnn.prototypes import (
    DEVICE_TO_HOST,
    FORMATS,
    FUNCTIONS,
    HOST_TO_DEVICE,
    OPTIONAL_FUNCTIONS,
)
from poolproof.references.contract.vocabulary import DTYPES

BACKWARD = ("gradOutput", "self", "indices", "gradInput")
FORWARD = ("self", "out", "indices")

DTYPE_OF = {
    "float32": "FLOAT", "float16": "FLOAT16", "bfloat16": "BF16", "float64": "DOUBLE", "int32": "INT32",
    "int64": "INT64", "int8": "INT8",
}  # fmt: skip
FORMAT_OF_RANK = {3: "NCL", 4: "NCHW", 5: "NCDHW"}

_PROTOTYPES = FUNCTIONS | OPTIONAL_FUNCTIONS
_PROTOTYPES |= {
    "aclrtSynchronizeStream": (c_int32, (c_void_p,)),
    "poolproof_emulator_route": (c_char_p, (c_void_p,)),
    "poolproof_emulator_defects": (c_char_p, ()),
    "poolproof_emulator_living": (c_int64, (c_char_p,)),
}
"""Those of the binding, and of functions that it never calls."""


@dataclass
class View:
    """A strided view over a storage on the host; everything counts elements. ``format`` defaults by rank."""

    storage: NDArray
    shape: Sequence[int]
    strides: Sequence[int] | None = None
    offset: int = 0
    format: str | None = None

    @property
    def array(self) -> NDArray:
        """The elements of the view, sharing memory with the storage."""
        size = self.storage.itemsize
        strides = None if self.strides is None else [stride * size for stride in self.strides]
        memory = self.storage.view(np.uint8).data
        return np.ndarray(tuple(self.shape), self.storage.dtype, memory, self.offset * size, strides)

    @property
    def tag(self) -> int:
        return FORMATS[self.format or FORMAT_OF_RANK.get(len(self.shape), "ND")]


def dense(array: NDArray, tag: str | None = None) -> View:
    """A view of all of ``array``, which is copied."""
    return View(np.ascontiguousarray(array).reshape(-1).copy(), array.shape, format=tag)


@dataclass
class Outcome:
    """Statuses of both phases and of the synchronisation (None where it was not reached), and what was observed."""

    phase_one: int
    phase_two: int | None = None
    synchronisation: int | None = None
    workspace: int | None = None
    route: str = ""
    message: str = ""

    @property
    def ok(self) -> bool:
        return (self.phase_one, self.phase_two, self.synchronisation) == (0, 0, 0)


class Emulator:
    """One loaded library, initialised, with device 0 set and one stream."""

    def __init__(self, path: Path) -> None:
        self.shared_object = ctypes.CDLL(str(path))
        for name, prototype in _PROTOTYPES.items():
            function = getattr(self.shared_object, name)
            function.restype, function.argtypes = prototype
        self.call("aclInit", None)
        self.call("aclrtSetDevice", 0)
        self.stream = c_void_p()
        self.call("aclrtCreateStream", byref(self.stream))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shared_object, name)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that must succeed."""
        status = getattr(self.shared_object, name)(*arguments)
        if status != 0:
            raise AssertionError(f"{name} returned {status}: {self.message()}")

    def read_settings(self) -> None:
        """Make the library read its environment now: product and version, the memory's size, the cache's limit."""
        self.shared_object.aclrtGetSocName()
        self.shared_object.aclsysGetVersionNum(b"", byref(c_int32()))
        self.free_memory()
        self.phase_one("aclnnAdaptiveMaxPool3dBackward", [None] * len(BACKWARD), c_uint64(), c_void_p())

    def message(self) -> str:
        """The newest line of the error text."""
        text = self.shared_object.aclGetRecentErrMsg()
        return text.decode().splitlines()[0] if text else ""

    def living(self, kind: str) -> int:
        return int(self.shared_object.poolproof_emulator_living(kind.encode()))

    def free_memory(self) -> int:
        free, total = c_size_t(), c_size_t()
        self.call("aclrtGetMemInfo", 1, byref(free), byref(total))
        return free.value

    def malloc(self, size: int) -> c_void_p:
        pointer = c_void_p()
        self.call("aclrtMalloc", byref(pointer), size, 0)
        return pointer

    def upload(self, array: NDArray) -> c_void_p:
        pointer = self.malloc(max(1, array.nbytes))
        self.call("aclrtMemcpy", pointer, array.nbytes, array.ctypes.data, array.nbytes, HOST_TO_DEVICE)
        return pointer

    def download(self, array: NDArray, pointer: c_void_p) -> None:
        self.call("aclrtMemcpy", array.ctypes.data, array.nbytes, pointer, array.nbytes, DEVICE_TO_HOST)

    def create_tensor(
        self,
        shape: Sequence[int],
        dtype: int,
        strides: Sequence[int] | None,
        offset: int,
        tag: int,
        storage: Sequence[int],
        data: c_void_p | int | None,
    ) -> c_void_p:
        steps = None if strides is None else _int64s(strides)
        return c_void_p(
            self.shared_object.aclCreateTensor(
                _int64s(shape), len(shape), dtype, steps, offset, tag, _int64s(storage), len(storage), data
            )
        )

    def create_view(self, view: View, data: c_void_p) -> c_void_p:
        dtype, storage = DTYPES[DTYPE_OF[view.storage.dtype.name]], [max(1, view.storage.size)]
        return self.create_tensor(view.shape, dtype, view.strides, view.offset, view.tag, storage, data)

    def create_list(self, values: Sequence[int]) -> c_void_p:
        return c_void_p(self.shared_object.aclCreateIntArray(_int64s(values), len(values)))

    def phase_one(self, api: str, arguments: Sequence[Any], size: c_uint64 | None, executor: c_void_p | None) -> int:
        """Call ``…GetWorkspaceSize``; ``size`` and ``executor`` receive the results, None passes a null pointer."""
        results = [None if result is None else byref(result) for result in (size, executor)]
        return int(getattr(self.shared_object, f"{api}GetWorkspaceSize")(*arguments, *results))

    def phase_two(self, api: str, workspace: c_void_p | None, size: int, executor: c_void_p, stream: c_void_p) -> int:
        return int(getattr(self.shared_object, api)(workspace, c_uint64(size), executor, stream))

    def run(self, *call: Any) -> Outcome:
        """One complete `PreparedCall`; afterwards the storages of all views hold what the device memory holds."""
        with PreparedCall(self, *call) as prepared:
            return prepared.launch()


class PreparedCall(AbstractContextManager):
    """A call whose operands are on the device until the end of the block; it may be launched several times."""

    def __init__(
        self,
        emulator: Emulator,
        api: str,
        views: Mapping[str, View],
        lists: Mapping[str, Sequence[int]] | None = None,
        ceil_mode: bool = False,
    ) -> None:
        self.emulator, self.api, self.views = emulator, api, views
        self.buffers = {name: emulator.upload(view.storage) for name, view in views.items()}
        self.tensors = {name: emulator.create_view(view, self.buffers[name]) for name, view in views.items()}
        self.lists = [emulator.create_list(values) for values in (lists or {}).values()]
        order, inputs = (BACKWARD, 3) if api.endswith("Backward") else (FORWARD, 1)
        arguments: list[Any] = [self.tensors[name] for name in order]
        flags = [c_bool(ceil_mode)] if len(self.lists) > 1 else []
        self.arguments = [*arguments[:inputs], *self.lists, *flags, *arguments[inputs:]]

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def fill(self, name: str, values: Any) -> None:
        """Put values into a tensor, on the host and on the device."""
        view = self.views[name]
        view.array[...] = values
        storage, size = view.storage, view.storage.nbytes
        self.emulator.call("aclrtMemcpy", self.buffers[name], size, storage.ctypes.data, size, HOST_TO_DEVICE)

    def plan(self) -> tuple[int, int, c_void_p]:
        """Phase one: (status, workspace size, executor)."""
        size, executor = c_uint64(), c_void_p()
        status = self.emulator.phase_one(self.api, self.arguments, size, executor)
        return status, size.value, executor

    def launch(self) -> Outcome:
        """Both phases, synchronised, and the results copied back."""
        status, size, executor = self.plan()
        if status != 0:
            return Outcome(status, message=self.emulator.message())
        outcome = Outcome(status, workspace=size, route=self.emulator.poolproof_emulator_route(executor).decode())
        workspace = self.emulator.malloc(size) if size else None
        outcome.phase_two = self.emulator.phase_two(self.api, workspace, size, executor, self.emulator.stream)
        if outcome.phase_two == 0:
            outcome.synchronisation = self.emulator.aclrtSynchronizeStream(self.emulator.stream)
        if workspace:
            self.emulator.call("aclrtFree", workspace)
        if outcome.ok:
            self.fetch()
        else:
            outcome.message = self.emulator.message()
        return outcome

    def fetch(self) -> None:
        for name, view in self.views.items():
            self.emulator.download(view.storage, self.buffers[name])

    def destroy(self) -> None:
        for tensor in self.tensors.values():
            self.emulator.call("aclDestroyTensor", tensor)
        for values in self.lists:
            self.emulator.call("aclDestroyIntArray", values)
        for buffer in self.buffers.values():
            self.emulator.call("aclrtFree", buffer)


@contextmanager
def fresh(path: Path, product: str, **settings: str) -> Iterator[Emulator]:
    """A copy of the library at ``path`` with a state of its own, for ``product`` and other environment ``settings``.

    The emulator reads its environment once per loaded library, so every choice needs a library of its own.
    """
    with tempfile.TemporaryDirectory(prefix="poolproof-emulator-") as folder:
        copy = Path(shutil.copy(path, Path(folder) / f"{product}.so"))
        with patch.dict(os.environ, POOLPROOF_EMULATOR_PRODUCT=product, **settings):
            emulator = Emulator(copy)
            emulator.read_settings()
        yield emulator
        emulator.call("aclrtResetDeviceForce", 0)
        emulator.call("aclFinalize")


def _int64s(values: Sequence[int]) -> ctypes.Array[c_int64]:
    return (c_int64 * len(values))(*values)
