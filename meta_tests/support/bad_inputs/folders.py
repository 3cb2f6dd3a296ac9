"""Folders that hold no run, part of one, one of another suite, or something else: whatever reads them says so."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bad_inputs import Ending, Given, Lay, small_session
from bad_inputs.materials import HISTORY, RUN, copies, cut, damaged, record, together, written

_ROWS = "rows/*.parquet"


def _removed(path: Path) -> None:
    path.unlink()


def _made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _made_a_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _made_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _other_columns(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"verdict": [1, 2], "beauty": ["a", "b"]}), path)


_RUNS: Mapping[str, Lay] = {
    "no run.json": damaged("run.json", _removed),
    "an empty run.json": damaged("run.json", written(b"")),
    "half a run.json": damaged("run.json", cut(0.5)),
    "a run.json of bytes": damaged("run.json", written(bytes(range(256)))),
    "a run.json that is a list": damaged("run.json", written(b"[]")),
    "a run.json that is a number": damaged("run.json", written(b"5")),
    "a run.json nested deeply": damaged("run.json", written(b"[" * 100_000)),
    "a run.json that is a folder": damaged("run.json", _made_a_folder),
    "a run.json that is a loop": damaged("run.json", _made_a_loop),
    "a run.json that is a pipe": damaged("run.json", _made_a_pipe),
    **{f"no entry {name}": record(**{name: ...}) for name in ("id", "plan", "seed", "mandatory", "suite", "waivers")},
    **{
        f"{name} is {value!r:.30}": record(**{name: value})
        for name, value in (
            ("id", 5),
            ("started", "today"),
            ("started", 1e300),
            ("finished", -1),
            ("mandatory", {}),
            ("mandatory", [{"planned": 1.5}]),
            ("suite", "0.1"),
            ("host", []),
            ("backends", []),
            ("backends", {"a": 5}),
            ("waivers", [5]),
            ("waivers", [{"id": "x"}]),
            ("waivers_judged_on", "soon"),
            ("strict_waivers", "no"),
        )
    },
    "rows that are cut": damaged(_ROWS, cut(0.6)),
    "rows that are empty": damaged(_ROWS, written(b"")),
    "rows that are a text": damaged(_ROWS, written(b"PAR1 conforms PAR1")),
    "rows that are a folder": damaged(_ROWS, _made_a_folder),
    "rows that are a loop": damaged(_ROWS, _made_a_loop),
    "rows of other columns": damaged(_ROWS, _other_columns),
    "a journal of bytes": damaged(_ROWS, lambda path: (path.parent / "w-0000.jsonl").write_bytes(b"\xff\xfe\n" * 3)),
    "a journal of no JSON": damaged(_ROWS, lambda path: (path.parent / "w-0000.jsonl").write_text("verdict\n")),
    "a journal of numbers": damaged(_ROWS, lambda path: (path.parent / "w-0000.jsonl").write_text("5\n")),
    "a journal of other types": damaged(
        _ROWS, lambda path: (path.parent / "w-0000.jsonl").write_text(json.dumps({"verdict": [5]}) + "\n")
    ),
    "a journal nested deeply": damaged(
        _ROWS, lambda path: (path.parent / "w-0000.jsonl").write_text("[" * 99_999 + "\n")
    ),
}
"""Runs in which something is damaged."""

_READERS: Mapping[str, tuple[str, ...]] = {
    "show": ("show", RUN),
    "package": ("package", RUN, "-o", "new.zip"),
    "compare": ("compare", RUN, RUN),
    "history add": ("history", "add", "new", RUN),
    "waive": ("waive", RUN, "000000000000", "--reason=r", "--owner=o", "--expires=2027-01-01"),
}


def _entry(name: str, damage: Callable[[Path], object]) -> Lay:
    """A copy of the history in which one file of its run is changed."""

    def lay(here: Path, made: Path) -> None:
        copies(HISTORY)(here, made)
        (target,) = sorted((here / HISTORY).glob(f"run=*/{name}"))[:1]
        damage(target)

    return lay


_HISTORIES: Mapping[str, Lay] = {
    "rows cut": _entry("rows/rows.parquet", lambda path: path.write_bytes(b"x" * path.stat().st_size)),
    "cells cut": _entry("cells.parquet", lambda path: path.write_bytes(b"x" * path.stat().st_size)),
}
"""Histories that look whole, and are not."""

_ENTRIES: Mapping[str, Lay] = {
    "an empty entry": _entry("entry.json", written(b"")),
    "an entry that is a list": _entry("entry.json", written(b"[]")),
    "an entry of nothing": _entry("entry.json", written(b"{}")),
    "an entry of wrong types": _entry(
        "entry.json", written(b'{"run": 5, "started": [], "verdict": {}, "content": 1, "sizes": 7}')
    ),
    "rows that are missing": _entry("rows/rows.parquet", _removed),
}
"""Histories with a run that is passed over, which is said."""


def listed() -> Iterator[Given]:
    for number, (what, lay) in enumerate(_RUNS.items()):
        for name in ("show", list(_READERS)[1 + number % (len(_READERS) - 1)]):
            yield Given(f"folder: {what}, {name}", "poolproof", _READERS[name], (RUN,), lay=lay)
        if number % 3 == 0 and "waivers is" not in what:
            arguments = small_session("--report=run", "--resume", "--cases=6", backend="scatter_backends:lost")
            yield Given(f"folder: {what}, resumed", "pytest", arguments, (RUN,), about="pytest --resume", lay=lay)
    for what, lay in _HISTORIES.items():
        asked = ("history", "query", HISTORY, "SELECT count(*) FROM rows, cells")
        yield Given(f"folder: a history, {what}", "poolproof", asked, ("parquet",), lay=lay)
        yield Given(f"folder: a history, {what}, drawn", "poolproof", ("dashboard", HISTORY, "-o", "site"), lay=lay)
    for what, lay in _ENTRIES.items():
        asked = ("history", "list", HISTORY)
        yield Given(f"folder: a history, {what}", "poolproof", asked, (), Ending.HARMLESS, lay=lay)
    yield from _resumed()


def _resumed() -> Iterator[Given]:
    """Another run's folder, or the same run asked for something else."""
    for what, options, backend in (
        ("another seed", ("--seed=1",), "scatter_backends:lost"),
        ("another backend", (), "scatter_backends:honest"),
        ("other cases", ("--cases=7",), "scatter_backends:lost"),
        ("another dtype", ("--dtype=float32",), "scatter_backends:lost"),
        ("another aspect", ("--aspect=memory",), "scatter_backends:lost"),
    ):
        arguments = small_session("--report=run", "--cases=6", *options, "--resume", backend=backend)
        lay = together(copies(RUN), lambda here, made: (here / RUN / "rows" / "w-0007.jsonl").write_text('{"cut'))
        yield Given(f"folder: resumed with {what}", "pytest", arguments, (RUN,), about="pytest --resume", lay=lay)
    arguments = small_session("--report=run", "--cases=6", backend="scatter_backends:lost")
    yield Given("folder: a run that is there", "pytest", arguments, (RUN,), about="pytest --report", lay=copies(RUN))
    lay = together(copies(RUN), lambda here, made: (here / RUN).rename(here / "poolproof-report"))
    lay = together(lay, lambda here, made: (here / "poolproof-report" / "run.json").write_text("{}"))
    arguments = small_session("--cases=6")
    yield Given("folder: the default one holds something else", "pytest", arguments, ("poolproof-report",), lay=lay)
