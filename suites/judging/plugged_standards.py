"""The standards that installed packages bring (entry points of the group ``poolproof.standards``).

Each is a `poolproof.references.standards.Standard`. One that raises about an output, or ends its process, costs nothing
but its answer: it is applied in a process of its own first.
"""

from __future__ import annotations

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


def judge_plugged(deviations: Deviations) -> tuple[dict[str, bool | None], list[str]]:
    """Return (whether each standard of a plugin passes, None where it does not apply; those that failed, and why)."""
    verdicts: dict[str, bool | None] = {}
    broken = []
    for name, standard in plugged().used.items():
        try:
            check_survived(partial(standard.judge, deviations), "applied")
            passes = standard.judge(deviations)
            if passes is not None and not isinstance(passes, bool):
                raise PluginFault(f"it said {passes!r:.80}, not True, False or None")
            verdicts[name] = passes
        except PluginFault as fault:
            broken.append(f"{name}: {fault}")
        except (Exception, SystemExit) as error:
            broken.append(f"{name}: {raised(error)}")
    return verdicts, broken
