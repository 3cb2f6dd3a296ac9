"""Files that are no bundle, or that are made to harm whoever opens them; each from a bundle that stands."""

import io
import json
import os
import re
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from poolproof.reports.rows.arrow import SCHEMA

Files = dict[str, bytes]
Make = Callable[[Path, Files], None]
"""Writes a file of that path, given the members of a bundle that stands."""


def _write(path: Path | io.BytesIO, files: Files, compression: int = ZIP_DEFLATED) -> None:
    with ZipFile(path, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def _with(name: str, content: bytes) -> Make:
    return lambda path, files: _write(path, {**files, name: content})


def _without(name: str) -> Make:
    return lambda path, files: _write(path, {key: value for key, value in files.items() if key != name})


def _appended(change: Callable[[ZipFile], object]) -> Make:
    """A bundle to which something is added as it stands."""

    def make(path: Path, files: Files) -> None:
        _write(path, files)
        with ZipFile(path, "a") as archive:
            change(archive)

    return make


def _member(name: str = "extra.txt", mode: int = stat.S_IFREG) -> Make:
    entry = ZipInfo("extra.txt")
    entry.filename, entry.external_attr = name, (mode | 0o644) << 16
    return _appended(lambda archive: archive.writestr(entry, b"x"))


def _edited(edit: Callable[[bytearray], object], compression: int = ZIP_DEFLATED) -> Make:
    """A bundle whose bytes are changed."""

    def make(path: Path, files: Files) -> None:
        _write(path, files, compression)
        content = bytearray(path.read_bytes())
        edit(content)
        path.write_bytes(content)

    return make


def _patched(signature: bytes, offset: int, value: bytes) -> Make:
    """Bytes of the first header of a kind, overwritten."""

    def edit(content: bytearray) -> None:
        place = content.find(signature) + offset
        content[place : place + len(value)] = value

    return _edited(edit)


def _record(**changes: object) -> Make:
    def make(path: Path, files: Files) -> None:
        record = {**json.loads(files["run.json"]), **changes}
        _write(path, {**files, "run.json": json.dumps(record).encode()})

    return make


def _selected(budget: dict[str, float] | None = None, **changes: object) -> Make:
    def make(path: Path, files: Files) -> None:
        record = json.loads(files["run.json"])
        record["selection"] |= changes
        record |= {"budget": budget} if budget else {}
        _write(path, {**files, "run.json": json.dumps(record).encode()})

    return make


def _many_parts(path: Path, files: Files) -> None:
    """Forty small parts, whose texts together take gibibytes."""
    part = _alike(10_000, "reason", pa.array(["x" * (16 << 10)]))
    _write(path, {**files, **{f"rows/more-{number:04}.parquet": part for number in range(40)}})


def _cut(share: float) -> Make:
    def edit(content: bytearray) -> None:
        del content[int(len(content) * share) :]

    return _edited(edit)


def _plain(content: bytes) -> Make:
    return lambda path, files: path.write_bytes(content) and None


def _written(write: Callable[[io.BytesIO], object]) -> bytes:
    target = io.BytesIO()
    write(target)
    return target.getvalue()


def _parquet(columns: dict[str, list[float]]) -> bytes:
    return _written(lambda target: pq.write_table(pa.table(columns), target, compression="zstd"))


def _alike(rows: int, column: str, words: pa.Array) -> bytes:
    """Rows that all have the one word in a column, or one list of it, and nothing in any other."""
    places = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), words)
    lists = pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32)), places)
    made = {field.name: pa.nulls(rows, field.type) for field in SCHEMA}
    made |= {name: lists if pa.types.is_list(SCHEMA.field(name).type) else places for name in [column] if name}
    return _written(lambda target: pq.write_table(pa.table(made), target, compression="zstd", store_schema=False))


def _evidence(**arrays: np.ndarray) -> bytes:
    return _written(lambda target: np.savez_compressed(target, **arrays))


