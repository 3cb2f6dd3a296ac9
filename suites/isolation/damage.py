"""Damage: whether the calls of a row may have damaged the memory of their process."""

from __future__ import annotations

import json

from poolproof.references.operators import OPERATORS
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED
from poolproof.suites.judging.checks import CHECKS

_ABOUT_MEMORY = {"written", "inputs_untouched", "memory_untouched"}
"""Checks that hold if a call wrote its outputs and nothing else."""

_ACCOUNTED = {"written", "memory_untouched", "repeat"}
"""Checks that fail if an output's elements are elsewhere in its storage: their places keep the old content."""

_NOTHING_REJECTED, _KEPT = {"interval", "unreached"}, "plane_sum"
"""`interval` with `unreached`, or `plane_sum`: either shows that no gradient was lost."""


def may_be_damaged(row: Row) -> bool:
    """Tell whether a row's calls may have damaged the memory of their process.

    They did not if three things hold. Every output has a place in its storage for all of its elements. Nothing was
    written beyond. And in a backward, no gradient is missing from its plane: wrong or misplaced values are not stray
    writes.
    """
    if row["verdict"] not in FAILED:
        return False
    violated = {*row["checks_violated"]}
    if "memory_untouched" in violated:
        record = next(record for record in json.loads(row["findings"]) if record["check"] == "memory_untouched")
        violated -= _ACCOUNTED if record["accounted"] else set()
    holding = {*row["checks_judged"]} - violated
    if not all(name in CHECKS and CHECKS[name].leaves_memory_intact for name in violated):
        return True
    if not holding >= _ABOUT_MEMORY:
        return True
    return OPERATORS[row["operator"]].is_backward and not (holding >= _NOTHING_REJECTED or _KEPT in holding)
