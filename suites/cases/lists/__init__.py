"""Case lists of others, and our own: every row is a case with an id, or says what keeps it from being one.

A format is an object in `FORMATS`; which of them a file has, its content says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from poolproof.reports.rows.plugins import PluginKind, left_out_line, raised
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.entry import Entry
from poolproof.suites.cases.lists.atk import Atk
from poolproof.suites.cases.lists.base import ListFormat, NotExpressible
from poolproof.suites.cases.lists.fields import ListError
from poolproof.suites.cases.lists.lines import Lines
from poolproof.suites.cases.lists.ttk import Ttk
from poolproof.suites.plugged import LoadedPlugins, load_plugins

__all__ = ["ListError", "ListFormat", "NotExpressible"]

FORMATS: Mapping[str, ListFormat] = {own.name: own for own in (Atk(), Ttk(), Lines())}
"""Every format of ours, by its name."""


@cache
def formats_of_packages() -> LoadedPlugins[ListFormat]:
    """Load, once, the formats that installed packages bring (entry points of the group ``poolproof.case_lists``).

    They get the files that no format of ours takes.
    """
    return load_plugins(PluginKind.CASE_LIST, ListFormat, FORMATS.keys())  # type: ignore[type-abstract]


def format_named(name: str) -> ListFormat:
    """Find a format of ours or of a package; `ListError` lists those there are, and those that are broken."""
    if name in FORMATS:
        return FORMATS[name]
    plugins = formats_of_packages()
    if name in plugins.used:
        return plugins.used[name]
    faults = (left_out_line(record) for record in plugins.records if record["fault"])
    known = ", ".join((*FORMATS, *plugins.used))
    raise ListError("; ".join((f"unknown format {name!r}: choose from {known}", *faults)))


def read_lists(paths: Sequence[Path]) -> list[Entry]:
    """Read the rows of some files; `ListError` names a file that cannot be read, or two of the same name."""
    for name, count in Counter(path.name for path in paths).items():
        if count > 1:
            raise ListError(f"two case lists are called {name}: rows are told by it, so rename one")
    return [entry for path in paths for entry in _read(path)]


def _read(path: Path) -> list[Entry]:
    if path.exists() and not path.is_file():
        raise ListError(f"case list {path} is no file")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ListError(f"case list {path}: {error.strerror}") from error
    except ValueError as error:
        raise ListError(f"case list {path} is no text in UTF-8: {error}") from error
    found = next((own for own in FORMATS.values() if own.recognises(text)), None)
    try:
        entries = list(found.entries(text, path.name)) if found else _read_by_plugin(text, path)
    except (ValueError, RecursionError) as error:
        if found is None:
            raise
        raise ListError(f"case list {path} cannot be read as {found.name}: {error}") from error
    if not entries:
        raise ListError(f"case list {path} has no row")
    return entries


def _read_by_plugin(text: str, path: Path) -> list[Entry]:
    plugins = formats_of_packages()
    faults = [left_out_line(record) for record in plugins.records if record["fault"]]
    for name, plugin in plugins.used.items():
        try:
            if not plugin.recognises(text):
                continue
        except Exception as error:
            faults.append(f"case list format {name!r} could not tell: {raised(error)}")
            continue
        try:
            return list(plugin.entries(text, path.name))
        except Exception as error:
            raise ListError(f"case list {path} cannot be read as {name}: {raised(error)}") from error
    known = ", ".join((*FORMATS, *plugins.used))
    raise ListError("; ".join((f"case list {path} is of none of the formats {known}", *faults)))


DUPLICATE = "the same case again"


def export_rows(chosen: ListFormat, cases: Iterable[Case]) -> tuple[list[object], Counter[str]]:
    """Return (rows of the cases that the format can express, number of the others by reason)."""
    rows: list[object] = []
    left_out: Counter[str] = Counter()
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            left_out[DUPLICATE] += 1
            continue
        seen.add(case.id)
        try:
            rows.append(chosen.carrying(chosen.write(case, len(rows)), case))
        except NotExpressible as reason:
            left_out[str(reason)] += 1
    return rows, left_out


@contextmanager
def format_errors(name: str) -> Iterator[None]:
    """Turn what a package's format raises into `BadInput`; what a built-in one raises is a fault of this suite."""
    try:
        yield
    except Exception as error:
        if name in FORMATS:
            raise
        raise BadInput(f"case list format {name!r} cannot write these cases: {raised(error)}") from error
