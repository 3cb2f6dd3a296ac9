"""The standards that installed packages bring (entry points of the group ``poolproof.standards``).

Each is a `poolproof.references.standards.Standard`. One that raises about an output, or ends its process, costs nothing
but its answer: it is applied in a process of its own first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

from poolproof.references.deviations import Deviations
from poolproof.references.standards import STANDARDS
from poolproof.references.standards.base import Standard
from poolproof.reports.rows.plugins import PluginFault, PluginKind, raised
from poolproof.suites.plugged import LoadedPlugins, check_survived, load_plugins


@cache
def plugged() -> LoadedPlugins[Standard]:
    """Load the standards of installed packages, once in each process that judges."""
    return load_plugins(PluginKind.STANDARD, Standard, STANDARDS)  # type: ignore[type-abstract]


@dataclass(frozen=True)
class Opinions:
    """Which standards pass an output and which fail it, by name; ``broken`` are those that could not tell, and why."""

    passed: list[str]
    failed: list[str]
    broken: list[str]


def opinions(deviations: Deviations) -> Opinions:
    """Apply the standards of plugins to an output, as far as they apply."""
    said = Opinions([], [], [])
    for name, standard in plugged().used.items():
        try:
            check_survived(partial(standard.judge, deviations), "applied")
            passes = standard.judge(deviations)
        except PluginFault as fault:
            said.broken.append(f"{name}: {fault}")
            continue
        except (Exception, SystemExit) as error:
            said.broken.append(f"{name}: {raised(error)}")
            continue
        if passes is not None and not isinstance(passes, bool):
            said.broken.append(f"{name}: it said {passes!r:.80}, not True, False or None")
        elif passes is not None:
            (said.passed if passes else said.failed).append(name)
    return said
