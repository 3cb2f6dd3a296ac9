"""Defects that are drawn by a seed, not thought up: how many a plan finds, and how small what shows them becomes.

    python studies/drawn_defects.py sequences [--defects 60] [--seed 0]

``sequences``: the result of a run is wrong because of one earlier action, at any distance: `run thread=2` behind
`refuse` of another call, say. What an earlier action and a run are told by is drawn from the actions of the model,
each as often as any other; in place of one that none of 4,000 drawn sequences has (some are illegal) another is drawn.
A defect is made by wrapping a right backend, the emulator of the 950: where the pattern is in a sequence, the first
element of what that run computed is another.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import click
import numpy as np

from poolproof.backends.base import Backend, Call, SequenceResult
from poolproof.backends.registry import create
from poolproof.references.sequences import FORMS, Action, Actions
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.generation import Draws, derive_seed
from poolproof.suites.cases.sequences import draw_actions
from poolproof.suites.judging.phases import PhaseQuestion
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.aspects import PHASES
from poolproof.suites.plan.blocks import SequenceBlock
from poolproof.suites.plan.lines import parse_line
from poolproof.suites.plan.plans import PLANS, blocks, subjects

NAME = "emulator-950"
SAMPLE = 4000
SHRINK_SECONDS = 20.0


@dataclass(frozen=True)
class Told:
    """An action with the call that it is about, which an executor's is that of its call; a run with its phase one."""

    action: Action
    call: int | None
    prepared: Action | None = None


def tell(actions: Actions) -> list[Told]:
    executors: dict[int, tuple[int, Action]] = {}
    found = []
    for action in actions:
        meant = FORMS[action.do][1]
        call = action.call if "call" in meant else None
        prepared = None
        if action.do == "prepare":
            executors[action.executor] = action.call, action
        elif "executor" in meant:
            call, prepared = executors[action.executor]
            if action.do == "set_addresses":
                executors[action.executor] = action.call, prepared
        found.append(Told(action, call, prepared))
    return found


@dataclass(frozen=True)
class Defect:
    """``fields`` of an ``earlier`` action and of a run count, or the phase one of the run, where they are not None.

    ``same``: whether both are about one call, or about two; None: either.
    """

    do: str
    what: str
    earlier: tuple[str, int] | None
    run: tuple[str, object] | None
    same: bool | None

    @classmethod
    def draw(cls, rng: random.Random) -> Defect:
        do = rng.choice(sorted(FORMS))
        whats, meant = FORMS[do]
        of_earlier = [(name, value) for name in ("stream", "thread") if name in meant for value in (0, 1, 2)]
        of_run = [(name, value) for name in ("stream", "thread") for value in (0, 1, 2)]
        of_run += [("what", what) for what in FORMS["prepare"][0]]
        same = rng.choice((None, True, False)) if {"call", "executor"} & {*meant} else None
        return cls(do, rng.choice(whats), rng.choice([None, *of_earlier]), rng.choice([None, *of_run]), same)

    def __str__(self) -> str:
        earlier = " ".join(filter(None, [self.do, self.what, _words(self.earlier)]))
        relation = {None: "", True: " of its call", False: " of another call"}[self.same]
        return f"run {_words(self.run)}".rstrip() + f" behind {earlier}{relation}"

    def spoils(self, actions: Actions) -> set[int]:
        """Return the calls whose results, those of their last run, it makes wrong."""
        told = tell(actions)
        last = {each.call: number for number, each in enumerate(told) if each.action.do == "run"}
        return {
            call
            for call, number in last.items()
            if call is not None and any(self._is_shown(told[number], earlier) for earlier in told[:number])
        }

    def _is_shown(self, run: Told, earlier: Told) -> bool:
        if (earlier.action.do, earlier.action.what) != (self.do, self.what):
            return False
        if self.earlier and getattr(earlier.action, self.earlier[0]) != self.earlier[1]:
            return False
        if self.run:
            name, value = self.run
            of = run.prepared if name == "what" else run.action
            if getattr(of, name) != value:
                return False
        return self.same is None or self.same == (run.call == earlier.call)


