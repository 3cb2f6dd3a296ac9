"""A run on disk: a folder with ``run.json``, ``rows/`` and ``evidence/``, safe to kill at any moment.

Every row is appended at once to a journal (one JSON object a line). Full journals become Parquet parts, written under
another name and renamed. Readers take parts and journals together, so all judged rows are readable. Arrow is imported
only to write or read Parquet: judging does not need it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from io import FileIO
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from poolproof.reports.rows.io_errors import replacing, writing
from poolproof.reports.rows.records import read_record
from poolproof.reports.rows.schema import COLUMNS, Row
from poolproof.reports.rows.verdicts import BadInput

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

DEFAULT_FOLDER = Path("poolproof-report")
"""Default folder of a run."""

ROWS_PER_PART = 5000

_compact_json = json.JSONEncoder(check_circular=False, separators=(",", ":"))  # `json.dumps` makes one for each row


class NotARun(BadInput):
    """The folder has no run; the text says what is missing."""


class InUse(BadInput):
    """Another process writes to the folder, which the text names."""


def lock(folder: Path, other: str = "") -> int | None:
    """Lock a folder against other sessions until this process ends; raise `InUse` if one is in it.

    The system keeps the lock (flock on the folder), so nothing remains after it. Closing the returned descriptor ends
    it earlier. Return None if the file system has no such locks.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        other = other or f"type --report {folder}-2"
        raise InUse(f"another session writes to {folder}: wait for its end, or {other}") from None
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other sessions within the context."""
    descriptor = lock(folder, "name another folder")
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


class RowWriter:
    """Appends the rows of one process to a run. ``name`` is unique among the processes that write to it.

    `CannotWrite` is raised if a row cannot be written; earlier rows stay readable.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._rows = folder / "rows"
        with writing(self._rows):
            self._rows.mkdir(parents=True, exist_ok=True)
        self._name = name
        self._pending: list[Row] = []
        self._journal = _unused(self._rows, name)
        self._end: FileIO | None = None

    def append(self, row: Row) -> None:
        """Write one row, which then survives the death of this process."""
        with writing(self._journal):
            if self._end is None:
                self._end = self._journal.open("ab", buffering=0)
            _write_line(self._end, _compact_json.encode(row))
        self._pending.append(row)
        if len(self._pending) >= ROWS_PER_PART:
            self.close()

    def close(self) -> None:
        """Turn the journal into a part; the next row begins another journal."""
        if self._end is not None:
            self._end.close()
            self._end = None
        if self._pending:
            _replace_journal(self._journal, self._pending)
        self._pending = []
        self._journal = _unused(self._rows, self._name)

    def finish_block(self, block: str) -> None:
        """Record that every case of a block has its row: a resumed run skips it."""
        file = self._rows / f"{self._name}.done"
        with writing(file), file.open("ab", buffering=0) as end:
            _write_line(end, block)


