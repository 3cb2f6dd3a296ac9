"""Evidence of a failing case: output, admissible values, input. One npz file per case and backend.

    array                        dtype    shape       meaning
    got                          float64  any         the output as the call left it
    low, high                    float64  as got      finite outputs must lie in [low, high]; none may if low > high
    flags                        uint8    as got      sum of: 1 inf, 2 -inf, 4 nan, 8 zero are also admissible;
                                                      16 finite outputs must be multiples of 2**lattice
    lattice     (optional)       int32    as got      see flags
    exact       (optional)       float64  as got      the exact result, before any rounding
    gradient    (optional)       float64  as indices  grad_output
    indices     (optional)       int64    any         flat cell of its plane that each window points at
    window_first, window_last    int32    (windows    first and last cell of each window of one plane along each
                (optional)                of a plane, spatial axis, without padding, in the order of indices
                                          rank)
    memory_grad_output,          uint8    (bytes,)    the storage of each input before the call
    memory_self, memory_indices
                (optional)
    written     (optional)       uint8    (bytes,)    the memory of an output with its guards: 1 its elements, 2 written
                                                      outside of them, 0 unchanged
    meta                         str      ()          JSON object, see `Meta`

The last axes of ``got`` are the spatial ones; all axes before them count planes. A case of more than a million cells or
windows leaves no evidence. If an input has more than `MAX_ARRAY` bytes, ``memory_*``, and ``call`` of `Meta`, are left
out. float64 represents the formats of all operators exactly. Two programs lie beside the files: `rejudge` prints the
inadmissible elements of ``got``, `call` makes the call again. ``shrunk/`` has, under the name of a failing case, the
evidence of its smallest case.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, cast
from zipfile import BadZipFile, ZipFile

import msgspec
import numpy as np
from numpy.typing import NDArray

from poolproof.reports.rows.failures import assignments
from poolproof.reports.rows.io_errors import replacing
from poolproof.reports.rows.records import parse_record
from poolproof.reports.rows.rejudge import rejected
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import having, read_rows, read_run
from poolproof.reports.rows.verdicts import BadInput, Verdict

MAX_ARRAY = 64 << 20
"""Most bytes of one array."""

_DTYPES = (
    dict.fromkeys(("got", "low", "high"), "float64")
    | {"flags": "uint8", "lattice": "int32", "exact": "float64", "gradient": "float64", "indices": "int64"}
    | dict.fromkeys(("window_first", "window_last"), "int32")
    | dict.fromkeys(("memory_grad_output", "memory_self", "memory_indices", "written"), "uint8")
)

_EMULATED, _EMULATED_PRODUCT = "emulator-", "POOLPROOF_EMULATOR_PRODUCT"

PROGRAMS = ("rejudge.py", "call.py")
"""Files of this folder that are copied beside evidence."""


class EvidenceError(BadInput):
    """An evidence file with wrong content; the text names the file and the array."""


class Meta(TypedDict, total=False):
    """Description of the arrays by their writer; every entry is optional.

    Attributes:
        tensor: Name of the output in ``got``.
        spatial_rank: Number of the last axes that are spatial.
        element: Coordinates of the worst element.
        case: The case as a line of JSON, if ``call`` is left out.
        written: Name of the output of the array ``written``.
        limit: Magnitude to which a saturating cast may clamp; exempt from the lattice.
        faults: The misrouted windows of coded gradients, as in the column ``decoded_faults``.
        checks: Names of the violated checks.
        backend: Name of the backend that made the call.
        call: The call: ``operator``, ``deterministic``, ``outputs`` (names), ``tensors`` (name -> dtype, shape, strides
            and offset in elements, bytes of the storage), and the calls of ``torch`` (None: it cannot) and ``aclnn``:
            function and ``arguments`` in order, where a text is the name of a tensor.
    """

    tensor: str
    spatial_rank: int
    element: list[int]
    case: str
    written: str
    limit: float
    faults: list[dict[str, Any]]
    checks: list[str]
    backend: str
    call: dict[str, Any]


class MisroutedGradient(msgspec.Struct, frozen=True):
    """A coded gradient that arrived in ``cell`` and belongs to ``home`` (coordinates of grad_input).

    It is "copied" if it arrived in both.
    """

    kind: Literal["misrouted", "copied"]
    cell: tuple[int, ...]
    home: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Evidence:
    """One file, read and checked."""

    arrays: Mapping[str, NDArray[Any]]
    meta: Meta

    def held(self, element: object) -> tuple[int, ...] | None:
        """Return the coordinates of an element of ``got``; None if they are invalid."""
        try:
            place = msgspec.convert(element, tuple[int, ...])
        except msgspec.ValidationError:
            return None
        return place if _lies_in(place, self.arrays["got"].shape) else None

    @property
    def rejected(self) -> NDArray[np.bool_]:
        return rejected(self.arrays, self.meta.get("limit", np.inf))

    @property
    def rejected_per_plane(self) -> NDArray[np.int64]:
        """Number of the rejected elements of each plane; a single number if the writer does not define planes."""
        got = self.arrays["got"]
        rank = self.meta.get("spatial_rank", got.ndim)
        planes = math.prod(got.shape[: max(got.ndim - rank, 0)])
        return self.rejected.reshape(planes, -1).sum(axis=1) if planes else np.zeros(0, np.int64)

    @property
    def misrouted(self) -> list[MisroutedGradient]:
        """The gradients with a known origin and destination."""
        faults, shape = self.meta.get("faults"), self.arrays["got"].shape
        read = []
        for fault in faults if isinstance(faults, list) else ():
            with suppress(msgspec.ValidationError):  # a fault of another kind, or not a record
                gradient = msgspec.convert(fault, MisroutedGradient)
                if _lies_in(gradient.cell, shape) and _lies_in(gradient.home, shape):
                    read.append(gradient)
        return read


def write_evidence(path: Path, arrays: Mapping[str, NDArray[Any]], meta: Meta) -> None:
    """Write the evidence of a case; raise `EvidenceError` for an invalid array."""
    checked = {name: np.asarray(array, _DTYPES.get(name)) for name, array in arrays.items()}
    _check(checked, path)
    with replacing(path) as aside, aside.open("wb") as file:
        np.savez_compressed(file, meta=np.array(json.dumps(meta)), **checked)  # type: ignore[arg-type]


def programs() -> dict[str, str]:
    """Return name -> text of the programs that judge evidence and make its call, with numpy only."""
    return {name: Path(__file__).with_name(name).read_text(encoding="utf-8") for name in PROGRAMS}


def write_programs(folder: Path) -> None:
    """Copy the programs beside the evidence of a run, unless they are there."""
    for name, text in programs().items():
        path = folder / "evidence" / name
        if not path.exists():
            with replacing(path) as aside:
                aside.write_text(text, encoding="utf-8")


def read_evidence(path: Path) -> Evidence:
    """Read a file; raise `EvidenceError` if it is damaged or something else."""
    try:
        _check_sizes(path)
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
        records = str(arrays.pop("meta"))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, RuntimeError, SyntaxError, zlib.error) as error:
        raise EvidenceError(f"{path} is not evidence of a case: {error}") from error
    _check(arrays, path)
    return Evidence(arrays, cast(Meta, parse_record(records, str(path), EvidenceError)))


def _check_sizes(path: Path) -> None:
    """Raise ValueError if an array claims to be larger than its file, or than evidence may be."""
    with ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(file)
                size = math.prod(shape) * dtype.itemsize
                if size != member.file_size - file.tell() or size > MAX_ARRAY:
                    raise ValueError(f"{member.filename} says that it has {size:,} bytes")


def case_name(case_id: str, backend: str) -> str:
    return f"{file_name(backend)}-{case_id}"


def evidence_path(folder: Path, case_id: str, backend: str) -> Path:
    """Return the path of a case's evidence in a run's folder, whether it exists or not."""
    return folder / "evidence" / f"{case_name(case_id, backend)}.npz"


def shrunk_path(folder: Path, case_id: str, backend: str) -> Path:
    """Return the path of the evidence of a case's smallest case, whether it exists or not."""
    return folder / "evidence" / "shrunk" / evidence_path(folder, case_id, backend).name


