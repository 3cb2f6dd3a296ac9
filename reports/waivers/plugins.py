"""Waivers of installed packages, in files beside their code, of which nothing is imported.

An entry point of the group ``poolproof.waivers`` names a folder by dots, ``my_package.waivers``, and all its ``*.toml``
are waiver files. Each waiver has to name backends in its scope. A package whose files are not as they should be is left
out as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from importlib.util import find_spec
from pathlib import Path

from poolproof.reports.rows.plugins import Plugin, PluginFault, PluginKind, installed, to_record
from poolproof.reports.waivers import Waiver, WaiverError, Waivers, check_terms, load, shipped


def choose(names: Sequence[str], today: date) -> tuple[Waivers, list[Mapping[str, str]]]:
    """Return the waivers of a run, and the records of the plugins.

    They are those of the named files, and, unless "none" is among the names, all that are shipped or installed.
    `WaiverError` about a file that is not as it should be.
    """
    takes_all = "none" not in names
    named = [waiver for name in names if name != "none" for waiver in load(Path(name))]
    check_terms(named, today)
    waivers, records = [*(shipped() if takes_all else ()), *named], []
    for plugin in installed(PluginKind.WAIVERS) if takes_all else ():
        try:
            waivers += _waivers(plugin, {waiver.id for waiver in waivers}, today)
        except (PluginFault, WaiverError) as fault:
            records.append(to_record(plugin, str(fault)))
        else:
            records.append(to_record(plugin))
    return Waivers(waivers, today), records


def _waivers(plugin: Plugin, taken: Collection[str], today: date) -> list[Waiver]:
    """Return what a plugin brings; ``taken`` are the ids of waivers that it may not have."""
    folder = _folder(plugin.point.module)
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise PluginFault(f"there is no *.toml in {folder}")
    waivers = [waiver for file in files for waiver in load(file)]
    check_terms(waivers, today)
    ids = [waiver.id for waiver in waivers]
    for number, waiver in enumerate(waivers):
        if waiver.id in taken or waiver.id in ids[:number]:
            raise PluginFault(f"there is another waiver called {waiver.id!r}")
        if "*" in waiver.scope.get("backend", ("*",)):
            raise PluginFault(f"the scope of waiver {waiver.id} has to name its backends")
    return waivers


def _folder(dotted: str) -> Path:
    """Return the folder that a name with dots stands for; its package is located, not imported."""
    package, *parts = dotted.split(".")
    try:
        spec = find_spec(package)
    except (ImportError, ValueError) as error:
        raise PluginFault(f"there is no package {package!r}") from error
    if spec is None or not spec.submodule_search_locations:
        raise PluginFault(f"there is no package {package!r}")
    return Path(next(iter(spec.submodule_search_locations)), *parts)
