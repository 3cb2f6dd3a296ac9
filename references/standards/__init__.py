"""Acceptance standards of other projects, which a contract may name.

Each is a small rule with its source and its thresholds per dtype as data. docs/reference/checks.md says who applies it
to this family. None decides a verdict: `poolproof.references.criterion` does.
"""

from __future__ import annotations

from collections.abc import Iterable

from poolproof.references.deviations import Deviations
from poolproof.references.standards.base import Standard, judge_together
from poolproof.references.standards.commercial import COMMERCIAL
from poolproof.references.standards.ecosystem import ECOSYSTEM
from poolproof.references.standards.msprobe import MSPROBE
from poolproof.references.standards.ttk import TTK, share_close

__all__ = ["STANDARDS", "Standard", "judge_all", "judge_together", "share_close"]

STANDARDS: dict[str, Standard] = {
    standard.name: standard for family in (ECOSYSTEM, COMMERCIAL, TTK, MSPROBE) for standard in family
}


def judge_all(parts: Iterable[Deviations]) -> dict[str, bool | None]:
    """Return whether each standard passes the tensor of these parts; None if it does not apply."""
    return dict(zip(STANDARDS, judge_together([*STANDARDS.values()], parts), strict=True))
