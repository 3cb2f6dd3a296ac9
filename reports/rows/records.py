"""JSON objects that may be damaged, cut off or mixed up: one sentence on what is wrong, or what differs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from poolproof.reports.rows.verdicts import BadInput


def read_record(path: Path, error: type[BadInput], absent: str, entries: Sequence[str] = ()) -> dict[str, Any]:
    """Return the JSON object in a file; raise ``error`` if it is invalid, with ``absent`` if there is no file."""
    if path.exists() and not path.is_file():
        raise error(f"{path} is damaged: it is no file")
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise error(f"{absent}: it has no {path.name}") from None
    except (OSError, UnicodeDecodeError) as reason:
        raise error(f"{path} is damaged: {reason}") from reason
    return parse_record(text, str(path), error, entries)


def parse_record(text: str, where: str, error: type[BadInput], entries: Sequence[str] = ()) -> dict[str, Any]:
    """Parse a JSON object from ``where`` that must have all ``entries``; raise ``error`` otherwise."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as reason:
        raise error(f"{where} is damaged: {reason}") from reason
    if not isinstance(record, dict):
        raise error(f"{where} is damaged: it holds no JSON object")
    missing = [entry for entry in entries if entry not in record]
    if missing:
        raise error(f"{where} has no entry {missing[0]!r}: it was written by something else")
    return record


def first_difference(name: str, was: object, now: object) -> tuple[str, object, object] | None:
    """Return the path to the first difference, and the value there in each record; None if they are equal."""
    if was == now:
        return None
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        key = first_key(was, now)
        return first_difference(f"{name} {key}", was.get(key), now.get(key))
    return name, was, now


def first_key(was: Mapping[Any, Any], now: Mapping[Any, Any]) -> Any:
    """Return the first key with different values; None if there is none."""
    return next((key for key in (*was, *now) if was.get(key) != now.get(key)), None)


@dataclass(frozen=True)
class Done:
    """Recorded work of an interrupted run; ``blocks`` are those judged completely.

    Of the rows in all other blocks ``cases`` are (block, case id), ``recorded`` (backend, block, case id).
    ``unsupported`` are (backend, operator, dtype, index dtype), ``unplanned`` (backend, case id) of calls of no block,
    which a planned one caused. ``evidence`` counts the files of failures, by `evidence_kinds`.
    """

    blocks: frozenset[str] = frozenset()
    cases: frozenset[tuple[str, str]] = frozenset()
    unsupported: frozenset[tuple[str, str, str, str]] = frozenset()
    unplanned: frozenset[tuple[str, str]] = frozenset()
    recorded: frozenset[tuple[str, str, str]] = frozenset()
    evidence: Mapping[tuple[str, ...], int] = field(default_factory=dict)
