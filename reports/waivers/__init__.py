"""Waivers: known deviations that a person has accepted, with scope, reason, owner and expiry.

A waiver is a table in a TOML file. It covers a row if every entry of its scope matches. It turns the row's verdict from
"violates" to "waived" if all violated checks are covered. Checks of harm to the program around the call must be named.
Nothing is hidden: waived rows keep their findings, and a run prints which waivers it used, which it did not need and
which have expired.
"""

from __future__ import annotations

import operator
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from glob import escape
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tomli_w

from poolproof.references.nearest import unknown_name
from poolproof.reports.rows.checks import CHECK_IDS, GRAVE, SURVIVAL
from poolproof.reports.rows.io_errors import check_replaceable, replacing
from poolproof.reports.rows.schema import COLUMNS, ColumnType, Row
from poolproof.reports.rows.text import UNSEEN
from poolproof.reports.rows.verdicts import FAILED, BadInput, Verdict

SCOPE_COLUMNS = tuple(column.name for column in COLUMNS if not column.kind.is_list)
"""Columns that a scope may name: all with a single value."""

_WORDS = "data"
"""Column of words, of which one must match: a condition on data that no recipe name expresses."""

_NUMBERS = frozenset(column.name for column in COLUMNS if column.kind in (ColumnType.COUNT, ColumnType.REAL))
"""Columns of numbers; their patterns may be bounds."""

Patterns = Mapping[str, tuple[str, ...]]
"""Name -> patterns of which its value must match one."""

Text = Annotated[str, msgspec.Meta(pattern=r"\S")]


class WaiverError(BadInput, ValueError):
    """An unusable waiver; the text names the file, the waiver and the mistake."""