def read_rows(folder: Path, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
    """Return the rows of a run for which ``where`` holds, in no order; raise `NotARun` if it has no rows folder."""
    import pyarrow as pa

    from poolproof.reports.rows.arrow import SCHEMA

    rows = folder / "rows"
    if not rows.is_dir():
        raise NotARun(f"{folder} is no run: it has no rows folder")
    names = [column.name for column in COLUMNS] if columns is None else list(columns)
    try:
        tables = [source.to_table(columns=names, filter=where) for source in _sources(rows)]
    except (ValueError, TypeError, RecursionError, OSError) as error:
        raise NotARun(f"the rows of {folder} are damaged: {str(error).splitlines()[0]}") from error
    return pa.concat_tables(tables) if tables else SCHEMA.empty_table().select(names)


@dataclass(frozen=True)
class Stretch:
    """Consecutive rows of a part: its ``group``-th row group."""

    part: Path
    group: int

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        import pyarrow.parquet as pq

        return pq.ParquetFile(self.part).read_row_group(self.group, None if columns is None else list(columns))


def stretches(folder: Path) -> list[Stretch]:
    """Return the stretches of a run without journals, in order."""
    import pyarrow.parquet as pq

    parts = {part: pq.read_metadata(part).num_row_groups for part in sorted((folder / "rows").glob("*.parquet"))}
    return [Stretch(part, group) for part, groups in parts.items() for group in range(groups)]


def write_anew(folder: Path) -> None:
    """Write a run's rows anew, as parts of stretches of `ROWS_PER_PART`, with the metadata of the old parts.

    Readers skip rows by the statistics in a footer, and the author of a run may have forged these.
    """
    import pyarrow.parquet as pq

    compact_leftovers(folder)
    for part in sorted((folder / "rows").glob("*.parquet")):
        source = pq.ParquetFile(part)
        with replacing(part) as aside, pq.ParquetWriter(aside, source.schema_arrow, compression="zstd") as target:
            for batch in _batches(source, part):
                target.write_batch(batch)


def _batches(source: pq.ParquetFile, part: Path) -> Iterator[pa.RecordBatch]:
    try:
        yield from source.iter_batches(ROWS_PER_PART)
    except OSError as error:  # from Arrow, about its input
        raise NotARun(f"rows/{part.name} is damaged: {str(error).splitlines()[0]}") from error


def having(column: str, values: Iterable[str]) -> pc.Expression:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.field(column).isin(pa.array([str(value) for value in values], pa.string()))


def finished_blocks(folder: Path) -> frozenset[str]:
    """Return the blocks that have a row for every case."""
    files = (folder / "rows").glob("*.done")
    return frozenset(line[:-1] for file in files for line in _whole_lines(file))


def compact_leftovers(folder: Path) -> None:
    """Turn the journals of dead processes into parts, when no process writes any more."""
    for aside in (folder / "rows").glob("*.tmp"):
        with writing(aside):
            aside.unlink()
    for journal in sorted((folder / "rows").glob("*.jsonl")):
        _replace_journal(journal, [] if _is_replaced(journal) else [*map(json.loads, _whole_lines(journal))])


def recorded_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (name inside the folder, path) of a run's recorded files; pages and summaries follow from them."""
    for pattern in ("run.json", "rows/*.parquet", "rows/*.jsonl", "evidence/*.npz", "evidence/shrunk/*.npz"):
        for path in sorted(folder.glob(pattern)):
            yield path.relative_to(folder).as_posix(), path


def content_hash(folder: Path) -> str:
    """Return the SHA-256 of everything that a run recorded."""
    content = hashlib.sha256()
    for name, path in recorded_files(folder):
        with path.open("rb") as file:
            content.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return content.hexdigest()


def write_run(folder: Path, record: Mapping[str, Any]) -> None:
    """Write ``run.json``: what was run, on what, and how it ended. `CannotWrite` leaves the old file unchanged."""
    with replacing(folder / "run.json") as aside:
        aside.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def read_run(folder: Path) -> dict[str, Any]:
    """Read ``run.json``; raise `NotARun` if there is none, or if it is damaged."""
    path = folder / "run.json"
    record = read_record(path, NotARun, f"{folder} is no run", tuple(ENTRIES))
    for name, (expected, *kinds) in (ENTRIES | _OPTIONAL).items():
        try:
            for kind in kinds if name in record else ():
                msgspec.convert(record[name], kind)
        except msgspec.ValidationError:
            raise NotARun(f"{path} is damaged: entry {name!r} should be {expected}") from None
    return record


def _sources(rows: Path) -> Iterator[ds.Dataset]:
    """Yield the data sets of a run's rows: its parts as one, and each journal that has no part yet."""
    import pyarrow.dataset as ds

    from poolproof.reports.rows.arrow import SCHEMA, to_table

    parts = sorted(str(part) for part in rows.glob("*.parquet"))
    if parts:
        yield ds.dataset(parts, SCHEMA)
    for journal in sorted(rows.glob("*.jsonl")):
        if not _is_replaced(journal):
            yield ds.dataset(to_table(map(json.loads, _whole_lines(journal))))


def _whole_lines(file: Path) -> Iterator[str]:
    """Yield the lines of a file, without a last one that was cut off while being written."""
    with file.open(encoding="utf-8") as lines:
        yield from (line for line in lines if line.endswith("\n"))


def _write_line(end: FileIO, line: str) -> None:
    """Write a line at the end of a file, all of it or nothing."""
    data, written = line.encode() + b"\n", 0
    try:
        while written < len(data):
            written += end.write(data[written:])
    except OSError:
        end.truncate(end.tell() - written)
        raise


_REPLACES = b"replaces journal"
"""Metadata of a part: the journal with its rows, whether or not that still exists."""


def _replace_journal(journal: Path, rows: list[Row]) -> None:
    """Replace a journal by a part with ``rows``, if there are any; the journal is readable until then."""
    if rows:
        import pyarrow.parquet as pq

        from poolproof.reports.rows.arrow import to_table

        with replacing(journal.with_suffix(".parquet")) as aside:
            table = to_table(rows)
            metadata = {**table.schema.metadata, _REPLACES: journal.name}
            pq.write_table(table.replace_schema_metadata(metadata), aside, compression="zstd")
    with writing(journal):
        journal.unlink(missing_ok=True)


def _is_replaced(journal: Path) -> bool:
    """Tell whether a part has replaced a journal, even if its writer died before it removed that."""
    part = journal.with_suffix(".parquet")
    if not part.exists():
        return False
    import pyarrow.parquet as pq

    return _REPLACES in (pq.read_schema(part).metadata or {})


def _unused(folder: Path, name: str) -> Path:
    """Return a journal that neither exists nor has a part."""
    journals = (folder / f"{name}-{number:04d}.jsonl" for number in count())
    return next(file for file in journals if not (file.exists() or file.with_suffix(".parquet").exists()))


Time = Annotated[float, msgspec.Meta(ge=0, lt=2.5e11)]
"""Unix time in seconds, before the year 9999."""

Texts = dict[str, str]


class SuiteRecord(msgspec.Struct):
    version: str
    content_hash: str


class GroupRecord(msgspec.Struct):
    """Number of rows of a mandatory group; its other entries are columns with the text of its rows."""

    planned: Annotated[int, msgspec.Meta(ge=0)]


class BudgetRecord(msgspec.Struct):
    """Seconds, used seconds, and their end; after a finished run null if they were enough."""

    seconds: Time
    took: Time
    until: Time | None


class MergedRecord(msgspec.Struct):
    shard: str
    id: str
    host: Texts
    started: Time
    rows: int
    finished: Time | None = None


ENTRIES: dict[str, tuple[str, *tuple[Any, ...]]] = {
    "id": ("a text", str),
    "plan": ("a text", str),
    "seed": ("an integer", int),
    "arguments": ("a list of texts", list[str]),
    "started": ("a Unix time", Time),
    "finished": ("a Unix time, or null while the run continues", Time | None),
    "mandatory": ("a list of groups with the number of their cases", list[GroupRecord], list[dict[str, str | int]]),
    "suite": ("a version and a content_hash", SuiteRecord, Texts),
    "host": ("an object of texts", Texts),
    "backends": ("an object of objects of texts", dict[str, Texts]),
    "waivers": ("a list of waivers", list[dict[str, Any]]),
    "waivers_judged_on": ("a day like 2027-03-31", date),
    "strict_waivers": ("true or false", bool),
}
"""Entries of every run.json: a description, and the types of the value."""

_OPTIONAL: dict[str, tuple[str, *tuple[Any, ...]]] = {
    "plan_cases": ("an integer", int),
    "budget": ("seconds, took, and until when it was used up, or null", BudgetRecord),
    "selection": ("an object", dict[str, Any]),
    "merged": ("a list of parts, each with shard, id, host, started, finished and rows", list[MergedRecord]),
}
"""Entries of some run.json."""


def run_schema() -> dict[str, Any]:
    """Describe ``run.json`` as JSON Schema. Further entries are allowed."""
    entries = ENTRIES | _OPTIONAL
    kinds = [kind for _, *kinds in entries.values() for kind in kinds]
    schemas, parts = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    found = iter(schemas)
    properties = {
        name: {"description": expected, "allOf": [next(found) for _ in kinds]}
        for name, (expected, *kinds) in entries.items()
    }
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "run.json", "type": "object"}
    return schema | {"required": [*ENTRIES], "properties": properties, "$defs": parts}


def is_used_up(run: Mapping[str, Any]) -> bool:
    """Tell whether a finished run ended because its budget was used up."""
    return bool(run["finished"] and run.get("budget", {}).get("until"))
