"""Case lists of others, and our own: every row is a case with an id, or says what keeps it from being one.

A format is an object in `FORMATS`; which of them a file has, its content says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.entry import Entry
from poolproof.suites.cases.lists.atk import Atk
from poolproof.suites.cases.lists.base import ListFormat, NotExpressible
from poolproof.suites.cases.lists.benchdnn import Benchdnn
from poolproof.suites.cases.lists.fields import ListError
from poolproof.suites.cases.lists.lines import Lines
from poolproof.suites.cases.lists.msprobe import Msprobe
from poolproof.suites.cases.lists.onnx_models import MODEL, OnnxModels
from poolproof.suites.cases.lists.ttk import Ttk

__all__ = ["ListError", "ListFormat", "NotExpressible"]

FORMATS: Mapping[str, ListFormat] = {own.name: own for own in (Atk(), Lines())}
"""Every format of ours that is written, too, by its name."""

READ_ONLY: Mapping[str, ListFormat] = {own.name: own for own in (Ttk(), Msprobe(), OnnxModels(), Benchdnn())}
_OURS = {**FORMATS, **READ_ONLY}


@cache
def all_formats() -> Mapping[str, ListFormat]:
    """Return our formats and those of installed packages (entry points of the group ``poolproof.case_lists``), by name.

    `ListError` names the package of the first format that cannot be used.
    """
    found = dict(_OURS)
    for point in entry_points(group="poolproof.case_lists"):
        title = f"case list format {point.name!r} of package {point.dist.name if point.dist else 'unknown'}"
        try:
            own = point.load()
        except Exception as error:
            raise ListError(f"{title} cannot be loaded: {_one_line(error)}") from error
        if not isinstance(own, ListFormat):
            raise ListError(f"{title} is {own!r:.80}, no ListFormat")
        if own.name in found:
            raise ListError(f"{title} is called {own.name!r}, and so is another format")
        found[own.name] = own
    return found


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def format_named(name: str) -> ListFormat:
    """Find a format of ours or of a package; `ListError` lists those there are."""
    own = FORMATS.get(name) or all_formats().get(name)
    if own is None:
        written = ", ".join(each for each in all_formats() if each not in READ_ONLY)
        raise ListError(f"unknown format {name!r}: choose from {written}")
    return own


def read_lists(paths: Sequence[Path]) -> list[Entry]:
    """Read the rows of some files; `ListError` names a file that cannot be read, or two of the same name."""
    for name, count in Counter(path.name for path in paths).items():
        if count > 1:
            raise ListError(f"two case lists are called {name}: rename one, as rows name their list")
    return [entry for path in paths for entry in _read(path)]


def _read(path: Path) -> list[Entry]:
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ListError(f"case list {path} is no file")
    is_model = path.is_dir() or path.suffix == Path(MODEL).suffix
    try:
        text = "" if is_model else path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ListError(f"case list {path}: {error.strerror}") from error
    except ValueError as error:
        hint = "; save an .xlsx file as CSV" if path.suffix == ".xlsx" else ""
        raise ListError(f"case list {path} is no text in UTF-8{hint}: {error}") from error
    own = READ_ONLY[OnnxModels.name] if is_model else _format_of(text, path)
    with format_errors(own.name, f"read {path}"):
        try:
            entries = list(own.entries_at(path, text))
        except (ValueError, RecursionError) as error:
            raise ListError(f"case list {path} cannot be read as {own.name}: {error}") from error
    if not entries:
        raise ListError(f"case list {path} has no row ({own.name}, {own.looks or 'of a package'})")
    return entries


def _format_of(text: str, path: Path) -> ListFormat:
    """Return the first format that recognises the text; those of packages are loaded if no built-in one does."""
    for own in _OURS.values():
        if own.recognises(text):
            return own
    for name, own in all_formats().items():
        with format_errors(name, f"recognise {path}"):
            if name not in _OURS and own.recognises(text):
                return own
    known = "; ".join(f"{name}, {own.looks}" if own.looks else name for name, own in all_formats().items())
    raise ListError(f"case list {path} is none of the formats that poolproof reads: {known}")


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
def format_errors(name: str, task: str) -> Iterator[None]:
    """Turn what a package's format raises into `BadInput`; what a built-in one raises is a fault of this suite."""
    try:
        yield
    except Exception as error:
        if name in _OURS or isinstance(error, BadInput):
            raise
        raise BadInput(f"case list format {name!r} cannot {task}: {_one_line(error)}") from error