def _huge_header(elements: int) -> bytes:
    """An array of a few bytes that says it has so many elements."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }" % elements
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 8
    return _written(lambda target: _write(target, {"got.npy": array}))


def _large(name: str) -> Make:
    """A member of a gibibyte of zeros, which compress to almost nothing, behind the others."""

    def make(path: Path, files: Files) -> None:
        _write(path, {each: content for each, content in files.items() if each != name})
        with ZipFile(path, "a", ZIP_DEFLATED, compresslevel=1) as archive, archive.open(name, "w") as member:
            for _ in range(64):
                member.write(bytes(1 << 24))

    return make


def _a_hundred_thousand_members(archive: ZipFile) -> None:
    for number in range(100_001):
        archive.writestr(ZipInfo(f"x/{number}"), b"")


def _more_than_fits(content: bytearray) -> None:
    """Twenty members that say they have 4 GiB each."""
    for place in _members(content)[:20]:
        content[place + 24 : place + 28] = b"\xfe\xff\xff\xff"


def _sharing_bytes(content: bytearray) -> None:
    first, *others = _members(content)
    for place in others[:2]:
        content[place + 42 : place + 46] = content[first + 42 : first + 46]


def _members(content: bytearray) -> list[int]:
    """Where the entries of the list of members begin."""
    return [found.start() for found in re.finditer(re.escape(_CENTRAL), content)]


_DEEP = b"[" * 200_000
_ROWS = "rows/main-0000.parquet"
_NPZ = "evidence/reports_backends_Mixed-000000000000.npz"
_MORE_ROWS = "rows/more-0000.parquet"
_WORDS = pa.array(["x" * (1 << 20)])
_END = b"PK\x05\x06"
_CENTRAL = b"PK\x01\x02"

HOSTILE: dict[str, Make] = {
    "a FIFO": lambda path, files: os.mkfifo(path),
    "a folder itself": lambda path, files: path.mkdir(),
    "nothing there": lambda path, files: None,
    "empty file": _plain(b""),
    "a text": _plain(b"PASS\n" * 100),
    "an end of an archive and nothing before": _plain(_END + b"\0" * 18),
    "random bytes": _plain(bytes(np.random.default_rng(0).integers(0, 256, 5000, np.uint8))),
    "cut to a tenth": _cut(0.1),
    "cut to a half": _cut(0.5),
    "cut by some bytes": _cut(0.9999),
    "a list of members of 4 GiB": _patched(_END, 12, b"\xff\xff\xff\xfe"),
    "a list of members somewhere else": _patched(_END, 16, b"\xff\xff\xff\x00"),
    "a member before the file": _patched(_CENTRAL, 42, b"\xff\xff\xff\x7f"),
    "no sums": _without("SHA256SUMS"),
    "empty sums": _with("SHA256SUMS", b""),
    "sums that are no text": _with("SHA256SUMS", b"\xff\xfe\x00" * 50),
    "no record": _without("run.json"),
    "a record that is no JSON": _with("run.json", b"{"),
    "a record that is a list": _with("run.json", b"[]"),
    "a record of nothing": _with("run.json", b"{}"),
    "a record nested too deep": _with("run.json", _DEEP),
    "a record that is no text": _with("run.json", b"\xff\xfe{}"),
    "groups that are a number": _record(mandatory=5),
    "groups that are texts": _record(mandatory=["all"]),
    "a group of a negative number": _record(mandatory=[{"backend": "x", "planned": -1}]),
    "a start that is a text": _record(started="yesterday"),
    "a start beyond all days": _record(started=1e300),
    "a start that is no number": _record(started=float("nan")),
    "backends in a list": _record(backends=["torch-cpu"]),
    "a host that is a number": _record(host=3),
    "a suite that is a text": _record(suite="ours"),
    "waivers that are texts": _record(waivers=["all"]),
    "waivers without an end": _record(waivers=[{"id": "a"}]),
    "a day of judging that is none": _record(waivers_judged_on="soon"),
    "a selection of nothing": _record(selection={}),
    "a selection of an aspect that is not there": _record(selection={"plan": "smoke", "cases": 1, "aspects": [[]]}),
    "a plan of 10**8 cases": _selected(cases=10**8),
    "a plan of 10**8 cases that a budget cut off": _selected({"seconds": 9.0, "took": 9.0, "until": 1.0}, cases=10**8),
    "as many cases as a plan can have, cut off": _selected({"seconds": 9.0, "took": 9.0, "until": 1.0}, cases=100_000),
    "arguments nested too deep": _record(arguments=[[[[]]]] * 10),
    "no rows": _without(_ROWS),
    "rows that are no Parquet": _with(_ROWS, b"PAR1" + b"\0" * 100 + b"PAR1"),
    "rows that are empty": _with(_ROWS, b""),
    "rows of other columns": _with(_ROWS, _parquet({"a": [1, 2]})),
    "rows of numbers for texts": _with(_ROWS, _parquet({name: [1.5] for name in SCHEMA.names})),
    "a journal that is no JSON": _with("rows/main-0001.jsonl", b"{\n" * 10),
    "a journal nested too deep": _with("rows/main-0001.jsonl", _DEEP + b"\n"),
    "a journal of lists": _with("rows/main-0001.jsonl", b"[1, 2]\n"),
    "evidence that is nothing": _with(_NPZ, b""),
    "evidence that is no archive": _with(_NPZ, b"PK\x03\x04" + b"\0" * 100),
    "evidence of objects": _with(_NPZ, _evidence(got=np.array([{}], object), meta=np.array("{}"))),
    "evidence of 10**15 elements": _with(_NPZ, _huge_header(10**15)),
    "evidence of 2**40 elements": _with(_NPZ, _huge_header(1 << 40)),
    "texts of a mebibyte by a dictionary": _with(_MORE_ROWS, _alike(20_000, "reason", _WORDS)),
    "lists of such texts": _with(_MORE_ROWS, _alike(20_000, "waivers", _WORDS)),
    "many parts of such texts": _many_parts,
    "five million rows of nothing": _with(_MORE_ROWS, _alike(5_000_000, "", _WORDS)),
    "a journal of a million rows": _with("rows/main-0001.jsonl", b"{}\n" * 1_000_000),
    "bytes before its members": _edited(lambda content: content.__setitem__(slice(0, 0), b"#!/bin/sh\n")),
    "bytes behind its members": _edited(lambda content: content.extend(b"\0" * 100)),
    "a comment": _appended(lambda archive: setattr(archive, "comment", b"as agreed")),
    "evidence without an account": _with(_NPZ, _evidence(got=np.zeros(3))),
    "a name above": _member("../../outside.txt"),
    "an absolute name": _member("/tmp/outside.txt"),
    "a name of another system": _member("..\\outside.txt"),
    "a drive": _member("C:outside.txt"),
    "a name of dots": _member("rows/./main.txt"),
    "a name with an escape": _member("rows/\x1b[31m.txt"),
    "a name of a thousand letters": _member("x" * 1000),
    "a file that is also a folder": _member("rows"),
    "a link": _member(mode=stat.S_IFLNK),
    "a folder": _member(mode=stat.S_IFDIR),
    "a device": _member(mode=stat.S_IFCHR),
    "a FIFO in it": _member(mode=stat.S_IFIFO),
    "an encrypted member": _patched(_CENTRAL, 8, b"\x01\x00"),
    "a member of an unknown method": _patched(_CENTRAL, 10, b"\x63\x00"),
    "a member that is stored, as its own header has it": _patched(b"PK\x03\x04", 8, b"\x00\x00"),
    "a member of another length, as its own header has it": _patched(b"PK\x03\x04", 18, b"\x01\x00\x00\x00"),
    "a member of another content": _patched(b"PK\x03\x04", 60, b"\x00\x01\x02\x03"),
    "the same name twice": _appended(lambda archive: archive.writestr("run.json", b"{}")),
    "the same name in other letters": _with("RUN.JSON", b"{}"),
    "compressed oddly": lambda path, files: _write(path, files, ZIP_BZIP2),
    "a record of a gibibyte": _large("run.json"),
    "sums of a gibibyte": _large("SHA256SUMS"),
    "a hundred thousand members": _appended(_a_hundred_thousand_members),
    "more than fits": _edited(_more_than_fits, ZIP_STORED),
    "members that share their bytes": _edited(_sharing_bytes),
}
