"""Plugins: what installed packages add to this project by their entry points.

A plugin that is broken is left out, with one line of text, and costs nothing else.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from poolproof.reports.rows.records import begun_otherwise
from poolproof.reports.rows.text import visible


class PluginKind(StrEnum):
    """The entry point group of a kind of plugins, and what such a plugin is called."""

    BACKEND = "poolproof.backends"
    WAIVERS = "poolproof.waivers"
    STANDARD = "poolproof.standards"
    CASE_LIST = "poolproof.case_lists"

    @property
    def word(self) -> str:
        return _WORDS[self]


_WORDS = {
    PluginKind.BACKEND: "backend",
    PluginKind.WAIVERS: "waivers",
    PluginKind.STANDARD: "standard",
    PluginKind.CASE_LIST: "case list format",
}


class PluginFault(Exception):
    """A plugin that cannot be used; the text says why, and does not name it."""


@dataclass(frozen=True)
class Plugin:
    """One entry point of an installed package."""

    kind: PluginKind
    point: EntryPoint

    @property
    def name(self) -> str:
        return self.point.name

    @property
    def package(self) -> str:
        """Return name and version of the package that brings it."""
        brought_by = self.point.dist
        return f"{brought_by.name} {brought_by.version}" if brought_by else "an unknown package"

    def __str__(self) -> str:
        return f"{self.kind.word} {self.name!r} of {self.package}"

    def load(self) -> Any:
        """Import what the entry point names; `PluginFault` for whatever is raised, SystemExit included."""
        try:
            return self.point.load()
        except BaseException as error:
            raise PluginFault(raised(error)) from error


def installed(kind: PluginKind) -> list[Plugin]:
    """Return the plugins of a kind, by name; one name comes as often as packages bring it."""
    plugins = (Plugin(kind, point) for point in entry_points(group=kind))
    return sorted(plugins, key=lambda plugin: (plugin.name, str(plugin)))


def raised(error: BaseException) -> str:
    """Describe an exception in one line that ends a sentence about who raised it."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    return visible(f"it raised {type(error).__name__}" + (f": {text[:300]}" if text else ""))


def to_record(plugin: Plugin, fault: str = "") -> Mapping[str, str]:
    """Return a plugin as run.json has it; ``fault`` is empty where it is used."""
    return {"kind": plugin.kind.word, "name": plugin.name, "package": plugin.package, "fault": fault}


def records_of(kind: PluginKind, names: Container[str]) -> list[Mapping[str, str]]:
    """Return the records of the plugins that are used under those names."""
    return [to_record(plugin) for plugin in installed(kind) if plugin.name in names]


def left_out_line(record: Mapping[str, Any]) -> str:
    return f"{record['kind']} {record['name']!r} of {record['package']} is left out: {record['fault']}"


def other_plugins(before: Sequence[Mapping[str, str]], now: Sequence[Mapping[str, str]]) -> str:
    """Say how the plugins of a run differ from those that are here, by the first difference; empty without one."""
    was, found = ({(record["kind"], record["name"]): record for record in records} for records in (before, now))
    return begun_otherwise(was, found, _titled, "installed")


def _titled(record: Mapping[str, str]) -> str:
    left_out = f", left out: {record['fault']}" if record["fault"] else ""
    return f"{record['kind']} {record['name']!r} of {record['package']}{left_out}"
