"""Formats of case lists that installed packages bring (entry points of the group ``poolproof.case_lists``).

Each is a `poolproof.suites.cases.lists.base.ListFormat`. They get the files that no format of ours takes.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from poolproof.reports.rows.plugins import PluginKind, left_out_line, raised
from poolproof.suites.cases.lists.base import ListFormat
from poolproof.suites.plugged import LoadedPlugins, load_plugins


@cache
def plugged(taken: Collection[str]) -> LoadedPlugins[ListFormat]:
    """Load, once, what the installed packages bring under other names than those ``taken``."""
    return load_plugins(PluginKind.CASE_LIST, ListFormat, taken)  # type: ignore[type-abstract]


def recognising(text: str, plugins: LoadedPlugins[ListFormat]) -> tuple[ListFormat | None, list[str]]:
    """Return (the format that takes a file with this text, a line about each plugin that could not tell)."""
    lines = [left_out_line(record) for record in plugins.records if record["fault"]]
    for name, plugin in plugins.used.items():
        try:
            if plugin.recognises(text):
                return plugin, lines
        except Exception as error:
            lines.append(f"case list format {name!r} could not tell: {raised(error)}")
    return None, lines
