"""Make the call of a failing case without poolproof, and judge the result: python call.py EVIDENCE.npz

It calls torch, or aclnn by ctypes. It needs only numpy, and `rejudge`, which lies beside it. The file names the
library, the arguments in order, and the memory of every tensor: 0xFF bytes where there is no input. With ``--plain``
these bytes are zeros, and tensors have no guard bands. ``--torch DEVICE`` or ``--library PATH`` (repeatable, in the
order of loading) make the same call elsewhere. It exits with 1 if the result deviates, a tensor came back with other
strides, memory beside it was written, or the call was refused. The result is read through the tensor that the call got,
as its caller reads it.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import byref, c_bool, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from functools import partial
from typing import Any

import numpy as np
from rejudge import read, report

USUAL = ("libascendcl.so", "libnnopbase.so", "libopapi_math.so", "libopapi_nn.so")
"""Libraries of an installation, after its set_env.sh was sourced."""

EAGER = ("torch-cpu", "torch-cuda", "torch-npu")
"""Backends with the calls of `call_torch`; those of other devices are ``torch:DEVICE``."""

UNTOUCHED = 0xFF
"""Byte in memory before the call."""

GUARD = 512
"""Bytes before and behind each storage."""

LOSES_INDICES = "max_pool3d_with_indices_backward"
"""An operator of torch_npu 2.13: its overload that writes into grad_input does not pass the indices to aclnn."""

DETERMINISTIC = 0
TO_DEVICE, TO_HOST = 1, 2
TIMEOUT_MS = 60_000

Memory = dict[str, np.ndarray]
"""Tensor -> the bytes of its storage, with a guard before and behind."""

Strides = dict[str, list[int]]
"""Output -> the strides, in elements, of the tensor through which its caller reads it after the call.

An output that is not here keeps the strides it was given.
"""


class CannotCallError(Exception):
    """The call cannot be made here; the text says why and what to do."""


class RefusedError(Exception):
    """The implementation reported an error."""


def memory_before(tensors: Mapping[str, Any], arrays: Mapping[str, np.ndarray], guard: int, fill: int) -> Memory:
    """Return every storage before the call."""
    sizes = {name: tensor["bytes"] + 2 * guard or 16 for name, tensor in tensors.items()}  # torch cannot view none
    memory = {name: np.full(size, fill, np.uint8) for name, size in sizes.items()}
    for name, content in memory.items():
        if (given := arrays.get(f"memory_{name}")) is not None:
            content[guard : guard + len(given)] = given
    return memory


def guard_of(tensor: Mapping[str, Any], memory: np.ndarray) -> int:
    """Return the bytes of the guard before a storage, and behind it."""
    return (len(memory) - int(tensor["bytes"])) // 2


def elements(tensor: Mapping[str, Any], memory: np.ndarray) -> np.ndarray:
    """Return a storage as its tensor; bfloat16 as the upper halves of float32."""
    dtype = np.dtype({"bfloat16": "uint16"}.get(tensor["dtype"], tensor["dtype"]))
    strides = [stride * dtype.itemsize for stride in tensor["strides"]]
    return np.ndarray(
        tensor["shape"], dtype, memory.data, guard_of(tensor, memory) + tensor["offset"] * dtype.itemsize, strides
    )


def values(tensor: Mapping[str, Any], memory: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Return the elements as float64, in ``shape``; an int8 tensor has int32 in its first bytes."""
    view = elements(tensor, memory)
    if tensor["dtype"] == "int8":
        view = np.ascontiguousarray(view).ravel()[: 4 * int(np.prod(shape))].view(np.int32)
    if tensor["dtype"] == "bfloat16":
        view = (view.astype(np.uint32) << 16).view(np.float32)
    return view.astype(np.float64).reshape(shape)


def changes(call: Mapping[str, Any], strides: Strides) -> Iterator[str]:
    """Yield the outputs that came back with other strides, along axes of more than one element."""
    for name, left in strides.items():
        tensor = call["tensors"][name]
        axes = zip(tensor["shape"], left, tensor["strides"], strict=True)
        if 0 not in tensor["shape"] and any(size > 1 and now != given for size, now, given in axes):
            yield f"{name} came back with strides {left}, and was handed in with {tensor['strides']}"


