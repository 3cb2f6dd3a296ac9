"""Tilings: how a call is split, from a Python function, recorded cases, the operator's own host code, or CANN."""

from __future__ import annotations

import ctypes
import importlib
import json
import runpy
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from poolproof.backends.aclnn.prototypes import FORMATS
from poolproof.backends.ascendc.library import DTYPES, host_library, tiling_structs
from poolproof.backends.ascendc.manifest import Kernel
from poolproof.backends.base import BackendUnavailable


@dataclass(frozen=True)
class KernelCall:
    """One call as the kernel receives it.

    Attributes:
        shapes, dtypes: By argument.
        inputs: The first arguments that are inputs.
        format: Order of axes: NCHW, NHWC, NCDHW or NDHWC.
        blocks, ub_bytes: Cores and UB of the device.
        kernel_size, stride, padding, dilation, output_size: One length per axis; empty if the operator has no such
            list.
    """

    operator: str
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]
    inputs: int
    format: str
    deterministic: bool
    blocks: int
    ub_bytes: int
    kernel_size: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    ceil_mode: bool = False
    output_size: tuple[int, ...] = ()


@dataclass(frozen=True)
class KernelTiling:
    key: int
    blocks: int
    workspace: int
    data: bytes


class NoTiling(Exception):
    """A call has no tiling; the text says why. ``is_refused``: the operator's own host code refused the call."""

    def __init__(self, reason: str, is_refused: bool = False) -> None:
        super().__init__(reason)
        self.is_refused = is_refused


TilingOf = Callable[[KernelCall], KernelTiling]


def tilings_of(kernel: Kernel) -> TilingOf:
    tiling = kernel.manifest.tiling
    if tiling.host:
        return _host_tilings(kernel)
    if tiling.cann:
        return partial(_from_cann, kernel)
    if tiling.cases:
        recorded = json.loads(kernel.files(tiling.cases)[0].read_text(encoding="utf-8"))
        return partial(_packed, kernel, partial(_recorded, recorded))
    pattern, _, name = tiling.python.partition(":")
    (path,) = kernel.files(pattern)
    function = runpy.run_path(str(path)).get(name)
    if function is None:
        raise kernel.unavailable(f"there is no function {name!r} in {path}")
    return partial(_packed, kernel, function)


def _recorded(recorded: list[dict[str, Any]], call: KernelCall) -> dict[str, Any]:
    wanted = json.loads(json.dumps(asdict(call)))
    for case in recorded:
        if case["call"].items() <= wanted.items():
            return {name: value for name, value in case.items() if name != "call"}
    raise NoTiling(f"no tiling of this call is recorded: {json.dumps(wanted)}")


def _packed(kernel: Kernel, make: Callable[[KernelCall], Mapping[str, Any]], call: KernelCall) -> KernelTiling:
    tiling = {"key": 0, "blocks": call.blocks, "workspace": 0, "fields": {}, **make(call)}
    structs, name = tiling_structs(kernel), kernel.manifest.tiling.struct.partition(":")[2]
    fields = tiling.pop("fields")
    return KernelTiling(**tiling, data=structs.pack(name, fields) if structs else b"")


_OTHER_NAMES = {"ksize": "kernel_size", "strides": "stride", "pads": "padding", "dilations": "dilation"}
"""Names of attributes in operator definitions -> poolproof's, if different."""


def _attributes(kernel: Kernel, call: KernelCall) -> dict[str, Any]:
    """Return the attributes of the operator definition, in its order."""
    stored = next(dtype for dtype in call.dtypes.values() if dtype.startswith("int"))
    values = asdict(call) | {"data_format": call.format, **dict.fromkeys(("dtype", "indices_dtype"), DTYPES[stored][2])}
    return {name: values[_OTHER_NAMES.get(name, name)] for name in kernel.manifest.tiling.attributes}


class _HostAnswer(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("status", "key", "blocks", "workspace", "bytes")),
        ("data", ctypes.c_void_p),
        ("said", ctypes.c_char_p),
    )


def _host_tilings(kernel: Kernel) -> TilingOf:
    """Load the operator's own host code, which takes a call as lines of text."""
    tile = ctypes.CDLL(str(host_library(kernel))).ascendc_tile
    tile.restype = ctypes.POINTER(_HostAnswer)

    def tiling_of(call: KernelCall) -> KernelTiling:
        lines: list[tuple[object, ...]] = [("operator", kernel.manifest.tiling.operator)]
        lines.append(("device", kernel.architecture, call.blocks, call.ub_bytes, int(call.deterministic)))
        for number, (name, shape) in enumerate(call.shapes.items()):
            side = "input" if number < call.inputs else "output"
            lines.append((side, DTYPES[call.dtypes[name]][2], FORMATS[call.format], *shape))
        for value in _attributes(kernel, call).values():
            lines.append(("attribute", *(value if isinstance(value, tuple) else (value,))))
        answer = tile("\n".join(" ".join(map(str, line)) for line in lines).encode()).contents
        if answer.status:
            raise NoTiling((answer.said or b"it gives no reason").decode(errors="replace"), is_refused=True)
        return KernelTiling(answer.key, answer.blocks, answer.workspace, ctypes.string_at(answer.data, answer.bytes))

    return tiling_of


def _from_cann(kernel: Kernel, call: KernelCall) -> KernelTiling:
    try:
        do_op_tiling = importlib.import_module("tbe.common.utils.op_tiling").do_op_tiling
    except ImportError as error:
        raise BackendUnavailable(f"tilings of CANN need its toolkit: source its set_env.sh ({error})") from None
    tensors = [
        {"shape": shape, "ori_shape": shape, "format": call.format, "ori_format": call.format, "dtype": dtype}
        for shape, dtype in zip(call.shapes.values(), call.dtypes.values())
    ]
    attributes = [
        {"name": name, "dtype": "list_int" if isinstance(value, tuple) else type(value).__name__, "value": value}
        for name, value in _attributes(kernel, call).items()
    ]
    sides = tensors[: call.inputs], tensors[call.inputs :]
    tiling = do_op_tiling(kernel.manifest.tiling.cann, {}, *sides, attrs=attributes)
    return KernelTiling(tiling["tiling_key"], tiling["block_dim"], sum(tiling["workspaces"]), tiling["tiling_data"])