class Waiver(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One accepted deviation.

    Attributes:
        scope: Column name -> shell-style pattern, or list of patterns of which one must match. A column of numbers may
            have a bound, such as ``">= 50000"``; ``data`` must have one matching word.
        checks: Check ids it covers; empty for all but those of `GRAVE`. Crashes and timeouts are the check
            ``survival``.
        versions: Key of the backend's environment -> pattern, e.g. ``{torch = "2.13.*"}``.
        expires: The last day on which it covers anything.
    """

    id: Text
    reason: Text
    owner: Text
    expires: date
    issue: str = ""
    checks: tuple[str, ...] = ()
    scope: Patterns
    versions: Patterns = {}

    def covers(self, row: Row, environment: Mapping[str, str]) -> bool:
        """Tell whether the row and the backend's environment are in the scope."""
        return matches(self.scope, row) and matches(self.versions, environment)

    def covers_check(self, check: str) -> bool:
        return check in self.checks if self.checks else check not in GRAVE

    def concerns(self, backend: str, environment: Mapping[str, str]) -> bool:
        """Tell whether it can cover anything on a backend with this environment."""
        return matches_any(backend, self.scope.get("backend", ("*",))) and matches(self.versions, environment)

    def has_expired(self, today: date) -> bool:
        return self.expires < today

    def to_table(self) -> dict[str, Any]:
        """Return the table that `parse` reads, with single patterns as texts, without empty entries."""
        table: dict[str, Any] = msgspec.to_builtins(self, builtin_types=(date,))
        if self.checks:
            table["checks"] = list(self.checks)
        for name in table.keys() & {"scope", "versions"}:
            patterns = table[name].items()
            table[name] = {key: values[0] if len(values) == 1 else list(values) for key, values in patterns}
        return table


class Waivers:
    """Waivers that a run applies to the rows it judges on the day ``today``."""

    def __init__(self, waivers: Iterable[Waiver], today: date) -> None:
        self.all = tuple(waivers)
        self.today = today
        self._active = tuple(waiver for waiver in self.all if not waiver.has_expired(today))

    def apply(self, row: Row, environment: Mapping[str, str]) -> Row:
        """Return the row, waived if active waivers cover everything it violates."""
        if row["verdict"] not in FAILED:
            return row
        ids = self.covering(row, environment)
        return row | {"verdict": str(Verdict.WAIVED), "waivers": ids} if ids else row

    def covering(self, row: Row, environment: Mapping[str, str]) -> list[str]:
        """Return the ids of the waivers that together cover everything the row violates; empty if they do not."""
        violated = row["checks_violated"] or [SURVIVAL]
        covering = [waiver for waiver in self._active if waiver.covers(row, environment)]
        by_check = {check: [w.id for w in covering if w.covers_check(check)] for check in violated}
        return sorted({ids[0] for ids in by_check.values()}) if all(by_check.values()) else []


def load(path: Path) -> list[Waiver]:
    """Read the waivers of one file; raise `WaiverError` if it is invalid."""
    if path.exists() and not path.is_file():
        raise WaiverError(f"cannot read waivers from {path}: it is no file")
    try:
        return loads(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise WaiverError(f"cannot read waivers from {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WaiverError(f"cannot read waivers from {path}: it is no text in UTF-8") from error


def loads(text: str, source: str) -> list[Waiver]:
    """Parse the waivers of a TOML text from ``source``."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise WaiverError(f"{source} is not TOML: {error}") from error
    tables = document.get("waiver")
    are_tables = isinstance(tables, list) and all(isinstance(table, dict) for table in tables)
    if not tables or not are_tables or len(document) > 1:
        raise WaiverError(f"{source} must consist of [[waiver]] tables")
    waivers = [parse(table, f"{source}, waiver {number}") for number, table in enumerate(tables, start=1)]
    twice = [name for name, count in Counter(waiver.id for waiver in waivers).items() if count > 1]
    if twice:
        raise WaiverError(f"{source} has several waivers called {twice[0]!r}")
    return waivers


def shipped() -> list[Waiver]:
    """Read poolproof's own waivers, of its findings in public libraries."""
    return [waiver for path in sorted(Path(__file__).parent.glob("*.toml")) for waiver in load(path)]


def chosen(names: Sequence[str], today: date) -> Waivers:
    """Return the waivers of a run: those of the named files, and unless "none" is among the names, the shipped ones.

    `WaiverError` is raised about an invalid file.
    """
    named = [waiver for name in names if name != "none" for waiver in load(Path(name))]
    check_terms(named, today)
    return Waivers([*(shipped() if "none" not in names else ()), *named], today)


def parse(table: Mapping[str, Any], where: str, dates: Collection[type] = (date,)) -> Waiver:
    """Check and return one waiver's table; values of the types ``dates`` are not texts."""
    if unknown := [name for name in table if name not in Waiver.__struct_fields__]:
        raise WaiverError(f"{where}: unknown entry {unknown[0]!r}; {_WANTED}")
    lists = {
        name: {key: [value] if isinstance(value, str) else value for key, value in table[name].items()}
        for name in ("scope", "versions")
        if isinstance(table.get(name), dict)
    }
    try:
        waiver = msgspec.convert({**table, **lists}, Waiver, builtin_types=dates)
        for pattern in chain.from_iterable(waiver.scope[name] for name in _NUMBERS & waiver.scope.keys()):
            bound(pattern)
    except ValueError as error:
        raise WaiverError(f"{where}: {error}; {_WANTED}") from error
    foreign = sorted(set(waiver.scope) - {*SCOPE_COLUMNS, _WORDS})
    if foreign or not waiver.scope:
        raise WaiverError(f"{where}: scope needs column names of the report, not {foreign or 'nothing'}")
    if foreign := sorted(set(waiver.checks) - CHECK_IDS):
        raise WaiverError(f"{where}: {unknown_name('check', foreign[0], sorted(CHECK_IDS))}")
    return waiver


_WANTED = (
    "a waiver has texts for id, reason, owner and maybe issue, expires = 2027-03-31, tables of patterns for scope and "
    'maybe versions, and maybe checks = ["interval"]'
)


def check_terms(waivers: Iterable[Waiver], today: date) -> None:
    """Raise `WaiverError` about the first waiver that lasts more than two years from ``today``."""
    for waiver in waivers:
        if waiver.expires.timetuple()[:3] > (today.year + 2, today.month, today.day):
            lasts = f"expires on {waiver.expires}, more than two years from {today}"
            raise WaiverError(f"waiver {waiver.id} {lasts}, which is today by this clock")


def to_record(waiver: Waiver) -> dict[str, Any]:
    """Return a waiver as a JSON object; `parse` reads it back, without ``dates``."""
    return waiver.to_table() | {"expires": waiver.expires.isoformat()}


_BOUND = re.compile(r"(<=|>=|<|>) *(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")

_COMPARISONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


def matches(patterns: Patterns, values: Mapping[str, Any]) -> bool:
    """Tell whether every name's value matches."""
    return all(matches_any(values.get(name), choices) for name, choices in patterns.items())


def matches_any(value: Any, patterns: Sequence[str]) -> bool:
    """Tell whether a value, or one of a list, is within a bound, or its text, empty for None, matches a pattern."""
    if isinstance(value, list):
        return any(matches_any(word, patterns) for word in value)
    text = "" if value is None else str(value)
    if any(fnmatchcase(text, pattern) for pattern in patterns):
        return True
    bounds = filter(None, map(bound, patterns)) if type(value) in (int, float) else ()
    return any(holds(value, limit) for holds, limit in bounds)


def bound(pattern: str) -> tuple[Callable[[float, float], bool], float] | None:
    """Return (comparison, limit) of a bound, None for another pattern; raise ValueError for a malformed bound."""
    if not pattern.startswith(("<", ">", "=")):
        return None
    match = _BOUND.fullmatch(pattern)
    if match is None:
        raise ValueError(f'{pattern!r} is no bound like ">= 50000"')
    return _COMPARISONS[match[1]], float(match[2])


def waiver_for(
    row: Row, environment: Mapping[str, str], scope: Sequence[str] = ("case_id",), **accepted: Any
) -> Waiver:
    """Return the narrowest waiver of a row's violations: its backend at its versions, its checks, the given scope.

    Its id has the case's, or the scope's columns if that is not a single case. ``scope`` names columns to take from the
    row; ``accepted`` are a person's reason, owner, expires and issue.
    """
    foreign = sorted(set(scope) - {*SCOPE_COLUMNS, _WORDS})
    if foreign:
        known = ", ".join((*SCOPE_COLUMNS, _WORDS))
        raise WaiverError(f"rows have no column {foreign[0]!r} to take the scope from; they have {known}")
    if _WORDS in scope:
        if len(words := list(row[_WORDS] or ())) != 1:
            described = ", ".join(words) or "not described"
            raise WaiverError(f"the {_WORDS} of case {row['case_id']} are {described}: write a waiver of one word")
        row = row | {_WORDS: words[0]}
    checks = tuple(row["checks_violated"] or (SURVIVAL,))
    named = (row["operator"], *checks, row["case_id"])
    if "case_id" not in scope:
        named = (*checks, *(f"{name}={row[name]}" for name in scope))
    return Waiver(
        id="-".join(named),
        scope={name: (escape("" if row[name] is None else str(row[name])),) for name in ("backend", *scope)},
        checks=checks,
        versions={name: (escape(value),) for name, value in environment.items() if _VERSION.match(value)},
        **accepted,
    )


def append(waiver: Waiver, path: Path) -> None:
    """Append the waiver to a file, or create it; existing text stays unchanged."""
    check_replaceable(path)
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if before.strip():
        loads(before, str(path))
        before = before.rstrip("\n") + "\n\n"
    text = before + to_toml([waiver])
    loads(text, str(path))
    with replacing(path) as aside:
        aside.write_text(text, encoding="utf-8")


def to_toml(waivers: Sequence[Waiver]) -> str:
    """Return the waivers as a file that `load` reads."""
    text = tomli_w.dumps({"waiver": [waiver.to_table() for waiver in waivers]}) if waivers else ""
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_VERSION = re.compile(r"v?\d+\.\w+")
"""A version as value of an environment, such as 2.13.0+cpu or 8.0.RC1."""
