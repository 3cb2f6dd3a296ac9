"""Zip files of another party, checked before they are unpacked, and their content, checked before it is read.

A bundle may be made to harm: to fill a disk, to write elsewhere, to keep a reader busy, or to show readers different
files. Whatever is in the file, the reader gets one sentence and `NotABundle`.

A small file may be large after decoding. A dictionary of one text of 1 MiB, named by each of 20,000 rows, takes
gibibytes as a table. So does an array of zeros. Therefore sizes are taken from headers.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from poolproof.reports.rows.io_errors import writing
from poolproof.reports.rows.store import ROWS_PER_PART
from poolproof.reports.rows.verdicts import BadInput

MAX_MEMBERS = 100_000
"""Most files in one bundle. A run keeps some hundreds of evidence files, with three small files each."""

MAX_BYTES = 16 << 30
"""Largest size of all files unpacked: a million rows take less than one GiB."""

_MAX_DIRECTORY = 256 * MAX_MEMBERS
"""Most bytes of the list of members, which is read into memory completely."""

_END, _END_SIZE = b"PK\x05\x06", 22
_LONGEST_COMMENT = 1 << 16
_DIRECTORY_SIZE_AT = 12

_LOCAL_HEADER, _CENTRAL_HEADER = 30, 46
_NAME_LENGTH_AT, _EXTRA_LENGTH_AT, _LENGTHS_AT = 26, 28, 28
_LARGE_END_SIZE = 76
_HAS_DESCRIPTOR, _DESCRIPTOR = 0x8, b"PK\x07\x08"
_IS_ENCRYPTED = 0x1
_NAME = re.compile(r"[A-Za-z0-9_.,@+-]+(/[A-Za-z0-9_.,@+-]+)*")

_MAX_ROWS = 20_000_000
"""Most rows of a run."""

_FEW_ROWS = 10_000
"""Rows that may be so similar that each takes less than a byte. Usually every case has its own hash."""

_TEXT = 32 << 20
"""Bytes that all texts of all rows may take in any case."""

_TEXT_PER_BYTE = 64
"""Further bytes of texts per byte of the files of rows; real runs have up to twelve."""

_JOURNAL = 32 << 20
"""Most bytes of one journal."""

_EVIDENCE = 4 << 30
"""Most bytes of all arrays of all evidence."""

UNREADABLE = (BadZipFile, OSError, EOFError, ValueError, NotImplementedError, RuntimeError, struct.error, zlib.error)
"""Exceptions from reading a damaged or unusual zip file."""


class NotABundle(BadInput):
    """The file is not a bundle, or cannot be opened safely; the text says why."""


@contextmanager
def opened(bundle: Path) -> Iterator[ZipFile]:
    """Open the archive after checking that it is harmless; `NotABundle` says what is wrong with it."""
    with _regular_file(bundle) as file:
        _check_directory_size(bundle, file)
        try:
            archive = ZipFile(file)
        except UNREADABLE as error:
            raise NotABundle(f"{bundle} is no bundle: {_sentence(error)}") from error
        with archive:
            if reason := next(_objections(archive.infolist()), "") or _stowaway(file, archive):
                raise NotABundle(f"{bundle} is no bundle that can be opened safely: {reason}")
            yield archive


def unpack(archive: ZipFile, member: str, target: Path) -> None:
    """Write one member to a new file; raise `NotABundle` for damaged content, `CannotWrite` for a full disk."""
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with archive.open(member) as source, writing(target), target.open("xb") as file:
            shutil.copyfileobj(source, file)
    except UNREADABLE as error:
        raise NotABundle(f"{member} cannot be unpacked: {_sentence(error)}") from error


def _regular_file(bundle: Path) -> BinaryIO:
    """Open the file without waiting: a FIFO would block the reader forever."""
    try:
        descriptor = os.open(bundle, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        raise NotABundle(f"there is no file {bundle}") from None
    except (OSError, ValueError) as error:
        raise NotABundle(f"{bundle} is no bundle: {_sentence(error)}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotABundle(f"{bundle} is no bundle: it is no regular file")
    return os.fdopen(descriptor, "rb")


def _check_directory_size(bundle: Path, file: BinaryIO) -> None:
    """Reject an archive with a too long list of members before reading that list."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END_SIZE - _LONGEST_COMMENT))
    tail = file.read()
    start = tail.rfind(_END)
    if start < 0 or len(tail) - start < _END_SIZE:
        raise NotABundle(f"{bundle} is no bundle: it is no zip file")
    (length,) = struct.unpack_from("<L", tail, start + _DIRECTORY_SIZE_AT)
    if length > _MAX_DIRECTORY:
        raise NotABundle(
            f"{bundle} is no bundle that can be opened safely: its list of members takes {length:,} bytes, "
            f"a bundle's at most {_MAX_DIRECTORY:,}"
        )
    file.seek(0)


