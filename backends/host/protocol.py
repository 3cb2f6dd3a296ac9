"""Messages between a host and its judge: frames of JSON about calls with tensors in shared memory.

A frame is four bytes, the little-endian number of bytes that follow, and one JSON object in UTF-8; see
docs/reference/host.md. Both sides import this module, and a host may run Python 3.9 with numpy 1.22. The arguments of
``read_...`` come from the other side and may be anything: `ProtocolError` reports what is not of the protocol. Missing
fields have their defaults.
"""

from __future__ import annotations

import json
import socket
import traceback
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import Call, Outcome, Tensor, dtype_name
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.formats import FORMATS
from poolproof.references.forward_rule import ForwardRule
from poolproof.references.indices import INDEX_DTYPES
from poolproof.references.operators import OPERATORS
from poolproof.references.products import Product
from poolproof.references.windows import Windows

MAX_FRAME = 1 << 24
"""Most bytes of one JSON object."""

_HEADER = 4
_CHUNK = 1 << 16
_MAX_DESCRIPTORS = socket.CMSG_SPACE(4)


class ProtocolError(Exception):
    """An invalid frame or message: the other side cannot be trusted any more."""


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODE = json.JSONDecoder(parse_constant=_no_constant).decode
_ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode


def _decode(text: bytes) -> Any:
    return _DECODE(text.decode())


def _encode(message: Any) -> bytes:
    return _ENCODE(message).encode()


def to_frame(message: Mapping[str, Any], encode: Callable[[Any], bytes] = _encode) -> bytes:
    """Encode a frame; raise `ProtocolError` if it is too long."""
    text = encode(message)
    if len(text) > MAX_FRAME:
        raise ProtocolError(f"a message of {len(text)} bytes is longer than {MAX_FRAME}")
    return len(text).to_bytes(_HEADER, "little") + text


class Channel:
    """One end of a socket pair, with frames in both directions.

    Args:
        connection: The socket.
        encode: May use a faster library than the host's Python has.
        decode: The same.

    ``descriptors`` lists those that came with frames; a caller takes them out.
    """

    def __init__(
        self,
        connection: socket.socket,
        encode: Callable[[Any], bytes] = _encode,
        decode: Callable[[bytes], Any] = _decode,
    ) -> None:
        self.connection = connection
        self._encode, self._decode = encode, decode
        self.descriptors: list[int] = []
        self._received = b""

    def fileno(self) -> int:
        return self.connection.fileno()

    def close(self) -> None:
        self.connection.close()

    def send(self, message: Mapping[str, Any]) -> None:
        self.connection.sendall(to_frame(message, self._encode))

    def receive(self) -> dict[str, Any]:
        """Receive the next message, without a time limit; raise EOFError at the end, `ProtocolError` for garbage."""
        message = self.take()
        while message is None:
            message = self.advance()
        return message

    def advance(self) -> dict[str, Any] | None:
        """Wait for data and receive once; return the next message if it is then complete."""
        received, ancillary, _, _ = self.connection.recvmsg(_CHUNK, _MAX_DESCRIPTORS)
        for _, _, data in ancillary:
            self.descriptors.append(int.from_bytes(data[:4], "little"))
        if not received:
            raise EOFError
        self._received += received
        return self.take()

    def take(self) -> dict[str, Any] | None:
        """Return the next message if it is complete."""
        received = self._received
        if len(received) < _HEADER:
            return None
        end = _HEADER + int.from_bytes(received[:_HEADER], "little")
        if end > _HEADER + MAX_FRAME:
            raise ProtocolError(f"a frame of {end - _HEADER} bytes is longer than {MAX_FRAME}")
        if len(received) < end:
            return None
        self._received = received[end:]
        try:
            message = self._decode(received[_HEADER:end])
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"a frame is not JSON: {error}") from None
        if not isinstance(message, dict):
            raise ProtocolError("a frame is not a JSON object")
        return message


