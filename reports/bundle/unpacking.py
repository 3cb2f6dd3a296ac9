"""The run in a bundle: its files compared with their hashes, and its record, unpacked and read."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa

from poolproof.reports.bundle.archive import UNREADABLE, NotABundle, check_decoded_sizes, opened, unpack
from poolproof.reports.bundle.packing import SUMS
from poolproof.reports.figures.digest import Digest, read_digest
from poolproof.reports.rows.io_errors import CannotGoOn
from poolproof.reports.rows.store import write_anew
from poolproof.reports.rows.verdicts import BadInput

_MAX_TEXT = 64 << 20
"""Most bytes of run.json and of the sums, which are read completely."""

RECORDED = re.compile(r"run\.json|rows/[^/]+\.(parquet|jsonl)|evidence/(shrunk/)?[^/]+\.npz")
"""Members that a run recorded; everything else in a bundle follows from them."""


@contextmanager
def unpacked(bundle: Path) -> Iterator[Digest]:
    """Unpack the record of a bundle's run into a temporary folder; `BadInput` says what is damaged or unreadable."""
    with opened(bundle) as archive, tempfile.TemporaryDirectory() as scratch:
        _, problems = hash_problems(archive, read_small(archive, SUMS) if SUMS in archive.namelist() else b"")
        if problems:
            raise NotABundle(f"{bundle} is damaged: {problems[0]}")
        yield unpacked_run(archive, Path(scratch), bundle)


def unpacked_run(archive: ZipFile, folder: Path, bundle: Path) -> Digest:
    """Read the run of a bundle, unpacked into a folder; `NotABundle` names the bundle, not that folder."""
    recorded = [name for name in archive.namelist() if RECORDED.fullmatch(name)]
    if "run.json" in recorded:
        read_small(archive, "run.json")
    for name in recorded:
        unpack(archive, name, folder / name)
    try:
        check_decoded_sizes(folder)
        write_anew(folder)
        return read_digest(folder)
    except CannotGoOn:
        raise
    except BadInput as error:
        raise NotABundle(str(error).replace(str(folder), str(bundle))) from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, pa.ArrowException) as error:
        raise NotABundle(f"its record is damaged ({type(error).__name__}: {error})") from error


def hash_problems(archive: ZipFile, sums: bytes) -> tuple[int, list[str]]:
    """Return (number of files in ``sums``, sentences about removed, added and changed files)."""
    lines = sums.decode("utf-8", errors="replace").splitlines()
    expected = {name: value for value, _, name in (line.partition("  ") for line in lines)}
    present = set(archive.namelist()) - {SUMS}
    problems = [f"removed: {name}" for name in sorted(set(expected) - present)]
    problems += [f"added: {name}" for name in sorted(present - set(expected))]
    both = sorted(present & set(expected))
    problems += [f"changed: {name}" for name in both if file_hash(archive, name) != expected[name]]
    return len(expected), problems


def read_small(archive: ZipFile, member: str) -> bytes:
    if archive.getinfo(member).file_size > _MAX_TEXT:
        raise NotABundle(f"{member} has more than {_MAX_TEXT:,} bytes")
    try:
        return archive.read(member)
    except UNREADABLE as error:
        raise NotABundle(f"{member} cannot be unpacked: {error}") from error


def file_hash(archive: ZipFile, name: str) -> str:
    """Hash a file by SHA-256; return an empty text if the archive finds it damaged."""
    try:
        with archive.open(name) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    except UNREADABLE:
        return ""
