"""Folders that hold no run, part of one, one of another suite, or something else: whatever reads them says so."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bad_inputs import HONEST, Ending, Given, Lay, small_session
from bad_inputs.materials import HISTORY, RUN, copies, cut, damaged, record, together, written


def _replaced(make: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda path: (path.unlink(), make(path))


def _journal(content: bytes) -> Lay:
    return damaged("rows/*.parquet", lambda path: (path.parent / "w-0000.jsonl").write_bytes(content))


_KINDS: Mapping[str, Callable[[Path], object]] = {
    "empty": written(b""),
    "cut": cut(0.6),
    "a folder": _replaced(Path.mkdir),
    "a loop": _replaced(lambda path: path.symlink_to(path.name)),
}
_RUNS: Mapping[str, Lay] = {
    "no run.json": damaged("run.json", Path.unlink),
    **{f"a run.json that is {kind}": damaged("run.json", damage) for kind, damage in _KINDS.items()},
    "a run.json that is a pipe": damaged("run.json", _replaced(os.mkfifo)),
    "a run.json of bytes": damaged("run.json", written(bytes(range(256)))),
    "a run.json that is a list": damaged("run.json", written(b"[]")),
    "a run.json nested deeply": damaged("run.json", written(b"[" * 100_000)),
    **{f"no entry {name}": record(**{name: ...}) for name in ("id", "plan", "seed", "mandatory", "suite", "waivers")},
    **{
        f"{name} is {value!r:.30}": record(**{name: value})
        for name, value in (
            *(("id", 5), ("started", "today"), ("started", 1e300), ("finished", -1), ("mandatory", {})),
            *(("mandatory", [{"planned": 1.5}]), ("suite", "0.1"), ("host", []), ("backends", []), ("waivers", [5])),
            *(("backends", {"a": 5}), ("waivers", [{"id": "x"}]), ("waivers_judged_on", "soon")),
            ("strict_waivers", "no"),
        )
    },
    **{f"rows that are {kind}": damaged("rows/*.parquet", damage) for kind, damage in _KINDS.items()},
    "rows that are a text": damaged("rows/*.parquet", written(b"PAR1 conforms PAR1")),
    "rows of other columns": damaged(
        "rows/*.parquet", lambda path: pq.write_table(pa.table({"verdict": [1, 2], "beauty": ["a", "b"]}), path)
    ),
    "a journal of bytes": _journal(b"\xff\xfe\n" * 3),
    "a journal of no JSON": _journal(b"verdict\n"),
    "a journal of numbers": _journal(b"5\n"),
    "a journal of other types": _journal(b'{"verdict": [5]}\n'),
    "a journal nested deeply": _journal(b"[" * 99_999 + b"\n"),
}
"""Runs in which something is damaged."""

_READERS = {
    "show": ("show", RUN),
    "package": ("package", RUN, "-o", "new.zip"),
    "compare": ("compare", RUN, RUN),
    "history add": ("history", "add", "new", RUN),
    "waive": ("waive", RUN, "000000000000", "--reason=r", "--owner=o", "--expires=2027-01-01"),
}


def _entry(name: str, damage: Callable[[Path], object]) -> Lay:
    """A copy of the history in which one file of its run is changed."""
    return damaged(f"run=*/{name}", damage, of=HISTORY)


def _crossed_out(path: Path) -> None:
    path.write_bytes(b"x" * path.stat().st_size)


_HISTORIES = {"rows cut": _entry("rows/rows.parquet", _crossed_out), "cells cut": _entry("cells.parquet", _crossed_out)}
"""Histories that look whole, and are not."""

_ENTRIES: Mapping[str, Lay] = {
    "an empty entry": _entry("entry.json", written(b"")),
    "an entry that is a list": _entry("entry.json", written(b"[]")),
    "an entry of nothing": _entry("entry.json", written(b"{}")),
    "an entry of wrong types": _entry(
        "entry.json", written(b'{"run": 5, "started": [], "verdict": {}, "content": 1, "sizes": 7}')
    ),
    "rows that are missing": _entry("rows/rows.parquet", Path.unlink),
}
"""Histories with a run that is passed over, which is said."""

LOST = "scatter_backends:lost"


def listed() -> Iterator[Given]:
    for number, (what, lay) in enumerate(_RUNS.items()):
        for name in ("show", list(_READERS)[1 + number % (len(_READERS) - 1)]):
            yield Given(f"folder: {what}, {name}", "poolproof", _READERS[name], (RUN,), lay=lay)
        if number % 3 == 0 and "waivers is" not in what:
            yield _session(f"folder: {what}, resumed", ("--resume", "--cases=6"), lay)
    for what, lay in _HISTORIES.items():
        asked = ("history", "query", HISTORY, "SELECT count(*) FROM rows, cells")
        yield Given(f"folder: a history, {what}", "poolproof", asked, ("parquet",), lay=lay)
        yield Given(f"folder: a history, {what}, drawn", "poolproof", ("dashboard", HISTORY, "-o", "site"), lay=lay)
    asked = ("history", "query", HISTORY, "SELECT ~99.5")  # DuckDB lists every type that there is a function for
    yield Given("folder: a history, SQL of no function", "poolproof", asked, ("No function",), lay=copies(HISTORY))
    yield Given("folder: a path of lines", "poolproof", ("show", "a\nb\nc\nd\ne\nf"), ("lines of text",))
    for what, lay in _ENTRIES.items():
        asked = ("history", "list", HISTORY)
        yield Given(f"folder: a history, {what}", "poolproof", asked, (), Ending.HARMLESS, lay=lay)
    for what, option, backend in (
        *(("another seed", "--seed=1", LOST), ("another backend", "-q", HONEST), ("other cases", "--cases=7", LOST)),
        *(("another dtype", "--dtype=float32", LOST), ("another aspect", "--aspect=memory", LOST)),
    ):
        lay = together(copies(RUN), lambda here, made: (here / RUN / "rows" / "w-0007.jsonl").write_text('{"cut'))
        yield _session(f"folder: resumed with {what}", ("--cases=6", option, "--resume"), lay, backend)
    yield _session("folder: a run that is there", ("--cases=6",), copies(RUN))
    lay = together(
        copies(RUN),
        lambda here, made: (here / RUN).rename(here / "poolproof-report"),
        lambda here, made: (here / "poolproof-report" / "run.json").write_text("{}"),
    )
    arguments = small_session("--cases=6")
    yield Given("folder: the default one holds something else", "pytest", arguments, ("poolproof-report",), lay=lay)


def _session(name: str, options: tuple[str, ...], lay: Lay, backend: str = LOST) -> Given:
    arguments = small_session("--report=run", *options, backend=backend)
    about = "pytest --resume" if "--resume" in options else "pytest --report"
    return Given(name, "pytest", arguments, (RUN,), about=about, lay=lay)
