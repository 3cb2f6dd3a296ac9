"""Acceptance standards of others, which a contract may name.

Each is a small policy with its thresholds per dtype as data and its source; docs/precision.md says who applies it to
this family. None decides a verdict: `poolproof.references.criterion` does.
"""

from __future__ import annotations

from collections.abc import Iterable

from poolproof.references.deviations import Deviations
from poolproof.references.standards.base import Standard
from poolproof.references.standards.commercial import COMMERCIAL
from poolproof.references.standards.ecosystem import ECOSYSTEM
from poolproof.references.standards.frameworks import FRAMEWORKS, share_close
from poolproof.references.standards.msprobe import MSPROBE

__all__ = ["STANDARDS", "Standard", "judge_all", "share_close"]

STANDARDS: dict[str, Standard] = {
    standard.name: standard for family in (ECOSYSTEM, COMMERCIAL, FRAMEWORKS, MSPROBE) for standard in family
}
"""Every policy by its name."""


def judge_all(deviations: Deviations, names: Iterable[str] = STANDARDS) -> dict[str, bool | None]:
    """Return whether each named standard passes; None where it does not apply."""
    return {name: STANDARDS[name].judge(deviations) for name in names}
