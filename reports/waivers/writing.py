"""Waivers made from failing rows, and written as TOML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from poolproof.reports.rows.checks import SURVIVAL
from poolproof.reports.rows.io_errors import check_replaceable, replacing
from poolproof.reports.rows.schema import Row
from poolproof.reports.waivers import SCOPE_COLUMNS, Waiver, WaiverError, loads

_VERSION = re.compile(r"v?\d+\.\w+")
"""A value of an environment that is a version, such as 2.13.0+cpu or 8.0.RC1."""


def waiver_for(
    row: Row, environment: Mapping[str, str], scope: Sequence[str] = ("case_id",), **accepted: Any
) -> Waiver:
    """Make the narrowest waiver for what ``row`` violates: its backend at its versions, its checks, the scope given.

    ``scope`` names columns to take from the row; ``accepted`` is what a person adds: reason, owner, expires, issue.
    """
    foreign = sorted(set(scope) - set(SCOPE_COLUMNS))
    if foreign:
        known = ", ".join(SCOPE_COLUMNS)
        raise WaiverError(f"rows have no column {foreign[0]!r} to take the scope from; they have {known}")
    checks = tuple(row["checks_violated"] or (SURVIVAL,))
    return Waiver(
        id=f"{row['operator']}-{'-'.join(checks)}-{row['case_id']}",
        scope={name: (_literal("" if row[name] is None else str(row[name])),) for name in ("backend", *scope)},
        checks=checks,
        versions={name: (_literal(value),) for name, value in environment.items() if _VERSION.match(value)},
        **accepted,
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