def _words(field: tuple[str, object] | None) -> str:
    return "" if field is None else f"{field[0]}={field[1]!r}"


class Spoilt:
    """A right backend but for a defect of sequences."""

    def __init__(self, right: Backend, defect: Defect) -> None:
        self._right, self._defect = right, defect

    def __getattr__(self, name: str) -> object:
        return getattr(self._right, name)

    def run_sequence(self, actions: Actions, calls: Sequence[Call]) -> SequenceResult:
        result = self._right.run_sequence(actions, calls)
        for call in self._defect.spoils(actions):
            out = calls[call].tensors[calls[call].operator.outputs[0]].array
            if out.size:
                first = (0,) * out.ndim
                out[first] = 2 if np.isnan(out[first]) or out[first] != 2 else 3
        return result


def drawn(count_of: int, seed: int) -> list[Defect]:
    """Draw defects that differ, each of which one of many drawn sequences shows."""
    draws, rng = Draws(derive_seed(seed, "sample")), random.Random(seed)
    draws.is_random = True
    abilities = create(NAME).actions
    sample = [actions for actions in (draw_actions(draws, abilities) for _ in range(SAMPLE)) if actions]
    found: dict[Defect, None] = {}
    for tried in count(1):
        defect = Defect.draw(rng)
        if any(map(defect.spoils, sample)):
            found[defect] = None
        if len(found) == count_of:
            click.echo(f"{count_of} defects, of {tried} that were drawn")
            return [*found]
    raise AssertionError


def find(defect: Defect, plan: str, backend: Backend) -> tuple[int, SequenceBlock, PhaseQuestion] | None:
    """Find it by the sequences of a plan, in its order: (how many until then, block, question)."""
    for number, (block, question) in enumerate(_asked(plan), 1):
        if defect.spoils(question.scenario.actions) and _violates(question, backend, defect):
            return number, block, question
    return None


_ASKED: dict[str, list[tuple[SequenceBlock, PhaseQuestion]]] = {}


def _asked(plan: str) -> list[tuple[SequenceBlock, PhaseQuestion]]:
    if plan not in _ASKED:
        planned = blocks(subjects(NAME, create(NAME)), [PHASES], PLANS[plan], 0)
        of_sequences = [block for block in planned if isinstance(block, SequenceBlock)]
        _ASKED[plan] = [(block, question) for block in of_sequences for question in block.questions()]
    return _ASKED[plan]


def _violates(question: Question, backend: Backend, defect: Defect) -> bool:
    return bool(question.judge(Spoilt(backend, defect))["verdict"] == Verdict.VIOLATES)  # type: ignore[arg-type]


@click.group()
def main() -> None:
    pass


@main.command()
@click.option("--defects", default=60, show_default=True)
@click.option("--seed", default=0, show_default=True)
def sequences(defects: int, seed: int) -> None:
    backend = create(NAME)
    lengths, found = [], {"smoke": 0, "acceptance": 0}
    for defect in drawn(defects, seed):
        plan, shown = next(((plan, it) for plan in found if (it := find(defect, plan, backend))), ("neither", None))
        line = ""
        if shown:
            number, block, question = shown
            smallest = block.smaller(question, lambda asked: _violates(asked, backend, defect), SHRINK_SECONDS)  # noqa: B023
            read = parse_line((smallest or question).to_line())
            assert isinstance(read, PhaseQuestion) and _violates(read, backend, defect)
            lengths.append(len(read.scenario.actions))
            found[plan] += 1
            line = f" after {number} sequences: {', '.join(map(str, read.scenario.actions))}"
        click.echo(f"{defect}: {plan}{line}")
    share = {"smoke": found["smoke"], "acceptance": sum(found.values())}
    for plan, many in share.items():
        click.echo(f"{plan}: {many} of {defects} found ({100 * many / defects:.0f} %)")
    click.echo(f"actions of the smallest sequences: median {statistics.median(lengths):g}, most {max(lengths)}")


if __name__ == "__main__":
    main()