# Calls


_DTYPES = {name: form.dtype for name, form in FORMATS.items()} | {name: np.dtype(name) for name in INDEX_DTYPES}


def write_call(call: Call, place: Callable[[NDArray[np.uint8]], tuple[int, int]]) -> dict[str, Any]:
    """Write a call; ``place`` returns a buffer's offset in shared memory and the bytes of the fence behind it."""
    tensors = {}
    for name, tensor in call.tensors.items():
        (at, fence), array = place(tensor.buffer), tensor.array
        tensors[name] = written = {
            "at": at,
            "bytes": tensor.buffer.nbytes,
            "guard": tensor.guard,
            "dtype": dtype_name(array.dtype),
            "shape": array.shape,
            "strides": tensor.strides,
        }
        if tensor.offset:
            written["offset"] = tensor.offset
        if tensor.tag:
            written["tag"] = tensor.tag
        if fence:
            written["fence"] = fence
    record = {"operator": call.operator.name, "windows": _windows_record(call.attributes), "tensors": tensors}
    return {**record, "deterministic": True} if call.deterministic else record


@lru_cache(256)
def _windows_record(windows: Windows) -> dict[str, Any]:
    return {each.name: getattr(windows, each.name) for each in fields(windows)}


def read_call(record: Mapping[str, Any], memory: NDArray[np.uint8]) -> tuple[Call, list[tuple[int, int]]]:
    """Read a call on tensors in ``memory``; also return its fences, as (first byte, bytes)."""
    operator = OPERATORS[record["operator"]]
    tensors, fences = {}, []
    for name, given_tensor in record["tensors"].items():
        at, size, guard, offset = (
            given_tensor["at"],
            given_tensor["bytes"],
            given_tensor["guard"],
            given_tensor.get("offset", 0),
        )
        dtype, strides = _DTYPES[given_tensor["dtype"]], tuple(given_tensor["strides"])
        buffer, width = memory[at : at + size], dtype.itemsize
        byte_strides = [width * stride for stride in strides]
        array: NDArray = np.ndarray(given_tensor["shape"], dtype, buffer, guard + offset * width, byte_strides)
        tensors[name] = Tensor(buffer, guard, array, strides, offset, given_tensor.get("tag", ""))
        if "fence" in given_tensor:
            fences.append((at + size, given_tensor["fence"]))
    given = [(name, tuple(value) if isinstance(value, list) else value) for name, value in record["windows"].items()]
    windows = _windows(operator.windows, tuple(given))
    return Call(operator, windows, tensors, record.get("deterministic", False)), fences


@lru_cache(256)
def _windows(kind: type[Windows], attributes: tuple[tuple[str, Any], ...]) -> Windows:
    return kind(**dict(attributes))


# Results of calls, and declarations of a backend


class NotAllowed(Exception):
    """An adapter broke a rule; the text continues after the adapter's name."""


@dataclass(frozen=True)
class StateChange:
    """A part of the host's process that a call changed, and whether the host restored it."""

    what: str
    before: str
    after: str
    restored: bool = True


@dataclass(frozen=True)
class Raised:
    """An exception of an adapter and its place; an empty ``type`` stands for a broken rule."""

    type: str
    text: str
    file: str = ""
    line: int = 0
    function: str = ""
    traceback: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        try:
            text = "; ".join([str(error), *getattr(error, "__notes__", ())])
            whole = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        except Exception:
            text = whole = "an exception without a readable text"
        if isinstance(error, NotAllowed):
            return cls("", text[:_LONGEST_TEXT])
        *_, last = [traceback.FrameSummary("", 0, ""), *traceback.extract_tb(error.__traceback__)]
        place = Path(last.filename).name, last.lineno or 0, last.name
        return cls(type(error).__name__, text[:_LONGEST_TEXT], *place, whole[-_LONGEST_TEXT:])


_LONGEST_TEXT = 1 << 16


