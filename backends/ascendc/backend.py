"""Kernel sources as a backend: each call is a launch of the model, with the kernel's own tiling."""

from __future__ import annotations

import ctypes
import json
import os
import random
import time
from collections.abc import Mapping
from ctypes import c_char_p, c_uint32, c_uint64, c_void_p
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.abilities import Abilities
from poolproof.backends.ascendc import cann
from poolproof.backends.ascendc.library import host_library, kernel_library
from poolproof.backends.ascendc.manifest import Kernel
from poolproof.backends.ascendc.tilings import KernelCall, KernelTiling, NoTiling, tilings_of
from poolproof.backends.base import MODEL_VARIABLE, Backend, Call, Outcome, Status, dtype_name, full_length
from poolproof.backends.building import Tell
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.forward_rule import ForwardRule
from poolproof.references.operators import Operator
from poolproof.references.products import PRODUCTS

Arrays = Mapping[str, NDArray]
"""Tensors by name, as a kernel gets them: contiguous, with a batch axis, axes in the order of their tag."""

_ORDERS = 3
_ALIGNMENT = 512
_POISONS = (0xA5, 0x5A, 0xFF)
"""Contents of UB and workspace before a launch, in turn."""


class _Buffer(ctypes.Structure):
    _fields_ = (("name", c_char_p), ("data", c_void_p), ("bytes", c_uint64), ("itemsize", c_uint32), ("role", c_uint32))


class _Launch(ctypes.Structure):
    _fields_ = (
        *(("blocks", c_uint32), ("order", ctypes.POINTER(c_uint32)), ("thread_seed", c_uint64)),
        *(("tiling_key", c_uint64), ("ub_bytes", c_uint64)),
        *(("poison", c_uint32), ("auto_sync", c_uint32)),
        *(("buffer_count", c_uint32), ("buffers", ctypes.POINTER(_Buffer))),
    )


_INPUT, _OUTPUT, _WORKSPACE, _TILING = range(4)
_GIVEN_UP = 2


def prepare(manifest: str, tell: Tell, dtype: str) -> None:
    """Build what all calls need. If a dtype is given, also build what its calls need."""
    kernel = Kernel(manifest)
    if kernel.manifest.tiling.host:
        host_library(kernel, tell)
    for stored in kernel.manifest.index_dtypes if dtype in kernel.manifest.dtypes else ():
        kernel_library(kernel, (dtype, stored), tell)


