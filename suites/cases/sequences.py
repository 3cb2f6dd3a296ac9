"""Sequences of calls that are drawn, and smaller ones that fail alike.

Of the calls of a sequence that is drawn the first is a case, the second the same with other data. The third differs
from it in exactly one parameter, or is of another operator. Calls that no action is about are left out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations, pairwise
from typing import Any

from poolproof.references.sequences import (
    FORMS,
    PREPARE,
    RUN,
    Action,
    Actions,
    IllegalAction,
    SequenceModel,
    why_illegal,
)
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.generation import Draws, composite
from poolproof.suites.cases.shrinking import smaller_case
from poolproof.suites.cases.varying import differing_in_one

LENGTH = 16
"""Most actions of a sequence that is drawn."""

_KINDS = (0, 0, 1)
"""Of the calls of a sequence, where the third differs in more than its data."""

_TRIES = 12
"""Draws of the objects of a verb: most have no place where they come."""

_WEIGHTS = {
    "run": 50,
    **dict.fromkeys(("prepare", "set_addresses"), 25),
    **dict.fromkeys(("wait", "end_thread"), 5),
    **dict.fromkeys(("erase", "synchronise", "copy", "destroy", "record"), 3),
    "make_repeatable": 0,
}
"""Weights of verbs, 1 for all others; verbs that seldom have a place are drawn more often. An executor prepared
uncached is made repeatable at once, or behind one more action."""

_CHOICES: Mapping[str, tuple[str, Sequence[Any]]] = {
    "call": ("run", (0, 1, 2)),
    "executor": ("run", (0, 0, 0, 1, 1, 2)),
    "workspace": ("workspace", (None, None, None, 0, 1, 2)),
    "stream": ("synchronise", (1, 1, 1, 2, 0)),
    "thread": ("thread", (0, 0, 0, 1, 2)),
    "asked": ("run", (False, True)),
    "at_once": ("thread", (False, False, False, True)),
}
"""Values of a field for a backend with the named ability; the first one for all others."""


@dataclass(frozen=True)
class CallSequence:
    """Actions on the calls of ``cases``."""

    actions: Actions
    cases: tuple[Case, ...]

    @property
    def kinds(self) -> list[int]:
        """Number the calls so that those that differ in their data alone have one number."""
        described = [replace(case, seed=0, literals=()) for case in self.cases]
        return list(map(described.index, described))

    def why_illegal(self) -> str:
        return why_illegal(self.actions, self.kinds)

    def last_runs(self) -> Mapping[int, int]:
        """Return the number of the action that each call's results come from."""
        model = SequenceModel(self.kinds)
        for action in self.actions:
            model.perform(action)
        return model.last_runs


def one_by_one(cases: Sequence[Case]) -> CallSequence:
    """Make calls in order, at most `MOST` of them."""
    pairs = ((Action("prepare", call=each, executor=each), Action("run", executor=each)) for each in range(len(cases)))
    return CallSequence(tuple(chain.from_iterable(pairs)), tuple(cases))


@composite
def sequences(
    draws: Draws,
    case: Case,
    takes: Callable[[Case], bool],
    abilities: Collection[str],
    of_another: Callable[[Case], Case | None],
) -> CallSequence:
    """Draw a legal sequence of ``abilities`` (`Backend.actions`), on calls that an implementation ``takes``.

    ``of_another`` draws a call of another operator to a case, if there is one.
    """
    if not draws.is_random:
        return CallSequence((PREPARE, RUN), (case,))
    while True:
        actions, cases = actions_of.define(draws, abilities), [case, replace(case, seed=case.seed ^ 1, literals=())]
        if any(2 in (action.call, action.workspace) for action in actions):
            third = of_another(case) if draws.between(0, 2) else None
            others = [] if third else [other for other in differing_in_one(case) if takes(other)]
            cases.append(third or (draws.choose(others) if others else case))
        sequence = _tidy(CallSequence(actions, tuple(cases)))
        if not sequence.why_illegal() and sequence.cases[0] in cases[:2]:
            return sequence


