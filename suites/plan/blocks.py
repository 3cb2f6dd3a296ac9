"""The kinds of aspects with their blocks: drawn or listed cases, contract calls, scenarios, sequences.

A block is a numbered part of one aspect of one subject, and the unit of work of a process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import prod
from typing import TYPE_CHECKING, Self, cast

from poolproof.backends.abilities import ALL
from poolproof.references.contract.call import ContractCall
from poolproof.references.layouts import CONTIGUOUS, LAYOUTS, TAGS
from poolproof.references.operators import Operator
from poolproof.references.products import Product
from poolproof.references.windows import Windowed
from poolproof.reports.rows.costs import usual_cost
from poolproof.reports.rows.factors import Scope
from poolproof.suites.cases.calls import CallPart, call_parts
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import Draws, Make, derive_seed, generate
from poolproof.suites.cases.sequences import sequences, smaller_sequence
from poolproof.suites.cases.shrinking import smaller_call, smaller_case
from poolproof.suites.cases.strategies import Profile, cases
from poolproof.suites.cases.targets import Target
from poolproof.suites.cases.varying import beside
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import USUAL
from poolproof.suites.judging.contract import ContractQuestion, contract_question
from poolproof.suites.judging.expected import is_reached_by
from poolproof.suites.judging.phases import DRAWN, PhaseQuestion, count_phase_questions, phase_questions
from poolproof.suites.judging.question import Aspect, Question
from poolproof.suites.plan.plans import Group, Plan, Subject, scope_of

if TYPE_CHECKING:
    from poolproof.reports.rows.records import Done

BLOCK_SIZE = 200
"""Most cases of a block: small enough to spread over workers, large enough for a cheap start."""

_LOOKED_AT = 16
"""Cases at the start of a block that are searched for the most telling one: the first one drawn is the simplest."""

Listed = Callable[[Scope, str, str], list[Target]]
"""Lists the cases of an operator in a dtype and an index dtype."""

Predicate = Callable[[Question], bool]


class Block(ABC):
    """A part of one aspect of one subject; by default counted as a whole, not shrunk, and the same for any seed."""

    subject: Subject
    aspect: Aspect
    number: int
    is_drawn = False

    @property
    def id(self) -> str:
        return f"{self.subject.id}-{self.aspect.id}-{self.number}"

    @property
    def backend(self) -> str:
        return self.subject.backend

    @property
    def row_block(self) -> str:
        """The block in its rows."""
        return self.id

    @abstractmethod
    def questions(self) -> Sequence[Question]: ...

    @property
    def count(self) -> int:
        return len(self.questions())

    @property
    def cost(self) -> float:
        """Usual time, in cases of the aspect ``values``."""
        return self.count * usual_cost(self.aspect.id)

    def is_done(self, done: Done) -> bool:
        """Tell whether an interrupted run has all its rows."""
        return self.id in done.blocks

    @property
    def clauses(self) -> Counter[str]:
        """Number of its questions by clause; empty if they are counted as a whole."""
        return Counter()

    def prefix(self, count: int) -> Sequence[Question]:
        """Return the first ``count`` questions."""
        return self.questions()[:count]

    def groups(self) -> dict[Group, int]:
        """Return the number of its questions in each group that a complete run must have judged."""
        clauses = self.clauses
        if not clauses:
            return {self._group: self.count}
        return {(*self._group, ("clause", clause)): count for clause, count in clauses.items()}

    def smaller(self, failing: Question, still_fails: Predicate, seconds: float) -> Question | None:  # noqa: ARG002
        """Return the smallest question that fails like ``failing``, one of its own; None without a search."""
        return None

    @property
    def _group(self) -> Group:
        return self.subject.group(self.aspect.id)


@dataclass(frozen=True)
class CaseAspect(Aspect):
    """An aspect about cases.

    Attributes:
        weight: Factor of a plan's number of drawn cases.
        min_cases: Least number of drawn cases, if any are drawn.
        listed: Returns cases that are not drawn, for plans of ``least_cases`` and more.
        on_streams: Only for devices with streams.
        on_layouts: Only for implementations that take layouts other than contiguous.
        costly: Judged last by the score.
    """

    checks: tuple[str, ...] = USUAL
    profile: Profile = field(default_factory=Profile)
    weight: float = 1.0
    directions: tuple[str, ...] = ("backward", "forward")
    listed: Listed | None = None
    least_cases: int = 0
    min_cases: int = 1
    on_streams: bool = False
    on_layouts: bool = False
    costly: bool = False

    def covers(self, subject: Subject) -> bool:
        operator, able, profile = subject.operator, subject.abilities, self.profile
        if subject.is_whole or subject.unsupported is not None or operator.direction not in self.directions:
            return False
        is_laid_out = any(map(able.reaches, LAYOUTS.keys() - {CONTIGUOUS.name})) or not self.on_layouts
        is_tagged = not profile.tagged or (operator.takes_tags and TAGS[profile.tagged] in subject.tags)
        can_be_empty = operator.windows.can_miss_input and subject.makes_indices
        return (
            profile.is_possible_within(able)
            and is_laid_out
            and is_tagged
            and ("hold_up" in subject.actions or not self.on_streams)
            and (can_be_empty or not profile.empty_windows)
        )

    def count(self, plan: Plan) -> int:
        return max(self.min_cases, round(plan.cases * self.weight)) if self.weight else 0

    def targets(self, subject: Subject, plan_cases: int) -> list[Target]:
        if self.listed is None or plan_cases < self.least_cases:
            return []
        listed = _listed(self.listed, scope_of(subject), subject.dtype, subject.index_dtype)
        return [
            target
            for target in listed
            if target.plan_cases <= plan_cases
            and has_call(subject, target.case)
            and all(TAGS[layout] in subject.tags for _, layout in target.case.layouts if layout in TAGS)
        ]

    def blocks(self, subject: Subject, plan: Plan, seed: int) -> Iterator[CaseBlock | ListedBlock]:
        """Yield the blocks of drawn cases, then one of the listed."""
        drawn = list(CaseBlock.holding(self.count(plan), subject, self, seed))
        yield from drawn
        if self.targets(subject, plan.cases):
            yield ListedBlock(subject, self, len(drawn), plan.cases)


@dataclass(frozen=True)
class DrawnBlock(Block):
    """``count`` drawn questions of an aspect of a subject, from the ``number``-th seed; ``suffix`` ends the id."""

    subject: Subject
    aspect: CaseAspect | PhaseAspect
    number: int
    count: int = BLOCK_SIZE
    seed: int = field(default=0, compare=False)
    suffix: str = ""
    is_drawn = True

    @property
    def id(self) -> str:
        return f"{super().id}{self.suffix}"

    @classmethod
    def holding(cls, count: int, subject: Subject, aspect: CaseAspect | PhaseAspect, seed: int) -> Iterator[Self]:
        """Yield blocks with ``count`` questions together."""
        for number, start in enumerate(range(0, count, BLOCK_SIZE)):
            name = (subject.operator.name, subject.dtype, subject.index_dtype, aspect.id, number)
            yield cls(subject, aspect, number, min(BLOCK_SIZE, count - start), derive_seed(seed, *name))

    def _makes(self) -> Make[Case]:
        """Return a function that draws a case of the aspect that the backend takes."""
        subject = self.subject
        profile = self.aspect.profile.within(subject.abilities)
        return cases.make(subject.operator, subject.dtype, subject.index_dtype, profile)


@dataclass(frozen=True)
class CaseBlock(DrawnBlock):
    """Drawn cases."""

    aspect: CaseAspect

    def questions(self) -> list[CaseQuestion]:
        return self.prefix(self.count)

    def prefix(self, count: int) -> list[CaseQuestion]:
        """Return the first ``count`` questions.

        The most telling of the first `_LOOKED_AT` and the first one, the simplest, change places.
        """
        block = self.id
        looked_at = min(_LOOKED_AT, self.count)
        drawn = list(generate(self._makes(), max(count, looked_at), self.seed))
        most = max(range(looked_at), key=lambda number: _tells(drawn[number]))
        drawn[0], drawn[most] = drawn[most], drawn[0]
        return [CaseQuestion(case, self.aspect, block) for case in drawn[:count]]

    def smaller(self, failing: Question, still_fails: Predicate, seconds: float) -> CaseQuestion | None:
        """Return a smaller case of the aspect that the backend takes."""
        aspect = replace(self.aspect, standards=False)
        smaller = smaller_case(
            Case.from_json(failing.to_line()),
            case_words(aspect.profile, self.subject.operator),
            lambda case: has_call(self.subject, case) and still_fails(CaseQuestion(case, aspect, self.id)),
            seconds,
        )
        return CaseQuestion(smaller, aspect, self.id)


def _tells(case: Case) -> int:
    """Return a score of a case: how many properties it has that kernels often get wrong."""
    shares = any(axis.is_overlapping for axis in case.axes) and prod(case.pooled_shape) > 1
    meets = shares and case.indices not in ("first", "last") and case.api.is_backward
    special = case.values in ("ties", "constant", "negative_infinity", "mostly_negative_infinity", "nan")
    windows = case.attributes
    by_one = shares and isinstance(windows, Windowed) and {*windows.stride} == {1}
    return 2 * meets + by_one + shares + special + windows.is_padded + windows.rounds_up + (case.planes > 1)


def case_words(profile: Profile, operator: Operator) -> dict[str, Sequence[object]]:
    """Return the values of the fields of an aspect's cases, the simplest first."""
    words: dict[str, Sequence[object]] = {"values": profile.values}
    if operator.is_backward:
        words |= {"gradient": profile.gradients, "indices": profile.indices, "scale": profile.scales}
    return words | {"deterministic": profile.deterministic}