def unclaimed(folder: Path) -> list[Path]:
    """Return the evidence without a row: its writer died before it wrote the row."""
    paths = [path for pattern in ("*.npz", "shrunk/*.npz") for path in sorted((folder / "evidence").glob(pattern))]
    if not paths:
        return []
    wanted = having("case_id", [path.stem.rpartition("-")[2] for path in paths])
    claimed: set[Path] = set()
    for row in read_rows(folder, ["case_id", "backend", "shrunk"], wanted).to_pylist():
        claimed.add(evidence_path(folder, row["case_id"], row["backend"]))
        claimed |= {shrunk_path(folder, row["case_id"], row["backend"])} if row["shrunk"] else set()
    return [path for path in paths if path not in claimed]


def program_lines(run: Path, case_id: str, backend: str) -> list[str]:
    """Return the commands, for a run's folder, that make the call of a case's evidence and judge it again.

    The call is that of the smallest case with evidence; empty if there is none.
    """
    if not evidence_path(run, case_id, backend).exists():
        return []
    wanted = having("case_id", [case_id]) & having("backend", [backend])
    row, *_ = read_rows(run, ["case_id", "backend", "product", "given", "verdict"], wanted).to_pylist()
    return program_lines_of(run, row)


def program_lines_of(run: Path, row: Row) -> list[str]:
    """Return the `program_lines` of a row."""
    evidence, shrunk = (path(run, row["case_id"], row["backend"]) for path in (evidence_path, shrunk_path))
    if not evidence.exists():
        return []
    smallest = shrunk if shrunk.exists() else evidence
    environment = read_run(run)["backends"].get(row["backend"], {}) if _has_libraries(row) else {}
    loaded = [environment.get(f"library {name}", "") for name in environment.get("libraries", "").split(", ")]
    libraries = [text.partition(", ")[2] for text in loaded if text]
    calls = call_lines("evidence/call.py", smallest.relative_to(run).as_posix(), row, libraries)
    return [*calls, f"python evidence/rejudge.py {evidence.relative_to(run).as_posix()}"]


