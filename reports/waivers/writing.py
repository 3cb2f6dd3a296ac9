"""Waivers made from failing rows, and written as TOML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import tomli_w

from poolproof.reports.rows.checks import SURVIVAL
from poolproof.reports.rows.io_errors import check_replaceable, replacing
from poolproof.reports.rows.schema import Row
from poolproof.reports.waivers import SCOPE_COLUMNS, Waiver, WaiverError, loads

_VERSION = re.compile(r"v?\d+\.\w+")
"""A value of an environment that is a version, such as 2.13.0+cpu or 8.0.RC1."""


@dataclass(frozen=True)
class Approval:
    """Data that a person adds to a failing row to make it accepted; ``scope`` names columns to take from the row."""

    reason: str
    owner: str
    expires: date
    issue: str = ""
    scope: Sequence[str] = ("case_id",)


def waiver_for(row: Row, environment: Mapping[str, str], accepted: Approval) -> Waiver:
    """Make the narrowest waiver for what ``row`` violates: its backend at its versions, its checks, the scope given."""
    foreign = sorted(set(accepted.scope) - set(SCOPE_COLUMNS))
    if foreign:
        known = ", ".join(SCOPE_COLUMNS)
        raise WaiverError(f"rows have no column {foreign[0]!r} to take the scope from; they have {known}")
    columns = dict.fromkeys(("backend", *accepted.scope))
    checks = tuple(row["checks_violated"] or (SURVIVAL,))
    versions = {name: (_literal(value),) for name, value in environment.items() if _VERSION.match(value)}
    return Waiver(
        id=f"{row['operator']}-{'-'.join(checks)}-{row['case_id']}",
        reason=accepted.reason,
        owner=accepted.owner,
        issue=accepted.issue,
        expires=accepted.expires,
        scope={name: (_literal("" if row[name] is None else str(row[name])),) for name in columns},
        checks=checks,
        versions=versions,
    )


def append(waiver: Waiver, path: Path) -> None:
    """Add the waiver at the end of a file, made when there is none; what the file says already stays as it is."""
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
    """Write the waivers as a file that `load` reads."""
    return tomli_w.dumps({"waiver": [waiver.to_table() for waiver in waivers]}) if waivers else ""


def _literal(text: str) -> str:
    """Return the shell-style pattern that matches this text alone."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in text)
