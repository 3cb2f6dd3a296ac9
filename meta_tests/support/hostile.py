"""Files that are no bundle, or that are made to harm whoever opens them; each from a bundle that stands."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from poolproof.reports.rows.arrow import SCHEMA

Files = dict[str, bytes]
Make = Callable[[Path, Files], None]
"""Writes a file of that path, given the members of a bundle that stands."""

HOSTILE: dict[str, Make] = {}


def _hostile(make: Make) -> Make:
    HOSTILE[make.__name__] = make
    return make


def _write(path: Path | io.BytesIO, files: Files, compression: int = ZIP_DEFLATED) -> None:
    with ZipFile(path, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def _with(name: str, content: bytes) -> Make:
    return lambda path, files: _write(path, {**files, name: content})


def _without(name: str) -> Make:
    return lambda path, files: _write(path, {key: value for key, value in files.items() if key != name})


def _member(edit: Callable[[ZipInfo], None], content: bytes = b"x") -> Make:
    def make(path: Path, files: Files) -> None:
        entry = ZipInfo("extra.txt")
        edit(entry)
        with ZipFile(path, "w", ZIP_DEFLATED) as archive:
            for name, each in files.items():
                archive.writestr(name, each)
            archive.writestr(entry, content)

    return make


def _named(name: str) -> Make:
    return _member(lambda entry: setattr(entry, "filename", name))


def _kind(mode: int) -> Make:
    return _member(lambda entry: setattr(entry, "external_attr", (mode | 0o644) << 16))


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


def _cut(share: float) -> Make:
    def edit(content: bytearray) -> None:
        del content[int(len(content) * share) :]

    return _edited(edit)


def _plain(content: bytes) -> Make:
    return lambda path, files: path.write_bytes(content) and None


def _parquet(table: pa.Table) -> bytes:
    target = io.BytesIO()
    pq.write_table(table, target, compression="zstd")
    return target.getvalue()


def _evidence(arrays: dict[str, object]) -> bytes:
    target = io.BytesIO()
    np.savez_compressed(target, **arrays)  # type: ignore[arg-type]
    return target.getvalue()


def _huge_header() -> bytes:
    """An array of a few bytes that says it has 10**15 elements."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 8
    target = io.BytesIO()
    _write(target, {"got.npy": array})
    return target.getvalue()


_DEEP = b"[" * 200_000
_ROWS = "rows/main-0000.parquet"
_NPZ = "evidence/reports_backends_Mixed-000000000000.npz"
_END = b"PK\x05\x06"
_CENTRAL = b"PK\x01\x02"

HOSTILE |= {
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
    "arguments nested too deep": _record(arguments=[[[[]]]] * 10),
    "no rows": _without(_ROWS),
    "rows that are no Parquet": _with(_ROWS, b"PAR1" + b"\0" * 100 + b"PAR1"),
    "rows that are empty": _with(_ROWS, b""),
    "rows of other columns": _with(_ROWS, _parquet(pa.table({"a": [1, 2]}))),
    "rows of numbers for texts": _with(_ROWS, _parquet(pa.table({name: [1.5] for name in SCHEMA.names}))),
    "a journal that is no JSON": _with("rows/main-0001.jsonl", b"{\n" * 10),
    "a journal nested too deep": _with("rows/main-0001.jsonl", _DEEP + b"\n"),
    "a journal of lists": _with("rows/main-0001.jsonl", b"[1, 2]\n"),
    "evidence that is nothing": _with(_NPZ, b""),
    "evidence that is no archive": _with(_NPZ, b"PK\x03\x04" + b"\0" * 100),
    "evidence of objects": _with(_NPZ, _evidence({"got": np.array([{}], object), "meta": np.array("{}")})),
    "evidence of 10**15 elements": _with(_NPZ, _huge_header()),
    "evidence without an account": _with(_NPZ, _evidence({"got": np.zeros(3)})),
    "a name above": _named("../../outside.txt"),
    "an absolute name": _named("/tmp/outside.txt"),
    "a name of another system": _named("..\\outside.txt"),
    "a drive": _named("C:outside.txt"),
    "a name of dots": _named("rows/./main.txt"),
    "a name with an escape": _named("rows/\x1b[31m.txt"),
    "a name of a thousand letters": _named("x" * 1000),
    "a file that is also a folder": _named("rows"),
    "a link": _kind(stat.S_IFLNK),
    "a folder": _kind(stat.S_IFDIR),
    "a device": _kind(stat.S_IFCHR),
    "a FIFO in it": _kind(stat.S_IFIFO),
    "an encrypted member": _patched(_CENTRAL, 8, b"\x01\x00"),
    "a member of an unknown method": _patched(_CENTRAL, 10, b"\x63\x00"),
    "a member of another content": _patched(b"PK\x03\x04", 60, b"\x00\x01\x02\x03"),
}


@_hostile
def the_same_name_twice(path: Path, files: Files) -> None:
    with ZipFile(path, "w") as archive:
        for name, content in [*files.items(), ("run.json", b"{}")]:
            archive.writestr(name, content)


def _large(path: Path, files: Files, name: str, size: int) -> None:
    """A member of so many zeros, which compress to almost nothing, behind the others."""
    stream, crc = _deflated_zeros(size)
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for each, content in files.items():
            if each != name:
                archive.writestr(each, content)
        member = ZipInfo(name)
        member.compress_type, member.file_size, member.CRC = ZIP_DEFLATED, size, crc
        _append(archive, member, stream)


def _append(archive: ZipFile, member: ZipInfo, stream: bytes) -> None:
    """A member as it lies in the archive: `ZipFile.writestr` takes thrice as long for an empty one."""
    assert archive.fp is not None
    member.header_offset, member.compress_size = archive.fp.tell(), len(stream)
    archive.fp.write(member.FileHeader(zip64=False) + stream)
    archive.filelist.append(member)
    archive.start_dir = archive.fp.tell()


@cache
def _deflated_zeros(size: int) -> tuple[bytes, int]:
    """The stream that unpacks to so many zeros, and their CRC: one part, flushed, as often as there are such parts."""
    block = bytes(1 << 24)
    deflating = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    part = deflating.compress(block) + deflating.flush(zlib.Z_FULL_FLUSH)
    count, crc = size // len(block), 0
    for _ in range(count):
        crc = zlib.crc32(block, crc)
    return part * count + deflating.flush(), crc


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


HOSTILE |= {
    "a FIFO": lambda path, files: os.mkfifo(path),
    "a folder itself": lambda path, files: path.mkdir(),
    "nothing there": lambda path, files: None,
    "the same name in other letters": lambda path, files: _write(path, {**files, "RUN.JSON": b"{}"}),
    "compressed oddly": lambda path, files: _write(path, files, zipfile.ZIP_BZIP2),
    "a record of a gibibyte": lambda path, files: _large(path, files, "run.json", 1 << 30),
    "sums of a gibibyte": lambda path, files: _large(path, files, "SHA256SUMS", 1 << 30),
    "more than fits": _edited(_more_than_fits, ZIP_STORED),
    "members that share their bytes": _edited(_sharing_bytes),
}


@_hostile
def a_hundred_thousand_members(path: Path, files: Files) -> None:
    with ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        for number in range(100_001):
            member = ZipInfo(f"x/{number}")
            member.CRC = 0
            _append(archive, member, b"")