_IS_CALLED = re.compile(f"{_EMULATED}|torch:|(aclnn|torch-(cpu|cuda|npu))$")
"""Backends whose calls `call.py` can make."""

_STACK = "gdb -q -batch -ex run -ex 'thread apply all bt 12' --args "
_STACKS = {Verdict.CRASHED: _STACK, Verdict.TIMED_OUT: f"timeout --foreground -s INT 60 {_STACK}"}
"""Prefix of a call that ends its process, or never ends, to print where it is then."""


def call_lines(program: str, evidence: str, row: Row, libraries: Iterable[object]) -> list[str]:
    """Return the command that makes the call of evidence, and one that prints the stacks of a crash or a hang.

    For an emulator, or libraries that an option named, it names these with their variables. Empty if neither torch nor
    aclnn makes the backend's call.
    """
    if not _IS_CALLED.match(row["backend"]):
        return []
    words, variables = ["python", program, evidence], list[str]()
    if _has_libraries(row):
        words += [word for library in libraries for word in ("--library", str(library))]
        is_emulated = row["backend"].startswith(_EMULATED)
        variables = [f"{_EMULATED_PRODUCT}={row['product']}"] * is_emulated + [*(row.get("given") or ())]
    befores = ["", *filter(None, [_STACKS.get(row["verdict"])])]
    return [" ".join([*assignments(variables), before + shlex.join(words)]) for before in befores]


def _has_libraries(row: Row) -> bool:
    return row["backend"].startswith(_EMULATED) or "--aclnn-library" in (row.get("given") or ())


def file_name(backend: str) -> str:
    """Return a backend's name as part of a file name: ``module:attribute`` becomes ``module_attribute``."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", backend)


def _lies_in(place: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(place) == len(shape) and all(0 <= at < size for at, size in zip(place, shape, strict=True))


def _check(arrays: Mapping[str, NDArray[Any]], path: Path) -> None:
    for name, array in arrays.items():
        if name not in _DTYPES:
            raise EvidenceError(f"{path}: evidence has no array {name!r}; it has {', '.join(_DTYPES)}")
        if array.dtype != _DTYPES[name]:
            raise EvidenceError(f"{path}: array {name!r} must be {_DTYPES[name]}, not {array.dtype}")
    for name in ("got", "low", "high", "flags"):
        if name not in arrays:
            raise EvidenceError(f"{path}: array {name!r} is missing")
    for name in ("low", "high", "flags", "lattice", "exact"):
        if name in arrays and arrays[name].shape != arrays["got"].shape:
            raise EvidenceError(f"{path}: array {name!r} must have the shape of 'got', {list(arrays['got'].shape)}")
    if "gradient" in arrays and ("indices" not in arrays or arrays["gradient"].shape != arrays["indices"].shape):
        raise EvidenceError(f"{path}: array 'gradient' must come with 'indices' of the same shape")