def out_of_bounds_writes(call: Mapping[str, Any], before: Memory, after: Memory) -> Iterator[str]:
    """Yield where the call changed bytes that it may not write: inputs, and memory outside of outputs' elements."""
    for name, tensor in call["tensors"].items():
        changed, guard = before[name] != after[name], guard_of(tensor, before[name])
        end = len(changed) - guard
        if name in call["outputs"]:
            size = elements(tensor, after[name]).itemsize
            belongs = np.zeros(len(changed) // size, bool)
            first = guard // size + tensor["offset"]
            np.ndarray(tensor["shape"], bool, belongs.data, first, tensor["strides"])[...] = True
            if tensor["dtype"] == "int8":  # the bytes of a mask have no published meaning
                belongs[guard:end] = True
            changed &= ~np.repeat(belongs, size)
        if changed.any():
            beyond = int(changed[:guard].sum() + changed[end:].sum())
            where = f", {beyond} of them beyond its storage" if beyond else ""
            yield f"{int(changed.sum())} bytes of {name} that the call may not write were written{where}"


def call_torch(call: Mapping[str, Any], memory: Memory, device: str) -> tuple[Memory, Strides]:
    """Make the call with torch on ``device``."""
    if call["torch"] is None:
        raise CannotCallError("torch has no such operator: name a library with --library")
    import torch

    if device == "npu":
        import torch_npu  # noqa: F401
    torch.set_deterministic_debug_mode(2 * call["deterministic"])  # the usual setter imports a compiler
    try:
        storages = {name: torch.from_numpy(content.copy()).to(device) for name, content in memory.items()}
    except (RuntimeError, AssertionError) as error:
        raise CannotCallError(f"torch finds no device {device} here: {str(error).splitlines()[0]}") from error
    views = {
        name: storages[name]
        .view(getattr(torch, tensor["dtype"]))
        .as_strided(
            tensor["shape"],
            tensor["strides"],
            tensor["offset"] + guard_of(tensor, memory[name]) // getattr(torch, tensor["dtype"]).itemsize,
        )
        for name, tensor in call["tensors"].items()
    }
    name, overload = call["torch"]["function"]
    given = [views[argument] if isinstance(argument, str) else argument for argument in call["torch"]["arguments"]]
    results = {keyword: views[tensor] for keyword, tensor in call["torch"]["results"].items()}
    try:
        with torch.inference_mode():
            function = getattr(torch.ops.aten, name)
            if device == "npu" and name == LOSES_INDICES:
                results["grad_input"].copy_(function.default(*given))
            else:
                getattr(function, overload)(*given, **results)
    except (RuntimeError, IndexError, ValueError) as error:
        raise RefusedError(f"torch refused the call: {error}") from error
    kept = [name for name in call["outputs"] if list(views[name].shape) == call["tensors"][name]["shape"]]
    strides = {name: list(views[name].stride()) for name in kept}
    return {name: storage.cpu().numpy() for name, storage in storages.items()}, strides


class LoadedLibraries:
    """Functions of libraries, which are loaded in order; all arguments are ctypes objects."""

    def __init__(self, paths: Sequence[str]) -> None:
        try:
            self._loaded = [ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL) for path in paths]
        except OSError as error:
            hint = "source CANN's set_env.sh, or name the libraries with --library in the order in which to load them"
            raise CannotCallError(f"{error}: {hint}") from error

    def find(self, name: str) -> Any:
        for library in self._loaded:
            if hasattr(library, name):
                return getattr(library, name)
        raise CannotCallError(f"no library has {name}")

    def call(self, name: str, *arguments: object) -> None:
        """Call a function that returns a status; any but 0 is an error."""
        status = self.find(name)(*arguments)
        if status:
            recent = self.find("aclGetRecentErrMsg")
            recent.restype = c_char_p
            text = (recent() or b"no text").decode(errors="replace").strip()
            raise RefusedError(f"{name} returned {status}: {text}")

    def handle(self, name: str, *arguments: object) -> c_void_p:
        """Call a function that returns a pointer."""
        function = self.find(name)
        function.restype = c_void_p
        return c_void_p(function(*arguments))

    def upload(self, content: np.ndarray) -> c_void_p:
        """Copy ``content`` to device memory; allocate none if it is empty."""
        address, size = c_void_p(), c_size_t(content.nbytes)
        if content.nbytes:
            self.call("aclrtMalloc", byref(address), size, c_int(0))
            self.call("aclrtMemcpy", address, size, c_void_p(content.ctypes.data), size, c_int(TO_DEVICE))
        return address

    def download(self, address: c_void_p, like: np.ndarray) -> np.ndarray:
        content, size = np.empty_like(like), c_size_t(like.nbytes)
        if like.nbytes:
            self.call("aclrtMemcpy", c_void_p(content.ctypes.data), size, address, size, c_int(TO_HOST))
        return content

    def tensor(self, described: Mapping[str, Any], address: c_void_p) -> c_void_p:
        """Create an aclTensor over the storage at ``address``."""
        shape, strides, storage = (_int64s(described[name]) for name in ("shape", "strides", "storage"))
        dims = shape, c_uint64(len(shape)), c_int(described["data_type"])
        view = strides, c_int64(described["offset"]), c_int(described["format"])
        return self.handle("aclCreateTensor", *dims, *view, storage, c_uint64(len(storage)), address)

    def argument(self, given: Any, tensors: Mapping[str, c_void_p]) -> object:
        """Convert an argument: a tensor by its name, a list or a flag."""
        if isinstance(given, str):
            return tensors[given]
        if isinstance(given, bool):
            return c_bool(given)
        return self.handle("aclCreateIntArray", _int64s(given), c_uint64(len(given)))


