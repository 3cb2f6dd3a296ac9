"""The registry of checks, and the conditions under which a check applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from poolproof.suites.cases.case import Case
from poolproof.suites.judging.findings import Mismatch
from poolproof.suites.judging.trial import Trial

Judge = Callable[[Trial], Mismatch | None]


@dataclass(frozen=True)
class Check:
    """A claim about every trial that it applies to.

    Attributes:
        find: Returns None if the claim holds.
        applies: Selects the cases; None for all.
        is_shown_by: Selects the trials of these cases that can show it; None for all. Others do not count as judged.
        leaves_memory_intact: Only wrong output values break it, which are no sign of damage to the process.
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
    """Register the decorated function as the check of its name."""

    def register(find: Judge) -> Judge:
        REGISTERED[find.__name__] = Check(find.__name__, claim, find, applies, is_shown_by, leaves_memory_intact)
        return find

    return register


def is_full_backward(case: Case) -> bool:
    """Tell whether every gradient has a cell."""
    return case.api.is_backward and not case.has_empty_window


def is_forward_with_readable_indices(case: Case) -> bool:
    return not (case.api.is_backward or case.has_empty_window or case.has_bit_mask)