class AscendC(Backend):
    """A kernel of a manifest. Each repetition of a call runs its cores and threads in a different order."""

    survives_fork = True
    modes = tuple(f"order {number}" for number in range(1, _ORDERS + 1))

    def __init__(self, manifest: str) -> None:
        self.kernel = Kernel(manifest)
        self.manifest = self.kernel.manifest
        self.tags = self.manifest.tags
        self._tiling_of = tilings_of(self.kernel)
        self._program_of = lru_cache(None)(partial(kernel_library, self.kernel))
        self._last_call, self._route = (0, 0), ""

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        has_dtypes = dtype in self.manifest.dtypes and index_dtype in self.manifest.index_dtypes
        if operator.name in self.kernel.operators and has_dtypes:
            return None
        return f"{self.manifest.entry} is not a kernel of this operator{' in these dtypes' if not has_dtypes else ''}"

    def abilities(self, operator: Operator) -> Abilities:
        return self.kernel.abilities

    def accumulation(self, call: Call) -> AccumulationModel:
        product = PRODUCTS[self.manifest.product]
        return self.kernel.accumulation or product.accumulation(call.operator.name, call.dtype)

    def forward_rule(self, call: Call) -> ForwardRule:
        return self.kernel.forward_rule

    def route(self, call: Call) -> str:
        return self._route

    def is_deterministic(self, call: Call) -> bool:
        declared = self.manifest.deterministic
        return not call.operator.is_backward or declared == "always" or (declared == "asked" and call.deterministic)

    def environment(self) -> Mapping[str, str]:
        about = {"kernel": self.manifest.entry, "product": self.manifest.product, "sources": self.kernel.digest()}
        return about | ({"model": "CANN's CPU library"} if MODEL_VARIABLE in os.environ else {})

    def run(self, call: Call, mode: str = "") -> Outcome:
        self._route = ""
        if any(0 in call.tensors[name].shape for name in call.operator.outputs):
            return Outcome(Status.COMPLETED)
        arrays = {name: _aligned(self._axes(call, tensor.array)) for name, tensor in call.tensors.items()}
        try:
            tiling = self._tiling_of(self._kernel_call(call, arrays))
        except NoTiling as error:
            return Outcome(Status.REFUSED if error.is_refused else Status.UNAVAILABLE, message=str(error))
        self._route = f"tiling key {tiling.key}"
        program = self._program_of((call.dtype, call.index_dtype))
        started = time.perf_counter()
        try:
            findings = self._launch(program, call, arrays, tiling, self._seed(call, arrays, mode))
        except MemoryError as error:
            return Outcome(Status.UNAVAILABLE, message=str(error))
        seconds = time.perf_counter() - started
        for name in call.operator.outputs:
            self._axes(call, call.tensors[name].array)[...] = arrays[name]
        sentences = None if findings is None else tuple(_sentence(finding, arrays) for finding in findings)
        return Outcome(Status.COMPLETED, seconds=seconds, sanitizer=sentences)

    def _axes(self, call: Call, array: NDArray) -> NDArray:
        """View an array with the axes of the kernel."""
        if array.ndim == call.operator.spatial_rank + 1:
            array = array[np.newaxis]
        if self.manifest.depth and array.ndim == 4:
            array = array[:, :, np.newaxis]
        return np.moveaxis(array, 1, -1) if call.tensors["self"].tag else array

    def _kernel_call(self, call: Call, arrays: Arrays) -> KernelCall:
        names = [(argument, name) for argument, name in self.kernel.arguments.items() if name in arrays]
        names.sort(key=lambda pair: pair[1] in call.operator.outputs)
        lists, plane = full_length(call), call.tensors["self"].shape[-call.operator.spatial_rank :]
        outputs = lists.get("output_size", ())
        if outputs and all(size % out == 0 for size, out in zip(plane, outputs)):  # all its windows have the same size
            size = tuple(size // out for size, out in zip(plane, outputs))
            lists |= {"kernel_size": size, "stride": size, "padding": (0,) * len(size), "dilation": (1,) * len(size)}
        if self.manifest.depth and len(plane) == 2:
            lists |= {name: (int(name != "padding"), *each) for name, each in lists.items() if name != "ceil_mode"}
        return KernelCall(
            operator=call.operator.name,
            shapes={argument: arrays[name].shape for argument, name in names},
            dtypes={argument: dtype_name(arrays[name].dtype) for argument, name in names},
            inputs=sum(name in call.operator.inputs for _, name in names),
            format=call.tensors["self"].tag or ("NCDHW" if arrays["self"].ndim == 5 else "NCHW"),
            deterministic=call.deterministic,
            blocks=self.kernel.blocks,
            ub_bytes=self.kernel.ub_bytes,
            **lists,
        )

    def _seed(self, call: Call, arrays: Arrays, mode: str) -> int:
        """Return the seed for the order of cores and threads.

        It is 0, for the order of their numbers, if the call differs from the last one. It grows with each repetition.
        """
        if mode:
            return 1 + self.modes.index(mode)
        inputs = (arrays[name].tobytes() for name in call.operator.inputs)
        given = hash((call.operator.name, call.attributes, call.deterministic, *inputs))
        last, times = self._last_call
        self._last_call = given, times + 1 if given == last else 0
        return self._last_call[1]

    def _launch(self, program: Path, call: Call, arrays: Arrays, tiling: KernelTiling, seed: int) -> list[Any] | None:
        """Launch the kernel on arrays; return the model's findings, None on CANN's library."""
        poison = _POISONS[seed % len(_POISONS)]
        workspace = _aligned(np.full(max(tiling.workspace, 32), poison, np.uint8))
        memory = {**arrays, "workspace": workspace, "tiling": _aligned(np.frombuffer(tiling.data, np.uint8))}
        if MODEL_VARIABLE in os.environ:
            cann.launch(program, [memory[name] for name in self.kernel.arguments.values()], tiling.blocks, tiling.key)
            return None
        roles = {"workspace": _WORKSPACE, "tiling": _TILING, **dict.fromkeys(call.operator.outputs, _OUTPUT)}
        buffers = (_Buffer * len(self.kernel.arguments))()
        smallest = min(array.itemsize for array in arrays.values())  # cores may share a workspace element by element
        for number, name in enumerate(self.kernel.arguments.values()):
            array, size = memory[name], arrays[name].itemsize if name in arrays else smallest
            role = roles.get(name, _INPUT)
            buffers[number] = _Buffer(name.encode(), array.ctypes.data, array.nbytes, size, role)
        order = random.Random(seed).sample(range(tiling.blocks), tiling.blocks)
        numbers = (c_uint32 * tiling.blocks)(*order) if seed else None
        orders = tiling.blocks, numbers, seed
        given = *orders, tiling.key, self.kernel.ub_bytes, poison, self.manifest.auto_sync, len(buffers)
        return self._launch_on_model(program, _Launch(*given, buffers))

    def _launch_on_model(self, program: Path, launch: _Launch) -> list[Any]:
        library = ctypes.CDLL(str(program))
        library.ascendc_findings.restype = c_char_p
        before = [(name, library.ascendc_assume(name.encode(), is_on)) for name, is_on in self.manifest.assume.items()]
        result = library.ascendc_launch(ctypes.byref(launch))
        for name, was_on in before:  # another manifest may use the same library
            library.ascendc_assume(name.encode(), was_on)
        if result == _GIVEN_UP:
            raise MemoryError("the model has too little memory for its records of all operations")
        return json.loads(library.ascendc_findings())


def _aligned(array: NDArray) -> NDArray:
    """Copy an array to memory with the alignment of a device."""
    memory = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _sentence(finding: Mapping[str, Any], arrays: Arrays) -> str:
    """Describe a finding: what, in which element, on which core, in which call of the API."""
    where, byte = finding["tensor"], finding["byte"]
    if where in arrays and 0 <= byte < arrays[where].nbytes:
        element = np.unravel_index(byte // arrays[where].itemsize, arrays[where].shape)
        where = f"{where}{[*map(int, element)]}"
    elif where:
        where = f"byte {byte} of {where}"
    call = finding["call"] and f"in {finding['call']}"
    parts = (finding["text"], where and f"at {where}", f"on core {finding['core']}", call)
    times = f" ({finding['count']} times)" if finding["count"] > 1 else ""
    return f"{finding['kind']}: {', '.join(filter(None, parts))}{times}"
