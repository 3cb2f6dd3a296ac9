"""Plugins of a run that were left out or could not tell, each in one line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from poolproof.reports.rows.plugins import PluginKind, left_out_line
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.text import count_of


def plugin_faults(run: Mapping[str, Any], folder: Path) -> list[str]:
    """Return a line for each plugin that was left out, and for each plugin's standard that broke in some case."""
    records = run.get("plugins", [])
    lines = [left_out_line(record) for record in records if record["fault"]]
    if any(record["kind"] == PluginKind.STANDARD.word for record in records):
        lines += _broken_standards(folder)
    return lines


def _broken_standards(folder: Path) -> list[str]:
    column = "standards_broken"
    rows = read_rows(folder, [column], pc.field(column).is_valid())
    faults: dict[str, list[str]] = defaultdict(list)
    for lists in rows[column].to_pylist():
        for line in lists:
            name, _, fault = line.partition(": ")
            faults[name].append(fault)
    return [
        f"standard {name!r} could not tell in {count_of(len(found), 'case')}; in one, {min(found)}"
        for name, found in sorted(faults.items())
    ]