@composite
def actions_of(draws: Draws, abilities: Collection[str]) -> Actions:
    """Draw actions, each legal behind those before it; return the most of them, from the first, that may be all."""
    verbs = [verb for verb in FORMS if verb in abilities for _ in range(_WEIGHTS.get(verb, 1))]
    length, model, actions = draws.between(2, LENGTH), SequenceModel(_KINDS), Actions()
    for _ in range(3 * length):
        verb = draws.choose(verbs)
        for _ in range(_TRIES if len(actions) < length else 0):
            if done := _performed(model, _draw_steps(draws, verb, verbs, abilities)):
                actions += done
                break
    parts = (actions[:end] for end in range(len(actions), 0, -1))
    return next((part for part in parts if not why_illegal(part, _KINDS)), ())


def _performed(model: SequenceModel, steps: Actions) -> Actions:
    """Perform those that are legal."""
    done = Actions()
    for step in steps:
        with suppress(IllegalAction):
            model.perform(step)
            done += (step,)
    return done


def _draw_steps(draws: Draws, verb: str, verbs: Sequence[str], abilities: Collection[str]) -> Actions:
    whats, meant = FORMS[verb]
    what = draws.choose([what for what in whats if verb != "prepare" or what in ("", *abilities)])
    values = {
        name: draws.choose(choices if needed in abilities else choices[:1])
        for name, (needed, choices) in _CHOICES.items()
        if name in meant
    }
    if what != "uncached":
        return (Action(verb, what, **values),)
    verb_between = draws.choose(verbs) if draws.between(0, 3) == 3 else verb
    between = () if verb_between == verb else _draw_steps(draws, verb_between, verbs, abilities)
    repeats = Action("make_repeatable", executor=values["executor"])
    return Action(verb, what, **values | {"at_once": False}), *between, repeats


def _tidy(sequence: CallSequence) -> CallSequence:
    """Leave out the calls that no action is about, and give every phase one an executor of its own number.

    An executor that is never made repeatable need not be uncached.
    """
    used = [getattr(each, name) for each in sequence.actions for name in ("call", "workspace") if _has(each, name)]
    calls = sorted({*used} - {None})
    places: dict[Any, Any] = {None: None, **{number: place for place, number in enumerate(calls)}}
    executors: dict[int, int] = {}
    actions: list[Action] = []
    for action in sequence.actions:
        if action.do == "prepare":
            executors[action.executor] = sum(each.do == "prepare" for each in actions)
        numbers = {"call": places, "workspace": places, "executor": executors}
        own = {name: getattr(action, name) for name in numbers if _has(action, name)}
        actions.append(replace(action, **{name: numbers[name].get(number, number) for name, number in own.items()}))
    repeatable = {action.executor for action in actions if action.do == "make_repeatable"}
    actions = [
        replace(each, what="") if each.what == "uncached" and each.executor not in repeatable else each
        for each in actions
    ]
    return CallSequence(tuple(actions), tuple(sequence.cases[number] for number in calls))


