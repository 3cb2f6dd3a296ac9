"""Further cases at the end of a run, which narrow down the conditions of its failures.

Cases that differ from a failing one in a few respects are judged: on both sides of a threshold, halving the distance
between values that fail and conform; at random, some that meet the condition of the failures and some that miss it by
one term. The condition itself comes with a `FailureCluster`; it is refined from the rows of all cases.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from poolproof.backends.base import BackendUnavailable, UnknownBackend
from poolproof.reports.clusters.cluster import Bound, FailureCluster
from poolproof.reports.clusters.clustering import clusters_of, open_clusters
from poolproof.reports.recorder import Done
from poolproof.reports.rows.checks import DIAGNOSIS, held_to
from poolproof.reports.rows.io_errors import environment_errors
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.generation import derive_seed
from poolproof.suites.cases.varying import Parameter, Record, alternatives, changed, parameters
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.blocks import has_call
from poolproof.suites.plan.lines import CLAIMS, further_question
from poolproof.suites.plan.plans import Subject
from poolproof.suites.probe.command import accounts
from poolproof.suites.probe.experiment import Account
from poolproof.suites.probe.questions import MEMORY_FORMATS, ProbeQuestion
from poolproof.suites.run.interrupts import raise_lost_interrupt

ROUNDS = (120, 50, 30)
"""Most cases for one condition in each round; between two rounds the conditions are found anew."""

_BESIDE = 4
"""How far around its value a length is tried in steps of 1: remainders, for one, do not grow with it."""

_TRIES = 40
"""Random changes that are tried to draw a case."""

_OF_EACH, _WITHOUT_TERMS = 8, 60
"""Cases drawn that meet a condition, and that miss each of its terms: few, since they all lie near one case. More if
there is no condition yet."""

_PROBED = 3
"""Operators and dtypes of a backend that are probed at the end of a run."""

_MOST_CHANGES = 3
"""Changes of one case at once."""

Ask = Callable[[CaseQuestion, str], Row]
"""Judges a question on a backend, and records its row."""


def diagnose(
    folder: Path,
    ask: Ask,
    subjects: Sequence[Subject],
    seconds: float,
    done: Done,
    say: Callable[[str], object],
    latest: float = inf,
) -> None:
    """Narrow down what is wrong with the run in a folder, by further cases that ``ask`` judges and records.

    It ends at the monotonic time ``latest``. An interrupt ends the diagnosis alone. `CannotWrite` if a row cannot be
    recorded.
    """
    known = {case for block, case in done.cases if block.startswith(DIAGNOSIS)}
    try:
        with environment_errors():
            narrow_down(
                lambda: open_clusters(clusters_of(folder, counts_all=False)), ask, subjects, seconds, say, known, latest
            )
            raise_lost_interrupt()
    except KeyboardInterrupt:
        say(f"{DIAGNOSIS} interrupted: what was learned so far counts")
    except (BackendUnavailable, UnknownBackend) as error:
        say(f"no further cases: {error}")


def probe_sums(folder: Path, say: Callable[[str], object], latest: float = inf) -> dict[str, list[dict[str, Any]]]:
    """Take the probe's account of operators and dtypes whose sums deviate, by backend; of what is unavailable none.

    It ends at the monotonic time ``latest``; an interrupt ends the probe alone.
    """
    wanted: dict[str, set[tuple[str, str]]] = {}
    for cluster in clusters_of(folder, counts_all=False):
        if cluster.is_about_sums and len(wanted.setdefault(cluster.backend, set())) < _PROBED:
            wanted[cluster.backend].add(cluster.place)
    try:
        with environment_errors():
            found = {backend: list(_accounts(backend, places, latest)) for backend, places in wanted.items()}
            raise_lost_interrupt()
            return found
    except KeyboardInterrupt:
        say("probe interrupted: how sums are added is not told")
        return {}


def _accounts(backend: str, places: set[tuple[str, str]], latest: float) -> Iterator[dict[str, Any]]:
    def is_wanted(asked: ProbeQuestion) -> bool:
        return (asked.operator, asked.dtype) in places

    with suppress(BackendUnavailable, UnknownBackend):
        for _, account in accounts(backend, MEMORY_FORMATS[:1], is_wanted, latest):
            if isinstance(account, Account):
                yield account.to_record()


def narrow_down(
    find: Callable[[], Sequence[FailureCluster]],
    ask: Ask,
    subjects: Sequence[Subject],
    seconds: float,
    say: Callable[[str], object],
    known: set[str],
    latest: float = inf,
) -> None:
    """Search for ``seconds`` around each condition that ``find`` returns, round by round, in which new ones turn up.

    ``subjects`` are what the backends support. ``say`` takes a line on how many are searched. ``known`` are ids of
    cases that are not to be judged.
    """
    searched: set[str] = set()
    until = 0.0
    for number, cases in enumerate(ROUNDS):
        found = [condition for condition in find() if condition.name not in searched]
        begun = [(condition, case) for condition in found if (case := _start(condition)) is not None]
        if begun and number == 0:
            about = count_of(len(begun), "suspect")
            say(f"\nfurther cases are asked about {about}: {seconds:g} s each at most (--diagnose)")
        until = until or min(latest, time.monotonic() + seconds * len(begun))
        for condition, case in begun:
            searched.add(condition.name)
            end = min(until, time.monotonic() + seconds)
            ConditionSearch(condition, case, subjects, ask, cases, end, known).run()


def _start(condition: FailureCluster) -> Case | None:
    """Return the smallest case that meets a condition; None if its failures are not of cases."""
    aspect = _aspect_of(condition)
    try:
        cases = [Case.from_json(line) for line in condition.lines if aspect in CLAIMS]
    except CaseError:
        return None
    return next((case for case in cases if all(condition.met(further_question(case, aspect).describe()))), None)


class WantedRange(NamedTuple):
    """Integers from ``low`` to ``high``, the nearer to ``best`` the better."""

    best: int
    low: float
    high: float


@dataclass
class ConditionSearch:
    """A search around a failing case, ``start``, by at most ``left`` cases, ``until`` a monotonic time."""

    condition: FailureCluster
    start: Case
    subjects: Sequence[Subject]
    ask: Ask
    left: int
    until: float
    known: set[str]

    def __post_init__(self) -> None:
        self.known.add(self.start.id)
        self._aspect = _aspect_of(self.condition)
        self._rng = random.Random(derive_seed(self.condition.name, self.start.id))
        self._subjects = {
            (subject.operator.name, subject.dtype, subject.index_dtype): subject
            for subject in self.subjects
            if subject.backend == self.condition.backend
        }

    def run(self) -> None:
        """Narrow each threshold, try values around every other number of the condition, and then refute it."""
        narrowed = dict(self.condition.thresholds)
        for number, feature in enumerate(self.condition.features):
            if number in narrowed:
                self._narrow(number, narrowed[number])
            elif (value := self._value(self.start, feature)) is not None:
                for near in (value + 1, value - 1, value + 2, value - 2, 2 * value, value // 2):
                    self._outcome_at(number, feature, WantedRange(near, near, near))
        self._refute()

    @property
    def _has_room(self) -> bool:
        return self.left > 0 and time.monotonic() < self.until

    def _narrow(self, number: int, bound: Bound) -> None:
        """Halve the distance between failing and conforming values, as long as cases with values between can be made.

        The case that conformed may have been of another kind, so first one like the failing case has to conform there.
        """
        fails, conforms = bound.fails, bound.conforms
        if conforms is None:
            return
        farther = (-inf, conforms) if conforms < fails else (conforms, inf)
        seen = self._outcome_at(number, bound.feature, WantedRange(conforms, *farther))
        if seen and seen[1]:
            return
        while seen and abs(fails - conforms) > 1 and self._has_room:
            low, high = sorted((fails, conforms))
            seen = self._outcome_at(number, bound.feature, WantedRange((low + high) // 2, low + 1, high - 1))
            match seen:
                case value, True:
                    fails = value
                case value, _:
                    conforms = value

    def _outcome_at(self, number: int, feature: str, wanted: WantedRange) -> tuple[int, bool] | None:
        """Judge a case whose feature is in a range: (value, whether it fails); None if there is no such case."""
        for base in _plainer(self.start):
            for value, case in self._candidates(base, number, feature, wanted)[:_MOST_CHANGES]:
                if (fails := self._fails(case)) is not None:
                    return value, fails
        return None

    def _candidates(self, base: Case, number: int, feature: str, wanted: WantedRange) -> list[tuple[int, Case]]:
        """List the (value, case) that differ from a case by a parameter and meet all terms but one, the best first."""
        found: list[tuple[int, Case]] = []
        for parameter in parameters(base) if self._has_room else ():
            made = _nearest(parameter, lambda case: self._value(case, feature), wanted)
            if made is None or not self._can_be_asked(made[1]):
                continue
            if all(holds or term == number for term, holds in enumerate(self._met(made[1]))):
                found.append(made)
                if made[0] == wanted.best:
                    break
        return sorted(found, key=lambda candidate: abs(candidate[0] - wanted.best))

    def _fails(self, case: Case) -> bool | None:
        """Tell whether a case fails with one of 2 seeds, or 6; None if nothing is learned."""
        seen: set[bool | None] = set()
        for more in range(6 if self.condition.exceptions else 2):
            if self._has_room and True not in seen:
                seen.add(self._judged(replace(case, seed=case.seed + more)))
        return None if seen <= {None} else True in seen

    def _refute(self) -> None:
        """Judge cases that meet the condition, alternating with cases that miss one of its terms."""
        terms = range(len(self.condition.features))
        for missed in [None, *terms] * (_OF_EACH if terms else _WITHOUT_TERMS):
            if self._has_room and (case := self._drawn(missed)) is not None:
                self._judged(case)

    def _drawn(self, missed: int | None) -> Case | None:
        """Draw a case near the first that misses one term, or no term; None if there is none."""
        for _ in range(_TRIES):
            case = self.start
            for _ in range(self._rng.randint(1, _MOST_CHANGES)):
                case = self._changed(case) or case
            is_wanted = all(holds == (term != missed) for term, holds in enumerate(self._met(case)))
            if is_wanted and case.id not in self.known and self._can_be_asked(case):
                return case
        return None

    def _changed(self, case: Case) -> Case | None:
        if self._rng.random() < 0.6:
            parameter = self._rng.choice(parameters(case))
            value = parameter.value
            near = [value + 1, value - 1, 2 * value, value // 2]
            return parameter.with_value(self._rng.choice([*near, 1, 2, 3, 5, 8, 17, 33, 64, 130]))
        changes: list[Record] = [{"seed": self._rng.getrandbits(32)}]
        changes += [
            {"dtype": dtype, "index_dtype": index_dtype}
            for operator, dtype, index_dtype in self._subjects
            if operator == case.operator
        ]
        profile = CASE_ASPECTS.get(self._aspect, CASE_ASPECTS["values"]).profile
        changes += [{"values": word} for word in profile.values]
        if case.api.is_backward:
            changes += [{"gradient": word} for word in profile.gradients]
            changes += [{"indices": word} for word in profile.indices]
        return changed(case, self._rng.choice([*changes, *alternatives(case)]))

    def _can_be_asked(self, case: Case) -> bool:
        subject = self._subjects.get((case.operator, case.dtype, case.index_dtype))
        return subject is not None and subject.unsupported is None and has_call(subject, case)

    def _value(self, case: Case, feature: str) -> int | None:
        return self.condition.value(further_question(case, self._aspect).describe(), feature)

    def _met(self, case: Case) -> tuple[bool, ...]:
        return self.condition.met(further_question(case, self._aspect).describe())

    def _judged(self, case: Case) -> bool | None:
        """Judge a case and tell whether it fails; None if it was known, or nothing was learned."""
        if case.id in self.known:
            return None
        self.known.add(case.id)
        self.left -= 1
        verdict = self.ask(further_question(case, self._aspect), self.condition.backend)["verdict"]
        return True if verdict in FAILED else False if verdict == Verdict.CONFORMS else None


def _aspect_of(condition: FailureCluster) -> str:
    return held_to(condition.smallest["aspect"], condition.smallest["block"] or "")


def _plainer(case: Case) -> Iterable[Case]:
    made = [case]
    changes: list[Record] = [{"shape": [1, case.planes, *case.spatial_shape]}, {"layouts": {}}]
    for change in changes:
        made += [other for base in tuple(made) if (other := changed(base, change)) is not None]
    return dict.fromkeys(made)


def _nearest(
    parameter: Parameter, number_of: Callable[[Case], int | None], wanted: WantedRange
) -> tuple[int, Case] | None:
    """Vary a parameter until a number is nearest to the best in a range: (number, case); None if it is never in it.

    Values around the parameter's own and powers of two are tried, then those between two where the number passes the
    best.
    """
    seen: dict[int, tuple[int, Case]] = {}

    def evaluate(value: int) -> int | None:
        case = parameter.with_value(value)
        number = None if case is None else number_of(case)
        if case is not None and number is not None:
            seen[value] = number, case
        return number

    beside = range(parameter.value - _BESIDE, parameter.value + _BESIDE + 1)
    for value in sorted({parameter.low, parameter.most, *beside, *(1 << power for power in range(21))}):
        evaluate(value)
    for low, high in pairwise(sorted(seen)):
        first, last = seen[low][0], seen[high][0]
        if min(first, last) < wanted.best < max(first, last):
            while high - low > 1:
                number = evaluate(middle := (low + high) // 2)
                if number is None or number == wanted.best:
                    break
                low, high = (middle, high) if (number < wanted.best) == (first < last) else (low, middle)
            break
    fitting = [candidate for candidate in seen.values() if wanted.low <= candidate[0] <= wanted.high]
    return min(fitting, key=lambda candidate: abs(candidate[0] - wanted.best), default=None)
