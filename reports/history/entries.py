"""A history: a folder of finished runs that several machines may write to at the same time.

    run=ID/entry.json      the run's line in `runs`; written last
    run=ID/run.json        as in the run's folder, so that an entry is itself a run's folder
    run=ID/rows/           all rows in one Parquet file
    run=ID/evidence/       evidence of failing cases
    run=ID/cells.parquet   the run per group (`schema.GROUP`): counts, precision, times

There is no index to lock or to lose. A writer fills a folder of its own and renames it into place, which is atomic. A
half-written folder is skipped with a warning. DuckDB reads the rest.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from poolproof.reports.figures import tables
from poolproof.reports.figures.conclusion import asked
from poolproof.reports.figures.digest import Digest, read_digest
from poolproof.reports.rows.environment import library_of
from poolproof.reports.rows.io_errors import writing
from poolproof.reports.rows.records import read_record
from poolproof.reports.rows.schema import GROUP
from poolproof.reports.rows.store import content_hash, read_rows
from poolproof.reports.rows.verdicts import BadInput

if TYPE_CHECKING:
    import duckdb

ENTRY = "entry.json"
CELLS = "cells.parquet"
ROWS = "rows/rows.parquet"

ENTRIES = ("run", "started", "verdict", "content", "sizes")
"""Keys that every entry needs."""

QUERY_SECONDS = 20.0
"""Time limit of a query, because an endless one is easily typed."""

_PREFIX, _UNFINISHED = "run=", ".incoming-"


class HistoryError(BadInput):
    """A history that cannot be read or added to; the text says what to do."""


@dataclass(frozen=True)
class Entries:
    """Runs of a history, oldest first, and warnings about skipped ones; ``folder`` is the history's."""

    folder: Path
    paths: Mapping[str, Path]
    runs: pd.DataFrame
    warnings: tuple[str, ...]

    def check_any(self) -> None:
        if not self.paths:
            raise HistoryError(f"the history {self.folder} holds no complete run yet")


def add(history: Path, run: Path) -> Path:
    """Add a finished run and return its place; adding the same run again changes nothing."""
    digest = read_digest(run)
    if not digest.run["finished"]:
        raise HistoryError(f"{run} has not finished: continue it with --resume, then add it")
    place = history / f"{_PREFIX}{_entry_id(digest.run)}"
    if not place.exists():
        incoming = history / f"{_UNFINISHED}{uuid4().hex}"
        try:
            with writing(place):
                _fill(incoming, digest)
            incoming.rename(place)
        except OSError:
            if not place.exists():
                raise
        finally:
            shutil.rmtree(incoming, ignore_errors=True)
    if _read_entry(place)["content"] != content_hash(run):
        raise HistoryError(f"{place} contains another state of this run: remove it to add this one")
    return place


def read_entries(history: Path) -> Entries:
    """Read the complete runs; raise `HistoryError` if there is no such folder."""
    if not history.is_dir():
        raise HistoryError(f"there is no history {history}")
    paths, lines, warnings = {}, [], []
    for folder in sorted(history.iterdir()):
        if folder.name.startswith(_UNFINISHED):
            warnings.append(f"{folder} is a half-written run, skipped: remove it unless it is being written now")
        elif folder.name.startswith(_PREFIX):
            try:
                entry = _checked_entry(folder)
            except HistoryError as error:
                warnings.append(f"{error}, skipped")
            else:
                paths[entry["run"]] = folder
                lines.append(entry)
    runs = pd.DataFrame(lines, columns=list(lines[0]) if lines else ["run", "started"])
    return Entries(history, paths, runs.sort_values(["started", "run"], ignore_index=True), tuple(warnings))


def connect(entries: Entries) -> duckdb.DuckDBPyConnection:
    """Connect DuckDB, with the views ``runs``, ``libraries``, ``cells`` and ``rows``; each has a column ``run``.

    It can access nothing else: no file, no network, no setting.
    """
    connection = _duckdb().connect()
    for setting in ("TimeZone = 'UTC'", "enable_external_access = false", "lock_configuration = true"):
        connection.execute(f"SET {setting}")
    connection.register("runs", entries.runs)
    connection.register("libraries", _libraries(entries.runs))
    for view, file in (("cells", CELLS), ("rows", ROWS)):
        files = [str(path / file) for path in entries.paths.values()]
        if files:
            connection.register(view, _read_lazily(files))
    return connection


def _read_lazily(files: Sequence[str]) -> ds.Dataset:
    """Open Parquet files with different columns lazily, with a column ``run`` from the folder's name."""
    run = pa.schema([("run", pa.string())])
    try:
        schema = pa.unify_schemas([*(pq.read_schema(file) for file in files), run])
    except (pa.ArrowException, OSError) as error:
        raise HistoryError(f"the history is damaged: {str(error).splitlines()[0]}") from error
    return ds.dataset(files, schema, "parquet", partitioning=ds.partitioning(run, flavor="hive"))