def _objections(members: list[ZipInfo]) -> Iterator[str]:
    """Yield the faults of a list of members."""
    if len(members) > MAX_MEMBERS:
        yield f"it has {len(members):,} members, a bundle at most {MAX_MEMBERS:,}"
    if (unpacked := sum(member.file_size for member in members)) > MAX_BYTES:
        yield f"unpacked it takes {unpacked:,} bytes, a bundle at most {MAX_BYTES:,}"
    for member in members:
        if reason := _objection_to_member(member):
            yield f"{member.filename!r} {reason}"
    spelled = {member.filename.lower() for member in members}  # some file systems ignore case
    if len(spelled) < len(members):
        yield "two members have the same name"
    folders = {str(parent) for name in spelled for parent in PurePosixPath(name).parents}
    yield from (f"{name!r} is both a file and a folder" for name in sorted(folders & spelled))
    end = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        if member.header_offset < end:  # members that share bytes let a small file unpack to any size
            yield f"{member.filename!r} shares its bytes with another member"
        end = member.header_offset + _LOCAL_HEADER + len(member.filename.encode()) + member.compress_size


def _stowaway(file: BinaryIO, archive: ZipFile) -> str:
    """Return where the file has bytes outside its members; another reader might find another file in them."""
    end = 0
    for member in sorted(archive.infolist(), key=lambda member: member.header_offset):
        if member.header_offset != end:
            return f"it holds bytes in front of {member.filename!r} that belong to no member"
        file.seek(end)
        header = file.read(_LOCAL_HEADER)
        if len(header) < _LOCAL_HEADER:
            return f"{member.filename!r} is cut off"
        listed_so = (member.FileHeader(is_large)[:_EXTRA_LENGTH_AT] for is_large in (None, True))
        if header[:_EXTRA_LENGTH_AT] not in listed_so:
            return f"{member.filename!r} is another in front of its bytes than in the list of members"
        end += _LOCAL_HEADER + sum(struct.unpack_from("<HH", header, _NAME_LENGTH_AT)) + member.compress_size
        if member.flag_bits & _HAS_DESCRIPTOR:
            file.seek(end)
            end += 16 if file.read(4) == _DESCRIPTOR else 12
    file.seek(archive.start_dir)
    listed, at = file.read(), 0
    for _ in archive.infolist():
        at += _CENTRAL_HEADER + sum(struct.unpack_from("<HHH", listed, at + _LENGTHS_AT))
    if archive.start_dir != end or len(listed) - at not in (_END_SIZE, _LARGE_END_SIZE + _END_SIZE):
        return "it holds bytes behind its members that belong to none"
    return ""


