"""A run on disk: a folder with ``run.json``, ``rows/`` and ``evidence/``, safe to kill at any moment.

Every row is appended to a journal (one JSON object a line) the moment it exists; full journals become Parquet
parts, written aside and renamed. Readers take parts and journals together, so whatever was judged is readable.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from poolproof.reports.rows.records import read_record
from poolproof.reports.rows.run_record import ENTRIES, objection
from poolproof.reports.rows.schema import SCHEMA, Row, known_columns, to_table
from poolproof.reports.rows.verdicts import BadInput

ROWS_PER_PART = 5000


class NotARun(BadInput):
    """The folder holds no run; the text says what is missing."""


class InUse(BadInput):
    """Another process writes to the folder; the text names it."""


def lock(folder: Path) -> None:
    """Keep other sessions out of a folder until this process ends, however it ends. `InUse` if one is in it.

    The lock is the system's (flock on the folder itself), so nothing is left behind. File systems that know no such
    locks keep nobody out.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise InUse(f"another session writes to {folder}: wait for its end, or name another --report folder") from None
    except OSError:
        os.close(descriptor)


class RowWriter:
    """Appends the rows of one process to a run. ``name`` must be unique among the processes that write to it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._rows = folder / "rows"
        self._rows.mkdir(parents=True, exist_ok=True)
        self._name = name
        self._pending: list[Row] = []
        self._journal = _unused(self._rows, name, "jsonl")
        self._file = self._journal.open("a", encoding="utf-8")

    def append(self, row: Row) -> None:
        """Write one row; it survives the death of this process from here on."""
        self._file.write(json.dumps(row, separators=(",", ":")) + "\n")
        self._file.flush()
        self._pending.append(row)
        if len(self._pending) >= ROWS_PER_PART:
            self.compact()

    def compact(self) -> None:
        """Turn the journal into a Parquet part."""
        if self._pending:
            _write_part(self._rows, self._name, to_table(self._pending))
        self._file.close()
        self._journal.unlink()
        self._pending = []
        self._journal = _unused(self._rows, self._name, "jsonl")
        self._file = self._journal.open("a", encoding="utf-8")

    def finish_block(self, block: str) -> None:
        """Note that every case of a block has its row, so that a resumed run leaves it out."""
        with (self._rows / f"{self._name}.done").open("a", encoding="utf-8") as done:
            done.write(block + "\n")

    def close(self) -> None:
        self.compact()
        self._file.close()
        self._journal.unlink()


def read_rows(folder: Path, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
    """The rows of a run for which ``where`` holds, in no particular order.

    Columns that an older suite did not write are null, and those that it wrote besides are left out. `NotARun` if the
    folder has none of a run's files.
    """
    rows = folder / "rows"
    if not rows.is_dir():
        raise NotARun(f"{folder} is no run: it has no rows folder")
    names = list(SCHEMA.names if columns is None else columns)
    try:
        tables = [source.to_table(columns=names, filter=where) for source in _sources(rows)]
    except (ValueError, TypeError, RecursionError, OSError) as error:
        raise NotARun(f"the rows of {folder} are damaged: {str(error).splitlines()[0]}") from error
    return pa.concat_tables(tables) if tables else SCHEMA.empty_table().select(names)


def having(column: str, values: Iterable[str]) -> pc.Expression:
    """Holds for rows whose text in a column is one of some values."""
    return pc.field(column).isin(pa.array([str(value) for value in values], pa.string()))


def finished_blocks(folder: Path) -> frozenset[str]:
    """Blocks of which every case has its row."""
    files = (folder / "rows").glob("*.done")
    return frozenset(line for file in files for line in file.read_text(encoding="utf-8").splitlines())


def compact_leftovers(folder: Path) -> None:
    """Turn journals that dead processes left behind into parts. Call when no process writes any more."""
    for journal in sorted((folder / "rows").glob("*.jsonl")):
        leftover = list(_journal_rows(journal))
        if leftover:
            _write_part(journal.parent, journal.stem, to_table(leftover))
        journal.unlink()


def recorded_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """(name inside the folder, path) of what a run recorded; pages and summaries follow from it."""
    for pattern in ("run.json", "rows/*.parquet", "rows/*.jsonl", "evidence/*.npz", "evidence/shrunk/*.npz"):
        for path in sorted(folder.glob(pattern)):
            yield path.relative_to(folder).as_posix(), path


def content_hash(folder: Path) -> str:
    """SHA-256 over everything a run recorded."""
    content = hashlib.sha256()
    for name, path in recorded_files(folder):
        with path.open("rb") as file:
            content.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return content.hexdigest()


def write_run(folder: Path, record: Mapping[str, Any]) -> None:
    """Write ``run.json``: what was run, on what, and how it ended."""
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / "run.json.tmp"
    aside.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    aside.replace(folder / "run.json")


def read_run(folder: Path) -> dict[str, Any]:
    """``run.json`` of a run; `NotARun` when there is none or it is damaged."""
    path = folder / "run.json"
    record = read_record(path, NotARun, f"{folder} is no run", tuple(ENTRIES))
    if reason := objection(record):
        raise NotARun(f"{path} is damaged: {reason}")
    return record


def _sources(rows: Path) -> Iterator[ds.Dataset]:
    """Where the rows of a run lie: its parts as one data set, and each journal that no part has replaced yet."""
    parts = sorted(str(part) for part in rows.glob("*.parquet"))
    if parts:
        yield ds.dataset(parts, SCHEMA)
    for journal in sorted(rows.glob("*.jsonl")):
        yield ds.dataset(to_table(list(_journal_rows(journal))))


def _journal_rows(journal: Path) -> Iterable[Row]:
    """Rows of a journal, in columns of this schema; a last line that was cut off while being written is left out."""
    with journal.open(encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield known_columns(json.loads(line))


def _write_part(folder: Path, name: str, table: pa.Table) -> None:
    part = _unused(folder, name, "parquet")
    aside = part.with_suffix(".tmp")
    pq.write_table(table, aside, compression="zstd")
    aside.replace(part)


def _unused(folder: Path, name: str, suffix: str) -> Path:
    number = 0
    while (path := folder / f"{name}-{number:04d}.{suffix}").exists():
        number += 1
    return path
