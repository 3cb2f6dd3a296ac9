"""The standards that installed packages bring (entry points of the group ``poolproof.standards``).

Each is a `poolproof.references.standards.Standard`. One that cannot tell of an output costs nothing but its answer. One
that ends its process, or keeps it, does so in the process that judges: whoever looks after that finds the standard's
name where `announce` was told to leave it, and has it left out from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from poolproof.references.deviations import Deviations
from poolproof.references.standards import STANDARDS
from poolproof.references.standards.base import Standard
from poolproof.reports.rows.io_errors import writing
from poolproof.reports.rows.plugins import PluginKind, raised
from poolproof.suites.plugged import Plugged, load_plugins


@cache
def plugged() -> Plugged[Standard]:
    """What the packages that are installed bring, loaded once in each process that judges."""
    return load_plugins(PluginKind.STANDARD, Standard, STANDARDS)  # type: ignore[type-abstract]


@dataclass(frozen=True)
class Opinions:
    """Which standards pass an output and which fail it, by name; ``broken`` are those that could not tell, and why."""

    passed: list[str]
    failed: list[str]
    broken: list[str]


@dataclass
class _Watched:
    """Where the standard that is being asked is named, and those that are not asked any more, with why."""

    file: Path | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)


_watched = _Watched()


def announce(file: Path, left_out: Mapping[str, str]) -> None:
    """Name each standard in a file while it is asked; those left out could not tell, for the reason that is given."""
    _watched.file, _watched.left_out = file, left_out


def _name_in_file(name: str) -> None:
    if _watched.file is not None:
        with writing(_watched.file):
            _watched.file.write_text(name)


def opinions(deviations: Deviations) -> Opinions:
    """What the standards of plugins say of an output; those that do not apply are nowhere."""
    said = Opinions([], [], [])
    for name, standard in plugged().used.items():
        if name in _watched.left_out:
            said.broken.append(f"{name}: {_watched.left_out[name]}")
            continue
        _name_in_file(name)
        try:
            passes = standard.judge(deviations)
        except Exception as error:
            said.broken.append(f"{name}: {raised(error)}")
            continue
        finally:
            _name_in_file("")
        if passes is not None and not isinstance(passes, bool):
            said.broken.append(f"{name}: it said {passes!r:.80}, not True, False or None")
        elif passes is not None:
            (said.passed if passes else said.failed).append(name)
    return said