@dataclass(frozen=True)
class Description:
    """What a backend declares after loading; the fields of `Backend` have the same meaning here.

    Attributes:
        unsupported: (operator, dtype, index dtype) -> the backend's answer, for all that an operator can have.
        libraries: Paths of the shared libraries that loading the backend brought into the process.
        import_folders: Its own folder and those of PYTHONPATH, if modules were imported from there.
        path: The host's ``sys.path``.
    """

    product: Product | None = None
    interface: str = ""
    survives_fork: bool = False
    opens_late: bool = False
    modes: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    unsupported: Mapping[tuple[str, str, str], str | None] = field(default_factory=dict)
    abilities: Mapping[str, Abilities] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()
    import_folders: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    python: str = ""
    numpy: str = ""


def _product_record(product: Product) -> dict[str, Any]:
    return {**vars(product), "like": product.like and _product_record(product.like)}


def write_text(text: str) -> str:
    """Shorten a text. JSON cannot hold half a surrogate pair, so replace it."""
    return text[:_LONGEST_TEXT].encode(errors="replace").decode()


_WRITERS: Mapping[str, Callable[[Any], Any]] = {
    "str": write_text,
    "float": float,
    "Product | None": _product_record,
    "Mapping[str, tuple[int, ...]]": lambda value: {name: list(map(int, lengths)) for name, lengths in value.items()},
    "Mapping[str, tuple[tuple[int, ...], str]]": lambda value: {
        name: [list(map(int, shape)), str(dtype)] for name, (shape, dtype) in value.items()
    },
    "Mapping[str, Abilities]": lambda value: {name: abilities.to_record() for name, abilities in value.items()},
    "Mapping[tuple[str, str, str], str | None]": lambda value: [[*key, reason] for key, reason in value.items()],
}
"""Type of a field -> function that makes JSON, if its value is not JSON itself."""


@lru_cache
def _fields(kind: Any) -> list[tuple[str, str, Any]]:
    """Return name, type and default of each field; MISSING if it has none."""
    defaults: list[Any] = [{} if each.default_factory is not MISSING else each.default for each in fields(kind)]
    return [(each.name, str(each.type), default) for each, default in zip(fields(kind), defaults)]


def write_flat(value: Any) -> dict[str, Any]:
    """Convert a dataclass of the protocol to a record, without fields at their defaults."""
    record = {}
    for name, kind, default in _fields(type(value)):  # type: ignore[arg-type]
        given = getattr(value, name)
        if given != default:
            record[name] = _WRITERS[kind](given) if kind in _WRITERS else given
    return record


def checked(value: Any, kind: Any, method: str) -> Any:
    """Return what an adapter's method returned; raise `NotAllowed` if it has another class."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise NotAllowed(f"returned {value!r:.80} from {method}, not {article} {kind.__name__}")
    return value


def write_outcome(outcome: Any, call: Call) -> dict[str, Any]:
    """Write what `Backend.run` returned, without results and strides that match the call's."""
    record = write_flat(checked(outcome, Outcome, "run"))
    given = [(name, call.tensors[name]) for name in call.operator.outputs]
    shapes, strides = {name: (tensor.shape, dtype_name(tensor.dtype)) for name, tensor in given}, dict(given)
    if all(shapes.get(name) == result for name, result in outcome.results.items()):
        record.pop("results", None)
    if all(name in strides and strides[name].strides == each for name, each in outcome.strides.items()):
        record.pop("strides", None)
    return record


FIRST_CALL = ("threads", "children", "ignored signals", "signal handlers")
"""Changes that the first call of a correct framework may make: MindSpore handles SIGINT from then on."""

DECLARATIONS = {
    "accumulation": AccumulationModel,
    "forward_rule": ForwardRule,
    "is_deterministic": bool,
    "may_refuse": str,
    "route": str,
}
"""Method of `Backend` that takes a call -> type of what it returns."""