def pairs_visited(sequences: Iterable[CallSequence]) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Return the pairs of operators of which one runs before the other, and of verbs that follow one another."""
    operators, verbs = set[tuple[str, str]](), set[tuple[str, str]]()
    for sequence in sequences:
        call_of, runs = dict[int, int](), list[str]()
        for action in sequence.actions:
            if action.do in ("prepare", "set_addresses"):
                call_of[action.executor] = action.call
            elif action.do == "run":
                runs.append(sequence.cases[call_of[action.executor]].operator)
        operators |= {(first, second) for first, second in combinations(runs, 2) if first != second}
        verbs |= {*pairwise(action.do for action in sequence.actions)}
    return operators, verbs


def smaller_sequence(
    failing: CallSequence,
    words: Mapping[str, Sequence[object]],
    still_fails: Callable[[CallSequence], bool],
    seconds: float,
) -> CallSequence:
    """Reduce a sequence while it fails, then its first case by ``words``, as `smaller_case` does; stop in time.

    Its other calls differ from the first as before. Those of other operators are then reduced by themselves.
    """
    deadline = time.monotonic() + seconds
    smallest, tried, reductions = failing, {failing}, _reductions(failing)
    while time.monotonic() < deadline and (smaller := next(reductions, None)) is not None:
        if smaller in tried or _extent(smaller) >= _extent(smallest) or smaller.why_illegal():
            continue
        tried.add(smaller)
        if still_fails(smaller):
            smallest, reductions = smaller, _reductions(smaller)

    def fails_on(case: Case) -> bool:
        other = _on_case(smallest, case)
        return other is not None and not other.why_illegal() and still_fails(other)

    case = smaller_case(smallest.cases[0], words, fails_on, deadline - time.monotonic())
    smallest = _on_case(smallest, case) or smallest
    for number, other in enumerate(smallest.cases):
        if other.operator != case.operator:
            fails_beside = partial(_fails_beside, smallest, number, still_fails)
            found = smaller_case(other, words, fails_beside, deadline - time.monotonic())
            smallest = _with_call(smallest, number, found)
    return smallest


def _fails_beside(sequence: CallSequence, number: int, still_fails: Callable[[CallSequence], bool], case: Case) -> bool:
    return still_fails(_with_call(sequence, number, case))


def _with_call(sequence: CallSequence, number: int, case: Case) -> CallSequence:
    return replace(sequence, cases=(*sequence.cases[:number], case, *sequence.cases[number + 1 :]))


def _extent(sequence: CallSequence) -> tuple[object, ...]:
    words = list(map(str, sequence.actions))
    return len(words), len(sequence.cases), sum(map(len, words)), words


def _reductions(sequence: CallSequence) -> Iterator[CallSequence]:
    """Yield sequences, many illegal: without an executor, an action or two, then simpler in all places or in one."""
    actions = sequence.actions
    positions = range(len(actions))
    without = [[at for at in positions if _has(actions[at], "executor", number)] for number in positions]
    without += [[*dropped] for count in (1, 2) for dropped in combinations(positions, count)]
    for dropped in without:
        yield _tidy(replace(sequence, actions=tuple(actions[at] for at in positions if at not in dropped)))
    calls = range(len(sequence.cases))
    simpler = {
        "call": calls,
        "stream": (1, 0),
        "thread": (0, 1),
        "workspace": (None,),
        "what": ("",),
        "at_once": (False,),
    }
    for name, value in [(name, value) for name, values in simpler.items() for value in values]:
        for own in dict.fromkeys(getattr(action, name) for action in actions):
            places = [at for at in positions if _has(actions[at], name, own)]
            for changed in (places, *([at] for at in places)):
                change: dict[str, Any] = {name: value}
                made = (replace(actions[at], **change) if at in changed else actions[at] for at in positions)
                yield _tidy(replace(sequence, actions=tuple(made)))


def _has(action: Action, name: str, *values: object) -> bool:
    """Tell whether a field of an action means something, and has one of these values, if any are named."""
    return name in (*FORMS[action.do][1], "what") and (not values or getattr(action, name) in values)


def _on_case(sequence: CallSequence, case: Case) -> CallSequence | None:
    """Put another case in place of the first, from which the others differ as before; None where that cannot be."""
    first, *others = (json.loads(each.to_json()) for each in sequence.cases)
    now, cases = json.loads(case.to_json()), [case]
    for other in others:
        record = {name: _changed(first.get(name), other.get(name), now.get(name)) for name in {**now, **other}}
        try:
            cases.append(Case.from_record({name: value for name, value in record.items() if value is not None}))
        except CaseError:
            return None
    return replace(sequence, cases=tuple(cases))


def _changed(first: Any, other: Any, now: Any) -> Any:
    """Apply the change from the first value to the other to a third; to lists, element by element."""
    if all(isinstance(each, list) for each in (first, other, now)) and len(first) == len(other) == len(now):
        return list(map(_changed, first, other, now))
    return now if first == other else other