@dataclass(frozen=True)
class ListedBlock(Block):
    """The listed cases of an aspect and subject in a plan of ``plan_cases``, each as small as its purpose allows."""

    subject: Subject
    aspect: CaseAspect
    number: int
    plan_cases: int

    def questions(self) -> list[CaseQuestion]:
        targets, block = self.aspect.targets(self.subject, self.plan_cases), self.id
        # copies: otherwise the cached targets would keep the axes' tables
        return [CaseQuestion(replace(target.case), self.aspect, block, target.repeats) for target in targets]

    @property
    def count(self) -> int:
        return len(self.aspect.targets(self.subject, self.plan_cases))


@dataclass(frozen=True)
class ContractAspect(Aspect):
    """The contract of an API: every clause broken alone, in pairs and in every way, every legal boundary, drawn calls.

    Only the number of drawn calls depends on the plan.
    """

    def covers(self, subject: Subject) -> bool:
        return subject.is_whole and subject.product is not None and "destroy" in subject.actions

    def blocks(self, subject: Subject, plan: Plan, seed: int) -> Iterator[ContractBlock]:
        assert subject.product is not None
        api = f"aclnn{subject.operator.name}"
        for part in call_parts(subject.product, api, plan.cases, seed):
            yield ContractBlock(subject, self, part, subject.product)


