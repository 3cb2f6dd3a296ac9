"""Further cases at the end of a run, which narrow down what is wrong with it.

Around a failing case others are made that differ from it in one respect or a few, and are judged: on both sides of a
threshold, halving the distance between what was seen to fail and to conform; at random, such as meet the condition, and
such as miss it by one term. What the condition is, an `Inquiry` knows. What the cases say of it follows from their
rows, as of all others.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Protocol

from poolproof.reports.rows.checks import DIAGNOSIS, NEIGHBOURS, diagnosis_block, held_to
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED, BadInput, Verdict
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.generation import derive_seed
from poolproof.suites.cases.varying import Parameter, Record, alternatives, changed, parameters
from poolproof.suites.judging.case_question import AUXILIARY, CaseQuestion
from poolproof.suites.judging.question import Aspect
from poolproof.suites.running.aspects import CASE_ASPECTS, EVERYTHING, LISTED
from poolproof.suites.running.blocks import has_call
from poolproof.suites.running.plans import Subject

ROUNDS = (120, 50, 30)
"""Most cases that are asked about one suspect in turn: between two rounds the suspects are told anew."""

_AROUND: Sequence[Callable[[int], int]] = (
    lambda value: value + 1,
    lambda value: value - 1,
    lambda value: value + 2,
    lambda value: value - 2,
    lambda value: 2 * value,
    lambda value: value // 2,
)
"""Where else a number is looked at that a condition names."""

_ANY = 1 << 62

_BESIDE = 4
"""How far beside its value a length is tried in steps of 1: a remainder goes no one way."""

_TRIES = 40
"""Changes that are tried until a case is as it is wanted."""

_OF_EACH, _WITHOUT_TERMS = 8, 60
"""Cases that are drawn to meet a condition, and to miss each of its terms: they all lie near one case, and as many as
others are would be taken for what is usual. Where there is no condition yet, cases near one tell what it may be."""

_MOST_CHANGES = 3
"""Of one case at once, where cases are drawn."""

_FEWEST_TO_CONFORM = 2
"""Cases of other seeds that have to conform at a value of a threshold, of which one that fails is enough."""

_CLAIMS: dict[str, Aspect] = {**CASE_ASPECTS, EVERYTHING.id: EVERYTHING, LISTED.id: LISTED, NEIGHBOURS: AUXILIARY}


class NoFurtherCase(BadInput):
    """A row is none of a further case; the text says why."""


class Threshold(Protocol):
    """Between two values of a feature: cases fail at one and conform at the other."""

    @property
    def feature(self) -> str: ...

    @property
    def fails(self) -> int: ...

    @property
    def conforms(self) -> int | None: ...


class Inquiry(Protocol):
    """What is suspected of a ``backend``, as rows tell it."""

    @property
    def backend(self) -> str: ...

    @property
    def name(self) -> str:
        """The same of the same condition."""

    @property
    def failing(self) -> Row:
        """A row that fails and meets the condition."""

    @property
    def lines(self) -> Sequence[str]:
        """Cases to begin with, the smallest first."""

    @property
    def features(self) -> Sequence[str]:
        """What its terms are about."""

    @property
    def fails_always(self) -> bool:
        """Whether every case failed so far that meets the condition."""

    @property
    def thresholds(self) -> Sequence[tuple[int, Threshold]]:
        """(number of a term, what was seen beside its threshold)."""

    def met(self, row: Row) -> tuple[bool, ...]:
        """Which terms a row meets, judged or not."""

    def value(self, row: Row, feature: str) -> int | None: ...


Ask = Callable[[CaseQuestion, str], Row]
"""Has a question judged on a backend, and recorded."""


def further_question(case: Case, aspect: str) -> CaseQuestion:
    """A further case, held to the claims of an aspect; KeyError for one that is not about cases."""
    claims = _CLAIMS[aspect]
    return CaseQuestion(case, Aspect(DIAGNOSIS, claims.claim, claims.checks, claims.repeats), diagnosis_block(aspect))


def asked_by(row: Row) -> CaseQuestion:
    """The question that the row of a further case answers; `NoFurtherCase` where it answers none."""
    try:
        return further_question(Case.from_json(row["case"]), held_to(DIAGNOSIS, row["block"]))
    except (CaseError, KeyError, TypeError, AttributeError) as error:
        raise NoFurtherCase(f"its case or its block is none: {error}") from error


@dataclass
class Diagnosis:
    """Asks about whatever ``find`` finds, ``seconds`` each; ``subjects`` are what the backends can be asked about.

    ``tell`` is told in each round how many suspects there are to ask about. ``known`` are ids of cases not to ask.
    """

    find: Callable[[], Sequence[Inquiry]]
    ask: Ask
    subjects: Sequence[Subject]
    seconds: float
    tell: Callable[[int], None]
    known: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Round by round, each about conditions that were not asked about yet."""
        heard: set[str] = set()
        until = 0.0
        for cases in ROUNDS:
            found = [inquiry for inquiry in self.find() if inquiry.name not in heard]
            begun = [(inquiry, case) for inquiry in found if (case := self._start(inquiry)) is not None]
            self.tell(len(begun))
            until = until or time.monotonic() + self.seconds * len(begun)
            for inquiry, case in begun:
                heard.add(inquiry.name)
                end = min(until, time.monotonic() + self.seconds)
                Asking(inquiry, case, self.subjects, self.ask, cases, end, self.known).all()

    def _start(self, inquiry: Inquiry) -> Case | None:
        """The smallest case that meets a condition; None for what is no case, or about none."""
        aspect = held_to(inquiry.failing["aspect"], inquiry.failing["block"] or "")
        if aspect not in _CLAIMS:
            return None
        for line in inquiry.lines:
            try:
                case = Case.from_json(line)
            except CaseError:
                return None
            if all(inquiry.met(further_question(case, aspect).describe())):
                return case
        return None


