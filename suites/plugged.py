"""Plugins that installed packages bring by entry points, each first loaded in a process of its own.

A plugin that ends its process, hangs or is of the wrong type is left out, with one line that says why.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

from poolproof.reports.rows.plugins import Plugin, PluginFault, PluginKind, installed, to_record

LOAD_SECONDS = 30
"""Time limit for the import of a plugin, and for what it does in a process of its own."""

T = TypeVar("T")


@dataclass(frozen=True)
class LoadedPlugins(Generic[T]):
    """The plugins ``used``, by name, and the ``records`` of all plugins for run.json, used or not."""

    used: Mapping[str, T]
    records: tuple[Mapping[str, str], ...]


def load_plugins(kind: PluginKind, wanted: type[T], taken: Collection[str]) -> LoadedPlugins[T]:
    """Load every plugin of a kind: an object with a ``name``, or a tuple of them; ``taken`` are names in use.

    The ``name`` of the object counts, not that of the entry point.
    """
    used: dict[str, T] = {}
    records = []
    for plugin in installed(kind):
        try:
            check_survived(plugin.load, "loaded")
            used |= _named(plugin, wanted, {*taken, *used})
            records.append(to_record(plugin))
        except PluginFault as fault:
            records.append(to_record(plugin, str(fault)))
    return LoadedPlugins(used, tuple(records))


def _named(plugin: Plugin, wanted: type[T], taken: set[str]) -> dict[str, T]:
    loaded = plugin.load()
    named: dict[str, T] = {}
    for entry in loaded if isinstance(loaded, tuple) else (loaded,):
        name = getattr(entry, "name", None)
        if not isinstance(entry, wanted) or not isinstance(name, str):
            raise PluginFault(f"it names {entry!r:.80}, no {wanted.__name__} with a name")
        if name in taken or name in named:
            raise PluginFault(f"there is another {plugin.kind.word} called {name!r}")
        named[name] = entry
    return named


def check_survived(work: Callable[[], object], done: str) -> None:
    """Raise `PluginFault` if work of a plugin ends its process or takes too long; its exceptions are left to later.

    ``done`` is the participle that says what is done to the plugin.
    """
    child = os.fork()
    if not child:
        _work_and_end(work)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGALRM:
        raise PluginFault(f"it was not {done} after {LOAD_SECONDS} s")
    if status != _SURVIVED:
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        raise PluginFault(f"it ended its process, by {how}, while it was {done}")


_SURVIVED = 79
"""Exit status of a process that survived work of a plugin, unlikely otherwise."""


def _work_and_end(work: Callable[[], object]) -> NoReturn:
    faulthandler.disable()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LOAD_SECONDS)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        work()
    finally:
        os._exit(_SURVIVED)
