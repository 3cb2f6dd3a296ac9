"""JSON objects that people may have damaged, cut off or mixed up, read with one sentence about what is wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from poolproof.reports.rows.verdicts import BadInput


def read_record(path: Path, error: type[BadInput], absent: str, entries: Sequence[str] = ()) -> dict[str, Any]:
    """Read the JSON object in a file; ``error`` says what is wrong with it, ``absent`` that there is no file."""
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
    """Parse a JSON object that stands in ``where`` and has all ``entries``."""
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
