"""Defects where classes of two factors meet, or of three, drawn by a seed: how many a plan finds.

    python studies/met_defects.py [--size 2] [--plan smoke] [--defects 60] [--seed 0] [--backend emulator-950]

Each is the backend itself, but that the first element of a result is wrong where the classes meet (never in an empty
batch, which has no element). Those that the rules let meet are drawn, over all operators and dtypes. Exits with 1 if
one is not found.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from poolproof.backends.base import Backend, Call, Outcome, Status
from poolproof.backends.registry import create
from poolproof.reports.rows.factors import Scope, classes_of
from poolproof.reports.rows.features import features_of
from poolproof.reports.rows.meetings import TOGETHER, Space
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.completing import row_of
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, Subject, blocks, scope_of, subjects


@dataclass(frozen=True)
class Meeting:
    """A defect of one operator in one dtype: ``classes`` by the names of their factors."""

    scope: Scope
    dtype: str
    classes: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.scope.operator.name} {self.dtype}: {', '.join(map(': '.join, self.classes.items()))}"

    def is_met_by(self, case: Case) -> bool:
        same = (case.operator, case.dtype) == (self.scope.operator.name, self.dtype)
        return same and self.classes.items() <= classes_of(features_of(row_of(case))).items()


class Defective:
    """A backend whose every result has a wrong first element; all else is the backend's."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    run_all = Backend.run_all  # by `run`: that of the backend makes its own calls

    def run(self, call: Call, mode: str = "") -> Outcome:
        outcome = self._backend.run(call, mode)
        if outcome.status is Status.COMPLETED:
            for array in (call.tensors[name].array for name in call.operator.outputs):
                if array.size:
                    array.flat[0] = 2 if array.flat[0] == 1 else 1
        return outcome


def drawn(subjects: Sequence[Subject], size: int, number: int, seed: int) -> list[Meeting]:
    lots, found = random.Random(seed), []
    while len(found) < number:
        subject = lots.choice(subjects)
        together, possible = lots.choice(Space(scope_of(subject)).combinations(size))
        place = lots.choice(np.argwhere(possible))
        classes = {factor.name: factor.classes[own] for factor, own in zip(together, place, strict=True)}
        if classes.get("batch") != "empty":
            found.append(Meeting(scope_of(subject), subject.dtype, classes))
    return found


def find(meeting: Meeting, cases: Sequence[Case], backend: Any) -> tuple[int, Case] | None:
    """Judge the cases in which the classes meet until one violates; its place in the plan, and the case."""
    for number, case in enumerate(cases, 1):
        asked = CaseQuestion(case, CASE_ASPECTS["values"])
        if meeting.is_met_by(case) and asked.judge(backend)["verdict"] == Verdict.VIOLATES:
            return number, case
    return None


@click.command()
@click.option("--size", type=click.Choice(list(map(str, TOGETHER))), default="2", help="Classes that meet.")
@click.option("--plan", "plan_name", type=click.Choice(list(PLANS)), default="smoke", show_default=True)
@click.option("--defects", "number", default=60, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--backend", default="emulator-950", show_default=True)
def main(size: str, plan_name: str, number: int, seed: int, backend: str) -> None:
    honest = create(backend)
    chosen = [subject for subject in subjects(backend, honest) if subject.unsupported is None]
    planned = list(blocks(chosen, CASE_ASPECTS.values(), PLANS[plan_name], 0))
    missed = 0
    for meeting in drawn(chosen, int(size), number, seed):
        own = [
            question.case
            for block in planned
            if (block.subject.operator, block.subject.dtype) == (meeting.scope.operator, meeting.dtype)
            for question in block.questions()
        ]
        found = find(meeting, own, Defective(honest))
        missed += found is None
        click.echo(f"{meeting} -> {f'case {found[0]:,} of {len(own):,}' if found else 'NOT FOUND'}")
    click.echo(f"{number - missed} of {number} found by the {plan_name} plan")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
