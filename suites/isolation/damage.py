"""Damage: whether the calls of a row may have written where they should not, in the memory of their process."""

from __future__ import annotations

import json

from poolproof.references.operators import OPERATORS
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED
from poolproof.suites.judging.checks import CHECKS

_ABOUT_MEMORY = {"written", "inputs_untouched", "memory_untouched"}
"""Checks that hold if a call wrote its outputs and nothing else."""

_ACCOUNTED = {"written", "memory_untouched", "repeat"}
"""Checks that an output violates whose elements lie elsewhere in its storage: those that keep what was in memory."""

_NOTHING_REJECTED, _KEPT = {"interval", "unreached"}, "plane_sum"
"""Checks of which either holds if no gradient was lost."""


def may_be_damaged(row: Row) -> bool:
    """Tell whether a row's calls may have damaged the memory of their process.

    They did not if every output has a place in its own storage for all of its elements, nothing was written beyond that
    and, for a backward, no gradient is missing from its plane: values that are merely wrong or misplaced are no stray
    writes.
    """
    if row["verdict"] not in FAILED:
        return False
    violated = {*row["checks_violated"]}
    if "memory_untouched" in violated:
        found = next(found for found in json.loads(row["findings"]) if found["check"] == "memory_untouched")
        violated -= _ACCOUNTED if found["accounted"] else set()
    holding = {*row["checks_judged"]} - violated
    if not all(name in CHECKS and CHECKS[name].leaves_memory_intact for name in violated):
        return True
    if not holding >= _ABOUT_MEMORY:
        return True
    return OPERATORS[row["operator"]].is_backward and not (holding >= _NOTHING_REJECTED or _KEPT in holding)