def _int64s(numbers: Sequence[int]) -> ctypes.Array[c_int64]:
    return (c_int64 * len(numbers))(*numbers)


def call_aclnn(call: Mapping[str, Any], memory: Memory, paths: Sequence[str], fill: int) -> tuple[Memory, Strides]:
    """Make the call through aclnn, in two phases; the workspace is filled with the byte ``fill``."""
    libraries, given = LoadedLibraries(paths), call["aclnn"]
    libraries.call("aclInit", None)
    libraries.call("aclrtSetDevice", c_int32(0))
    for scope in ("aclrtSetSysParamOpt", "aclrtCtxSetSysParamOpt"):
        libraries.call(scope, c_int(DETERMINISTIC), c_int64(call["deterministic"]))
    stream = c_void_p()
    libraries.call("aclrtCreateStream", byref(stream))
    addresses = {name: libraries.upload(content) for name, content in memory.items()}
    tensors = {
        name: libraries.tensor(
            given["tensors"][name], c_void_p((address.value or 0) + guard_of(call["tensors"][name], memory[name]))
        )
        for name, address in addresses.items()
    }
    arguments = [libraries.argument(argument, tensors) for argument in given["arguments"]]
    size, executor = c_uint64(), c_void_p()
    libraries.call(f"{given['function']}GetWorkspaceSize", *arguments, byref(size), byref(executor))
    workspace = libraries.upload(np.full(size.value, fill, np.uint8))
    libraries.call(given["function"], workspace, size, executor, stream)
    libraries.call("aclrtSynchronizeStreamWithTimeout", stream, c_int32(TIMEOUT_MS))
    return {name: libraries.download(address, memory[name]) for name, address in addresses.items()}, {}


def route(backend: str, device: str, paths: Sequence[str], fill: int) -> Callable[..., tuple[Memory, Strides]]:
    """Return the function that makes the call: as the arguments say, else as the backend of the evidence did."""
    if not device and not paths and (backend in EAGER or backend.startswith("torch:")):
        device = backend[len("torch-") :]
    if device:
        return partial(call_torch, device=device)
    if paths or backend == "aclnn" or backend.startswith("emulator-"):
        return partial(call_aclnn, paths=paths or USUAL, fill=fill)
    raise CannotCallError(f"backend {backend!r} made the call: name another, by --torch DEVICE or --library PATH")


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the call of a failing case, and judge what comes.")
    parser.add_argument("evidence", help="file that the case left")
    parser.add_argument("--torch", metavar="DEVICE", default="", help="make the call with torch: cpu, cuda, npu")
    parser.add_argument("--library", metavar="PATH", action="append", default=[], help="library to load, repeatable")
    parser.add_argument("--plain", action="store_true", help="lay nothing around the tensors, and zeros in outputs")
    given = parser.parse_args()
    guard, fill = (0, 0) if given.plain else (GUARD, UNTOUCHED)
    arrays, meta = read(given.evidence)
    call = meta.get("call")
    try:
        if "case" in meta:
            line = shlex.join(["poolproof", "replay", "--backend", meta["backend"], meta["case"]])
            raise CannotCallError(f"the case is too large for the file to hold its call: {line}")
        if call is None:
            raise CannotCallError("the file holds no call: let `poolproof replay --evidence` make it anew")
        make = route(meta["backend"], given.torch, given.library, fill)
        print(f"{call['operator']}: {json.dumps(call['aclnn']['arguments'])}", flush=True)
        before = memory_before(call["tensors"], arrays, guard, fill)
        after, strides = make(call, before)
    except CannotCallError as error:
        sys.exit(str(error))
    except RefusedError as error:
        print(error)
        return 1
    name = meta["tensor"]
    tensor = call["tensors"][name]
    as_left = {**tensor, "strides": strides.get(name, tensor["strides"])}
    arrays["got"] = values(as_left, after[name], arrays["got"].shape)
    is_wrong = report(arrays, meta)
    problems = [*changes(call, strides), *out_of_bounds_writes(call, before, after)]
    for text in problems:
        print(text)
    return int(is_wrong or bool(problems))


if __name__ == "__main__":
    sys.exit(main())