@dataclass(frozen=True)
class ContractBlock(Block):
    """A part of the questions about one API on the ``product`` of one backend."""

    subject: Subject
    aspect: ContractAspect
    part: CallPart
    product: Product
    suffix: str = ""

    @property
    def id(self) -> str:
        return f"{self.subject.id}-{self.aspect.id}-{self.part.id}{self.suffix}"

    @property
    def is_drawn(self) -> bool:  # type: ignore[override]
        return self.part.id.startswith("drawn-")

    @property
    def count(self) -> int:
        return self.part.count

    @property
    def clauses(self) -> Counter[str]:
        return self.part.clauses

    def questions(self) -> list[ContractQuestion]:
        product, aspect, block = self.product, self.aspect, self.id
        return [
            ContractQuestion(call, product, clause, title, aspect, block) for clause, title, call in self.part.make()
        ]

    def smaller(self, failing: Question, still_fails: Predicate, seconds: float) -> ContractQuestion | None:
        """Return the call with the fewest and simplest changes of a legal one that breaks the same clause."""
        question = partial(contract_question, product=self.product, aspect=self.aspect, block=self.id)
        call = ContractCall.from_json(failing.to_line())
        small = smaller_call(self.product, call, lambda candidate: still_fails(question(candidate)), seconds)
        return None if small == call else question(small)

    @property
    def _group(self) -> Group:
        return (*super()._group, ("block", self.id))