@dataclass(frozen=True)
class Sought:
    """Integers from ``low`` to ``high``, the nearer to ``best`` the better."""

    best: int
    low: int
    high: int

    @classmethod
    def between(cls, fails: int, conforms: int) -> Sought:
        """Two values, neither of them."""
        low, high = sorted((fails, conforms))
        return cls((low + high) // 2, low + 1, high - 1)

    @classmethod
    def beyond(cls, fails: int, conforms: int) -> Sought:
        """A value that conforms, or farther from one that fails."""
        return cls(conforms, -_ANY, conforms) if conforms < fails else cls(conforms, conforms, _ANY)


class Asking:
    """Asks at most so many ``cases`` about one condition ``until`` a monotonic time, around one that fails."""

    def __init__(
        self,
        inquiry: Inquiry,
        start: Case,
        subjects: Sequence[Subject],
        ask: Ask,
        cases: int,
        until: float,
        known: set[str],
    ) -> None:
        self._inquiry = inquiry
        self._aspect = held_to(inquiry.failing["aspect"], inquiry.failing["block"] or "")
        self._subjects = {_pair(each): each for each in subjects if each.backend == inquiry.backend}
        self._ask = ask
        self._left = cases
        self._until = until
        self._known = known
        self._start = start
        known.add(start.id)
        self._lots = random.Random(derive_seed(inquiry.name, start.id))

    def all(self) -> None:
        narrowed = dict(self._inquiry.thresholds)
        for number, feature in enumerate(self._inquiry.features):
            if number in narrowed:
                self._narrow(number, narrowed[number])
            else:
                self._look_around(number, feature)
        self._refute()

    @property
    def _has_room(self) -> bool:
        return self._left > 0 and time.monotonic() < self._until

    def _narrow(self, number: int, threshold: Threshold) -> None:
        """Halve the distance between failing and conforming values, as long as cases of values between can be made.

        What was seen to conform may have been another kind of case: it is looked at first whether one like the failing
        one does.
        """
        fails, conforms = threshold.fails, threshold.conforms
        if conforms is None:
            return
        seen = self._outcome_at(number, threshold.feature, Sought.beyond(fails, conforms))
        if seen is None or seen[1]:
            return
        while abs(fails - conforms) > 1 and self._has_room:
            match self._outcome_at(number, threshold.feature, Sought.between(fails, conforms)):
                case None:
                    return
                case value, True:
                    fails = value
                case value, _:
                    conforms = value

    def _look_around(self, number: int, feature: str) -> None:
        """Cases of values beside the one that fails, of a number that a term names."""
        value = self._inquiry.value(self._described(self._start), feature)
        if value is not None:
            for near in _AROUND:
                self._outcome_at(number, feature, Sought(near(value), near(value), near(value)))

    def _outcome_at(self, number: int, feature: str, sought: Sought) -> tuple[int, bool] | None:
        """(value, whether it fails) of a case whose feature is as sought; None where there is none that tells."""
        for base in _plainer(self._start):
            for value, case in self._reaching(base, number, feature, sought)[:_MOST_CHANGES]:
                fails = self._fails(case)
                if fails is not None:
                    return value, fails
        return None

    def _reaching(self, base: Case, number: int, feature: str, sought: Sought) -> list[tuple[int, Case]]:
        """(value, case): cases that differ from one by a length and meet all terms but perhaps one, the best first."""

        def value_of(case: Case) -> int | None:
            return self._inquiry.value(self._described(case), feature)

        found: list[tuple[int, Case]] = []
        for parameter in parameters(base) if self._has_room else ():
            made = _nearest(parameter, value_of, sought)
            if made is not None and self._meets(made[1], but=number) and self._can_be_asked(made[1]):
                found.append(made)
                if made[0] == sought.best:
                    break
        return sorted(found, key=lambda each: abs(each[0] - sought.best))

    def _fails(self, case: Case) -> bool | None:
        """Whether it fails, or another of other data; None where nothing is learned."""
        tries = _FEWEST_TO_CONFORM * (1 if self._inquiry.fails_always else 3)
        seen = []
        for more in range(tries):
            if not self._has_room:
                break
            seen.append(self._judged(replace(case, seed=case.seed + more)))
            if seen[-1]:
                return True
        return False if False in seen else None

    def _refute(self) -> None:
        """Cases that meet the condition, and in turn such as miss one of its terms alone; without a condition, more."""
        terms = range(len(self._inquiry.features))
        for missed in [None, *terms] * (_OF_EACH if terms else _WITHOUT_TERMS):
            if not self._has_room:
                return
            if (case := self._drawn(missed)) is not None:
                self._judged(case)

    def _drawn(self, missed: int | None) -> Case | None:
        """A case near the first that misses one term alone, or none; None where none was found."""
        for _ in range(_TRIES):
            case = self._start
            for _ in range(self._lots.randint(1, _MOST_CHANGES)):
                case = self._changed(case) or case
            met = self._inquiry.met(self._described(case))
            is_wanted = _missed(met) == ([] if missed is None else [missed])
            if is_wanted and case.id not in self._known and self._can_be_asked(case):
                return case
        return None

    def _changed(self, case: Case) -> Case | None:
        """Another length or attribute, or another recipe, dtype, layout or seed."""
        if self._lots.random() < 0.6:
            parameter = self._lots.choice(parameters(case))
            return parameter.with_value(self._lots.choice(_near(parameter.value)))
        return changed(case, self._lots.choice([*self._words(case), *alternatives(case)]))

    def _words(self, case: Case) -> list[Record]:
        """What else can stand in the fields of a case, as the aspect draws it and the backend takes it."""
        changes: list[Record] = [{"seed": self._lots.getrandbits(32)}]
        changes += [
            {"dtype": dtype, "index_dtype": index_dtype}
            for operator, dtype, index_dtype in self._subjects
            if operator == case.operator
        ]
        profile = CASE_ASPECTS[self._aspect].profile if self._aspect in CASE_ASPECTS else CASE_ASPECTS["values"].profile
        changes += [{"values": word} for word in profile.values]
        if case.api.is_backward:
            changes += [{"gradient": word} for word in profile.gradients]
            changes += [{"indices": word} for word in profile.indices]
        return changes

    def _meets(self, case: Case, but: int) -> bool:
        return set(_missed(self._inquiry.met(self._described(case)))) <= {but}

    def _can_be_asked(self, case: Case) -> bool:
        subject = self._subjects.get((case.operator, case.dtype, case.index_dtype))
        return subject is not None and subject.unsupported is None and has_call(subject, case)

    def _described(self, case: Case) -> Row:
        return further_question(case, self._aspect).describe()

    def _judged(self, case: Case) -> bool | None:
        """Whether a case fails; None where it was known, or nothing was learned."""
        if case.id in self._known:
            return None
        self._known.add(case.id)
        self._left -= 1
        verdict = self._ask(further_question(case, self._aspect), self._inquiry.backend)["verdict"]
        return True if verdict in FAILED else False if verdict == Verdict.CONFORMS else None


def _pair(subject: Subject) -> tuple[str, str, str]:
    return subject.operator.name, subject.dtype, subject.index_dtype


def _missed(met: Sequence[bool]) -> list[int]:
    return [number for number, holds in enumerate(met) if not holds]


def _plainer(case: Case) -> Iterator[Case]:
    """The case, with all planes along one axis, and without layouts."""
    made = [case]
    changes: list[Record] = [{"shape": [1, case.planes, *case.spatial_shape]}, {"layouts": {}}]
    for change in changes:
        made += [other for each in tuple(made) if (other := changed(each, change)) is not None]
    yield from dict.fromkeys(made)


def _near(value: int) -> list[int]:
    return [value + 1, value - 1, 2 * value, value // 2, 1, 2, 3, 5, 8, 17, 33, 64, 130]


def _nearest(parameter: Parameter, number_of: Callable[[Case], int | None], sought: Sought) -> tuple[int, Case] | None:
    """(number, case): the parameter turned to where a number is nearest to what is sought; None where it is never.

    It is tried beside its value and at powers of two, and between two of them where the number passes what is sought.
    """
    seen: dict[int, tuple[int, Case]] = {}

    def told(value: int) -> int | None:
        case = parameter.with_value(value)
        number = None if case is None else number_of(case)
        if case is not None and number is not None:
            seen[value] = number, case
        return number

    beside = range(parameter.value - _BESIDE, parameter.value + _BESIDE + 1)
    for value in sorted({parameter.low, parameter.most, *beside, *(1 << power for power in range(21))}):
        told(value)
    for low, high in pairwise(sorted(seen)):
        first, last = seen[low][0], seen[high][0]
        if min(first, last) < sought.best < max(first, last):
            _bisect(told, low, high, sought.best, rises=first < last)
            break
    fitting = [each for each in seen.values() if sought.low <= each[0] <= sought.high]
    return min(fitting, key=lambda each: abs(each[0] - sought.best), default=None)


def _bisect(told: Callable[[int], int | None], low: int, high: int, wanted: int, *, rises: bool) -> None:
    """Have the values told between two, towards where the number is as wanted."""
    while high - low > 1:
        middle = (low + high) // 2
        number = told(middle)
        if number is None or number == wanted:
            return
        if (number < wanted) == rises:
            low = middle
        else:
            high = middle
