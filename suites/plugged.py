"""The objects that installed packages bring by their entry points, each loaded in a process of its own first.

One that ends its process, hangs, or is not what it should be is left out, with one line that says why, and costs
nothing else.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from poolproof.reports.rows.plugins import Plugin, PluginFault, PluginKind, installed, to_record

LOAD_SECONDS = 30
"""How long the import of a plugin may take."""

T = TypeVar("T")


@dataclass(frozen=True)
class Plugged(Generic[T]):
    """What is used, by name, and ``records`` of all plugins as run.json has them, those that are left out included."""

    used: Mapping[str, T]
    records: tuple[Mapping[str, str], ...]


def each_once(records: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The records of plugins, each once, however many processes have loaded them."""
    kept: list[Mapping[str, str]] = []
    for record in records:
        if record not in kept:
            kept.append(record)
    return kept


def load_plugins(kind: PluginKind, wanted: type[T], taken: Collection[str]) -> Plugged[T]:
    """Every plugin of a kind: one object with a ``name``, or a tuple of them; ``taken`` are names that none may have.

    What counts is the ``name`` of the object, not that of the entry point.
    """
    used: dict[str, T] = {}
    records = []
    for plugin in installed(kind):
        try:
            _survive(plugin)
            used |= _named(plugin, wanted, {*taken, *used})
            records.append(to_record(plugin))
        except PluginFault as fault:
            records.append(to_record(plugin, str(fault)))
    return Plugged(used, tuple(records))


def _named(plugin: Plugin, wanted: type[T], taken: set[str]) -> dict[str, T]:
    given = plugin.load()
    named: dict[str, T] = {}
    for each in given if isinstance(given, tuple) else (given,):
        name = getattr(each, "name", None)
        if not isinstance(each, wanted) or not isinstance(name, str):
            raise PluginFault(f"it names {each!r:.80}, no {wanted.__name__} with a name")
        if name in taken or name in named:
            raise PluginFault(f"there is another {plugin.kind.word} called {name!r}")
        named[name] = each
    return named


def _survive(plugin: Plugin) -> None:
    """`PluginFault` where loading a plugin ends its process or takes too long; what it raises, who loads it tells."""
    child = os.fork()
    if not child:
        _load_and_end(plugin)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGALRM:
        raise PluginFault(f"it was not loaded after {LOAD_SECONDS} s")
    if status != _SURVIVED:
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        raise PluginFault(f"it ended its process, by {how}, while it was loaded")


_SURVIVED = 79
"""How a process ends that survived the loading of a plugin; no other is likely to."""


def _load_and_end(plugin: Plugin) -> None:
    faulthandler.disable()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LOAD_SECONDS)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        plugin.load()
    except PluginFault:
        pass
    finally:
        os._exit(_SURVIVED)