@dataclass(frozen=True)
class PhaseAspect(Aspect):
    """Drawn sequences of calls and, for a backend with phases, every scenario that a source defines.

    All plans have all scenarios; ``weight`` is the factor of a plan's number of drawn sequences.
    """

    profile: Profile = field(default_factory=Profile)
    weight: float = 1.0

    def covers(self, subject: Subject) -> bool:
        return {"prepare", "run"} <= {*subject.actions} and not subject.is_whole and subject.unsupported is None

    def blocks(self, subject: Subject, plan: Plan, seed: int) -> Iterator[PhaseBlock | SequenceBlock]:
        if "destroy" in subject.actions:  # the backend has the two phases
            yield PhaseBlock(subject, self)
        count = max(1, round(plan.cases * self.weight))
        yield from SequenceBlock.holding(count, subject, self, seed)


@dataclass(frozen=True)
class PhaseBlock(Block):
    """All two-phase scenarios of one subject, in any plan; their cases are already small."""

    subject: Subject
    aspect: PhaseAspect

    @property
    def id(self) -> str:
        return f"{self.subject.id}-{self.aspect.id}"

    @property
    def clauses(self) -> Counter[str]:
        subject = self.subject
        return count_phase_questions(subject.operator, subject.dtype, subject.index_dtype)

    @property
    def count(self) -> int:
        return self.clauses.total()

    def questions(self) -> list[PhaseQuestion]:
        subject = self.subject
        return phase_questions(subject.operator, subject.dtype, subject.index_dtype, self.aspect, self.id)


@dataclass(frozen=True)
class SequenceBlock(DrawnBlock):
    """Drawn sequences of calls."""

    @property
    def clauses(self) -> Counter[str]:
        return Counter({DRAWN: self.count})

    def questions(self) -> list[PhaseQuestion]:
        subject, make = self.subject, self._makes()
        takes = partial(has_call, subject)

        def draw(draws: Draws) -> PhaseQuestion:
            sequence = sequences.define(draws, make(draws), takes, subject.actions, partial(self._of_another, draws))
            return PhaseQuestion.of_sequence(sequence, self.aspect, self.id)

        return generate(draw, self.count, self.seed)

    def _of_another(self, draws: Draws, case: Case) -> Case | None:
        """Draw a call of the operator drawn least often so far; return None if the backend has no other.

        Half of the calls have as much as possible in common with the case.
        """
        others = [each for each in self.subject.supported if each.operator != self.subject.operator]
        if not others:
            return None
        name = draws.balanced_choice("operator", list(dict.fromkeys(each.operator.name for each in others)))
        having = [each for each in others if each.operator.name == name]
        nearest = min(having, key=lambda each: (each.dtype != case.dtype, each.index_dtype != case.index_dtype))
        alike = beside(case, nearest.operator, nearest.dtype, nearest.index_dtype) if draws.flip() else None
        if alike and has_call(nearest, alike):
            return alike
        chosen = draws.choose(having)
        profile = self.aspect.profile.within(chosen.abilities)
        return cases.define(draws, chosen.operator, chosen.dtype, chosen.index_dtype, profile)

    def _takes(self, case: Case) -> bool:
        subjects = (self.subject, *self.subject.supported)
        return any(each.operator == case.api and has_call(each, case) for each in subjects)

    def smaller(self, failing: Question, still_fails: Predicate, seconds: float) -> PhaseQuestion | None:
        """Return a sequence of fewer and simpler actions, on smaller calls that the backend takes."""
        question, subject = partial(PhaseQuestion.of_sequence, aspect=self.aspect, block=self.id), self.subject
        smaller = smaller_sequence(
            cast(PhaseQuestion, failing).sequence,
            case_words(self.aspect.profile, subject.operator),
            lambda other: all(map(self._takes, other.cases)) and still_fails(question(other)),
            seconds,
        )
        return question(smaller)


@cache
def _listed(listed: Listed, scope: Scope, dtype: str, index_dtype: str) -> tuple[Target, ...]:
    """Return a list from the cache: a session counts it several times before it begins."""
    return tuple(listed(scope, dtype, index_dtype))


def has_call(subject: Subject, case: Case) -> bool:
    """Tell whether the backend has a case's call in its dtypes, takes its indices, and its layouts uncopied."""
    if case.index_dtype not in (subject.index_dtypes or (subject.index_dtype,)):
        return False
    if subject.dtypes and case.dtype not in subject.dtypes:
        return False
    able = subject.abilities
    if able == ALL:
        return True
    if not able.indices and (case.indices != "forward" or any(name == "indices" for name, _ in case.literals)):
        return False
    return is_reached_by(able, case) and able.lacking(case.api, case.shape, case.attributes) is None