def query(entries: Entries, sql: str, seconds: float = QUERY_SECONDS) -> pd.DataFrame:
    """Answer a query in SQL; raise `HistoryError` if it is wrong, with DuckDB's message, or takes too long."""
    duckdb = _duckdb()
    if not sql.strip():
        raise HistoryError("there is no SQL in an empty text: try SELECT run, verdict FROM runs")
    entries.check_any()
    connection = connect(entries)  # keep it until the answer is read: DuckDB below 2 closes unreferenced connections
    limit = Timer(seconds, connection.interrupt)
    limit.start()
    try:
        relation = connection.sql(sql)
        return relation.df() if relation is not None else pd.DataFrame()
    except duckdb.InterruptException:
        raise HistoryError(f"no answer within {seconds:g} s: simplify the query, or raise --timeout") from None
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise HistoryError("\n".join(str(error).splitlines()[:4])) from error  # long lists of types follow
    finally:
        limit.cancel()


def _libraries(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the library that each backend of each run loaded, see `library_of`."""
    lines = [
        (run["run"], backend, library_of(environment))
        for run in tables.records(runs)
        for backend, environment in json.loads(run["backends"]).items()
    ]
    return pd.DataFrame(lines, columns=["run", "backend", "library"], dtype=str)


def _fill(folder: Path, digest: Digest) -> None:
    (folder / "rows").mkdir(parents=True)
    rows = _merge_rows(digest.folder, folder / ROWS)
    evidence = digest.folder / "evidence"
    if evidence.is_dir():
        shutil.copytree(evidence, folder / "evidence")
    shutil.copyfile(digest.folder / "run.json", folder / "run.json")
    pq.write_table(pa.Table.from_pandas(_groups(digest), preserve_index=False), folder / CELLS, compression="zstd")
    sizes = {name: (folder / name).stat().st_size for name in (ROWS, CELLS, "run.json")}
    (folder / ENTRY).write_text(json.dumps(_entry(digest, rows) | {"sizes": sizes}, indent=2) + "\n", encoding="utf-8")


def _merge_rows(run: Path, target: Path) -> int:
    parts = [pq.ParquetFile(part) for part in sorted((run / "rows").glob("*.parquet"))]
    schema = parts[0].schema_arrow if parts else read_rows(run).schema
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for part in parts:
            writer.write_table(part.read())
    return sum(part.metadata.num_rows for part in parts)


def _groups(digest: Digest) -> pd.DataFrame:
    """Return the run per group: counts, planned cases, precision of conforming cases, and times in seconds."""
    rows = read_rows(digest.folder, [*GROUP, *tables.PRECISION, "call_seconds", "seconds"])
    measured = rows.group_by(list(GROUP), use_threads=False)
    times = measured.aggregate([("call_seconds", "approximate_median"), ("seconds", "sum")]).to_pandas()
    times = times.rename(columns={"call_seconds_approximate_median": "call_seconds", "seconds_sum": "seconds"})
    groups = digest.counts.join(tables.precision(rows, GROUP)).join(times.set_index(list(GROUP))).reset_index()
    covered = digest.coverage
    if set(GROUP).issubset(covered.columns):
        planned = covered.groupby(list(GROUP), dropna=False, as_index=False)[["planned", "missing"]].sum()
        groups = groups.merge(planned, on=list(GROUP), how="outer")
    else:
        groups[["planned", "missing"]] = 0
    counts = [*digest.counts.columns, "planned", "missing"]
    groups[counts] = groups[counts].fillna(0).astype("int64")
    groups.insert(1, "product", groups["backend"].map(digest.products).fillna(""))
    return groups


def _entry(digest: Digest, rows: int) -> dict[str, Any]:
    """Return one line of the view ``runs``; times are seconds since 1970."""
    run, conclusion = digest.run, digest.conclusion
    return {
        "run": _entry_id(run),
        **{name: run[name] for name in ("started", "finished", "plan", "seed")},
        "verdict": conclusion.overall.word,
        "narrowed": conclusion.narrowed,
        "asked": asked(run),
        **conclusion.totals,
        "planned": conclusion.planned,
        "missing": conclusion.missing,
        "rows": rows,
        "content": content_hash(digest.folder),
        "suite": run["suite"]["version"],
        "suite_content": run["suite"]["content_hash"],
        "backends": json.dumps(run["backends"]),
        "host": json.dumps(run["host"]),
    }


def _entry_id(run: Mapping[str, Any]) -> str:
    """Return an id that sorts by time: the run's start, and eight digits of its random id, so that a line has room."""
    started = datetime.fromtimestamp(run["started"], UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{started}-{re.sub(r'[^A-Za-z0-9-]', '-', run['id'][:8])}"


def _read_entry(folder: Path) -> dict[str, Any]:
    return read_record(folder / ENTRY, HistoryError, f"{folder} is half-written", ENTRIES)


def _checked_entry(folder: Path) -> dict[str, Any]:
    """Read an entry without its sizes, after checking that all files have their recorded sizes."""
    entry = _read_entry(folder)
    entry.setdefault("narrowed", "")  # an earlier version wrote none
    entry.setdefault("asked", f"{entry.get('plan', '')} {entry['narrowed']}".strip())
    sizes = entry.pop("sizes")
    if not (isinstance(sizes, dict) and isinstance(entry["run"], str) and isinstance(entry["started"], int | float)):
        raise HistoryError(f"{folder / ENTRY} is damaged: run, started or sizes are not as they were written")
    for name, size in sizes.items():
        path = folder / name
        if not path.exists() or path.stat().st_size != size:
            raise HistoryError(f"{folder} is half-written: {name} is incomplete")
    return entry


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise HistoryError("a history is read by DuckDB: pip install 'poolproof[history]'") from error
    return duckdb