def _objection_to_member(member: ZipInfo) -> str:
    """Return the fault of one member; empty if there is none."""
    kind = stat.S_IFMT(member.external_attr >> 16)
    parts = PurePosixPath(member.filename).parts
    if not _NAME.fullmatch(member.filename) or {".", ".."} & set(parts) or len(member.filename) > 255:
        return "is no name that a bundle uses"
    if member.orig_filename != member.filename:
        return "is written in two ways"
    if kind not in (0, stat.S_IFREG):
        return "is a link, a folder or a device"
    if member.flag_bits & _IS_ENCRYPTED:
        return "is encrypted"
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        return f"is compressed by method {member.compress_type}, which no bundle uses"
    return ""


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def check_decoded_sizes(folder: Path) -> None:
    """Raise `NotABundle` if a run, unpacked into a folder, would take more memory than any real run."""
    parts = sorted((folder / "rows").glob("*.parquet"))
    rows, texts = 0, _TEXT + _TEXT_PER_BYTE * sum(part.stat().st_size for part in parts)
    for part in parts:
        try:
            rows += _check_rows(part)
            texts -= _check_texts(part, texts)
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise NotABundle(f"rows/{part.name} is damaged: {str(error).splitlines()[0]}") from error
    if rows > _MAX_ROWS:
        raise NotABundle(f"it has {rows:,} rows, and no run has more than {_MAX_ROWS:,}")
    for journal in sorted((folder / "rows").glob("*.jsonl")):
        with journal.open("rb") as lines:
            is_long = sum(1 for _ in zip(lines, range(ROWS_PER_PART + 1), strict=False)) > ROWS_PER_PART
        if is_long or journal.stat().st_size > _JOURNAL:
            raise NotABundle(f"rows/{journal.name} is longer than any journal")
    arrays = sum(map(_array_bytes, (folder / "evidence").rglob("*.npz")))
    if arrays > _EVIDENCE:
        raise NotABundle(f"its evidence takes {arrays:,} bytes, and that of no run more than {_EVIDENCE:,}")


def _check_rows(part: Path) -> int:
    """Return the number of rows of a part."""
    rows, size = pq.read_metadata(part).num_rows, part.stat().st_size
    if rows > _FEW_ROWS + size:
        raise NotABundle(f"rows/{part.name} has {rows:,} rows in {size:,} bytes")
    return rows


def _check_texts(part: Path, allowed: int) -> int:
    """Return the bytes of all texts of a part; raise `NotABundle` above ``allowed``."""
    metadata = pq.read_metadata(part)
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    stored = sum(group.column(each).total_uncompressed_size for group in groups for each in range(group.num_columns))
    if stored > allowed + 8 * metadata.num_rows * metadata.num_columns:
        raise NotABundle(f"rows/{part.name} takes {stored:,} bytes, which no {metadata.num_rows:,} rows do")
    texts = _decoded_texts(part)
    if texts > allowed:
        raise NotABundle(f"rows/{part.name} has texts of {texts:,} bytes, and all rows may have {allowed:,}")
    return texts


def _decoded_texts(part: Path) -> int:
    """Return the bytes of all texts of a part as a table; read only its dictionaries and the indices into them."""
    leaves = [column.path for column in pq.ParquetFile(part).schema if column.physical_type == "BYTE_ARRAY"]
    file, total = pq.ParquetFile(part, read_dictionary=leaves), 0
    for group, leaf in product(range(file.num_row_groups), leaves):  # Arrow cannot join dictionaries of several groups
        for batch in file.iter_batches(row_groups=[group], columns=[leaf]):
            words = batch.column(0)
            words = words.flatten() if pa.types.is_list(words.type) else words
            lengths = pc.binary_length(words.dictionary if pa.types.is_dictionary(words.type) else words)
            lengths = lengths.take(words.indices) if pa.types.is_dictionary(words.type) else lengths
            total += pc.sum(lengths.cast(pa.int64())).as_py() or 0
    return total


def _array_bytes(path: Path) -> int:
    """Return the bytes of all arrays in a file of evidence; 0 if it is unreadable, which is reported elsewhere."""
    try:
        with ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist())
    except UNREADABLE:
        return 0
