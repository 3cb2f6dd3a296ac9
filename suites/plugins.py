"""The command ``poolproof plugins``: what installed packages add, and why some of it cannot be used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import date

import click
from rich import box
from rich.table import Table
from rich.text import Text

from poolproof.backends.base import BackendUnavailable
from poolproof.backends.registry import BUILT_IN, UnknownBackend
from poolproof.reports.rows.plugins import Plugin, PluginKind, installed, to_record
from poolproof.reports.terminal.painting import SafeConsole
from poolproof.reports.waivers.plugins import choose
from poolproof.suites.cases.lists import formats_of_packages
from poolproof.suites.isolation.sandbox import survey
from poolproof.suites.judging.plugged_standards import plugged

Record = Mapping[str, str]


@click.command()
def plugins() -> None:
    """List what installed packages add, and whether it can be used here."""
    console = SafeConsole(width=None if sys.stdout.isatty() else 140, soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("plugin", "name", "package", "used", "if not, why"):
        table.add_column(heading, overflow="fold")
    for records in LISTED.values():
        for record in records():
            used = Text("no", style="red") if record["fault"] else Text("yes", style="green")
            table.add_row(record["kind"], record["name"], record["package"], used, record["fault"])
    console.print(table if table.row_count else "no package adds anything")


def _backends() -> list[Record]:
    return [to_record(plugin, _fault_of_backend(plugin)) for plugin in installed(PluginKind.BACKEND)]


def _fault_of_backend(plugin: Plugin) -> str:
    if plugin.name in BUILT_IN:
        return "there is another backend of that name, which comes with the suite"
    try:
        survey(plugin.name)
    except (BackendUnavailable, UnknownBackend) as error:
        return str(error)
    return ""


LISTED: Mapping[PluginKind, Callable[[], list[Record]]] = {
    PluginKind.BACKEND: _backends,
    PluginKind.WAIVERS: lambda: choose((), date.today())[1],
    PluginKind.STANDARD: lambda: list(plugged().records),
    PluginKind.CASE_LIST: lambda: list(formats_of_packages().records),
}
"""The function that makes the records, by kind of plugin."""
