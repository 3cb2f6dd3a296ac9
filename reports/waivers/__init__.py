"""Waivers: known deviations that a person has accepted, with scope, reason, owner and expiry.

A waiver is a table in a TOML file. It covers a row when every entry of its scope matches, and turns the row's
verdict from "violates" to "waived" when all violated checks are covered. Nothing is hidden: waived rows keep
their findings, and a run prints which waivers it used, which it did not need and which have expired.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from poolproof.reports.schema import SCHEMA, Row
from poolproof.reports.verdicts import FAILED, Verdict

_REQUIRED = ("id", "reason", "owner", "expires", "scope")
_OPTIONAL = ("checks", "issue", "versions")


class WaiverError(ValueError):
    """A waiver file that cannot be used; the text names the file, the waiver and the mistake."""


@dataclass(frozen=True)
class Waiver:
    """One accepted deviation.

    scope
        Column name -> shell-style pattern, or list of patterns of which one must match.
    checks
        Check ids it covers; empty for all of them. Crashes and time-outs are the check ``survival``.
    versions
        Key of the backend's environment -> pattern, e.g. ``{torch = "2.13.*"}``.
    """

    id: str
    reason: str
    owner: str
    expires: date
    scope: Mapping[str, Sequence[str]]
    checks: tuple[str, ...] = ()
    issue: str = ""
    versions: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def covers(self, row: Row, environment: Mapping[str, str]) -> bool:
        """Whether the row and the backend's environment lie in the scope."""
        return _matches(self.scope, row) and _matches(self.versions, environment)

    def covers_check(self, check: str) -> bool:
        return not self.checks or check in self.checks


class Waivers:
    """All waivers of a run, and how often each was used."""

    def __init__(self, waivers: Iterable[Waiver], today: date) -> None:
        self.all = tuple(waivers)
        self.expired = tuple(waiver for waiver in self.all if waiver.expires < today)
        self._active = tuple(waiver for waiver in self.all if waiver.expires >= today)
        self.used: Counter[str] = Counter()

    def apply(self, row: Row, environment: Mapping[str, str]) -> Row:
        """The row, waived if active waivers cover everything it violates."""
        if row["verdict"] not in FAILED:
            return row
        violated = row["checks_violated"] or ["survival"]
        covering = [waiver for waiver in self._active if waiver.covers(row, environment)]
        by_check = {check: [w.id for w in covering if w.covers_check(check)] for check in violated}
        if not all(by_check.values()):
            return row
        ids = sorted({ids[0] for ids in by_check.values()})
        self.used.update(ids)
        return row | {"verdict": str(Verdict.WAIVED), "waivers": ids}


def load(path: Path) -> list[Waiver]:
    """The waivers of one file; `WaiverError` for anything that is not as it should be."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WaiverError(f"cannot read waivers from {path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise WaiverError(f"{path} is not TOML: {error}") from error
    tables = document.get("waiver", [])
    if not tables or set(document) != {"waiver"}:
        raise WaiverError(f"{path} must consist of [[waiver]] tables")
    waivers = [_waiver(table, f"{path}, waiver {number}") for number, table in enumerate(tables, start=1)]
    twice = [name for name, count in Counter(waiver.id for waiver in waivers).items() if count > 1]
    if twice:
        raise WaiverError(f"{path} has several waivers called {twice[0]!r}")
    return waivers


def shipped() -> list[Path]:
    """Waiver files that come with the suite: what it found in public libraries."""
    return sorted(Path(__file__).parent.glob("*.toml"))


def _waiver(table: Mapping[str, Any], where: str) -> Waiver:
    unknown = sorted(set(table) - set(_REQUIRED) - set(_OPTIONAL))
    missing = [name for name in _REQUIRED if name not in table]
    if unknown:
        raise WaiverError(f"{where}: unknown entry {unknown[0]!r}")
    if missing:
        raise WaiverError(f"{where}: entry {missing[0]!r} is missing")
    if not isinstance(table["expires"], date):
        raise WaiverError(f"{where}: expires must be a date like 2027-03-31, without quotes")
    scope = _patterns(table["scope"], f"{where}, scope")
    foreign = sorted(set(scope) - set(SCHEMA.names))
    if foreign or not scope:
        raise WaiverError(f"{where}: scope needs column names of the report, not {foreign or 'nothing'}")
    return Waiver(
        id=table["id"],
        reason=table["reason"],
        owner=table["owner"],
        expires=table["expires"],
        scope=scope,
        checks=tuple(table.get("checks", ())),
        issue=table.get("issue", ""),
        versions=_patterns(table.get("versions", {}), f"{where}, versions"),
    )


def _patterns(table: Any, where: str) -> dict[str, tuple[str, ...]]:
    if not isinstance(table, dict):
        raise WaiverError(f"{where}: must be a table of patterns")
    patterns = {}
    for name, value in table.items():
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(item, str) for item in values):
            raise WaiverError(f"{where}: {name} must be a pattern or a list of patterns")
        patterns[name] = tuple(values)
    return patterns


def _matches(patterns: Mapping[str, Sequence[str]], values: Mapping[str, Any]) -> bool:
    return all(
        any(fnmatchcase(str(values.get(name, "")), pattern) for pattern in choices)
        for name, choices in patterns.items()
    )
