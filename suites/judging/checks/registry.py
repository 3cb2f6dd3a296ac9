"""The registry of checks: what a check is, and the conditions under which one applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from poolproof.suites.cases.case import Case
from poolproof.suites.judging.findings import Mismatch
from poolproof.suites.judging.trial import Trial

Judge = Callable[[Trial], Mismatch | None]


@dataclass(frozen=True)
class Check:
    """One claim about every trial that it applies to; ``find`` returns None when the claim holds.

    It applies to cases for which ``applies`` holds, and of those to trials that can show it, where ``is_shown_by`` says
    so; where either is None, to all. A trial that cannot show it is not counted as judged by this check.
    ``leaves_memory_intact``: wrong values in the outputs break it, which are no sign of damage to the process.
    """

    id: str
    claim: str
    find: Judge
    applies: Callable[[Case], bool] | None
    is_shown_by: Callable[[Trial], bool] | None
    leaves_memory_intact: bool


REGISTERED: dict[str, Check] = {}


def check(
    claim: str,
    applies: Callable[[Case], bool] | None = None,
    is_shown_by: Callable[[Trial], bool] | None = None,
    leaves_memory_intact: bool = False,
) -> Callable[[Judge], Judge]:
    """Register the function below as the check of its name."""

    def register(find: Judge) -> Judge:
        REGISTERED[find.__name__] = Check(find.__name__, claim, find, applies, is_shown_by, leaves_memory_intact)
        return find

    return register


def is_full_backward(case: Case) -> bool:
    """Tell whether every gradient has a cell to go to."""
    return case.api.is_backward and not case.has_empty_window


def is_forward_with_readable_indices(case: Case) -> bool:
    return not (case.api.is_backward or case.has_empty_window or case.has_bit_mask)
