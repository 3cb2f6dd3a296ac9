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
    """One claim about every trial it applies to.

    ``find`` returns None when the claim holds. ``applies`` says whether a trial can show it; one that cannot is
    not counted as judged by this check.
    """

    id: str
    claim: str
    applies: Callable[[Trial], bool]
    find: Judge


REGISTERED: dict[str, Check] = {}


def check(claim: str, applies: Callable[[Trial], bool]) -> Callable[[Judge], Judge]:
    """Register the function below as the check of its name."""

    def register(find: Judge) -> Judge:
        REGISTERED[find.__name__] = Check(find.__name__, claim, applies, find)
        return find

    return register


@dataclass(frozen=True)
class CaseCondition:
    """A condition on trials that the case alone decides."""

    holds: Callable[[Case], bool]

    def __call__(self, trial: Trial) -> bool:
        return self.holds(trial.case)


always = CaseCondition(lambda case: True)  # noqa: ARG005
backward = CaseCondition(lambda case: case.api.is_backward)
full_backward = CaseCondition(lambda case: case.api.is_backward and not case.has_empty_window())
"""A backward of which every gradient has a cell to go to."""
forward = CaseCondition(lambda case: not case.api.is_backward and not case.has_empty_window())
forward_with_readable_indices = CaseCondition(lambda case: forward.holds(case) and not case.has_bit_mask)
forward_with_empty_windows = CaseCondition(lambda case: not case.api.is_backward and case.has_empty_window())
laid_out = CaseCondition(lambda case: bool(case.layouts))
