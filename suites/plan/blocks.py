"""The two kinds of aspects, with their blocks: cases that are drawn or listed, and calls that a contract is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from poolproof.backends.abilities import ALL
from poolproof.references.contract import SIGNATURES, ContractCall
from poolproof.references.operators import Operator
from poolproof.references.products import Product
from poolproof.suites.cases.calls import CallPart, call_parts
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import Make, derive_seed, generate
from poolproof.suites.cases.layouts import CONTIGUOUS, LAYOUTS, TAGS, MemoryLayout
from poolproof.suites.cases.smaller_calls import smaller_call
from poolproof.suites.cases.strategies import Profile, cases
from poolproof.suites.cases.targets import Target
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import USUAL
from poolproof.suites.judging.contract import ContractQuestion, contract_question, contract_questions
from poolproof.suites.judging.question import Aspect, Question
from poolproof.suites.plan.plans import Group, Plan, Subject, extension_id, one_of_each_first

Listed = Callable[[Operator, str, str], list[Target]]
"""Lists the cases of an operator, a dtype and a dtype of indices."""

BLOCK_SIZE = 200
"""Most cases in one block: small enough to spread over workers, large enough to make starting one cheap."""


CALLS_AT_ONCE = 250
"""Contract calls that are judged together: making them takes longer than judging them."""


@dataclass(frozen=True)
class CaseAspect(Aspect):
    """An aspect about cases.

    ``weight`` scales a plan's number of drawn cases; ``min_cases`` is the number in even the smallest plan. ``listed``
    gives cases that are not drawn. ``on_streams``: only for devices with streams; ``on_layouts``: only for
    implementations that are reached by layouts other than contiguous. ``costly``: judged last by the score.
    """

    checks: tuple[str, ...] = USUAL
    profile: Profile = field(default_factory=Profile)
    weight: float = 1.0
    directions: tuple[str, ...] = ("backward", "forward")
    listed: Listed | None = None
    min_cases: int = 1
    on_streams: bool = False
    on_layouts: bool = False
    costly: bool = False

    def covers(self, subject: Subject) -> bool:
        if subject.is_whole or subject.unsupported is not None:
            return False
        return subject.operator.direction in self.directions and self._is_possible(subject)

    def _is_possible(self, subject: Subject) -> bool:
        """Tell whether the subject has what the aspect is about: tags, streams, windows that can miss their input."""
        tagged = self.profile.tagged
        if not self.profile.is_possible_within(subject.abilities):
            return False
        if self.on_layouts and not any(map(subject.abilities.reaches, LAYOUTS.keys() - {CONTIGUOUS.name})):
            return False
        if tagged and not (subject.operator.takes_tags and TAGS[tagged] in subject.tags):
            return False
        if self.on_streams and not subject.on_streams:
            return False
        return not self.profile.empty_windows or (subject.operator.windows.can_miss_input and subject.makes_indices)

    def count(self, plan: Plan) -> int:
        """Count the cases that are drawn for each subject."""
        return max(self.min_cases, round(plan.cases * self.weight))

    def targets(self, subject: Subject, plan_cases: int) -> list[Target]:
        """Return the listed cases of a subject in a plan of so many cases."""
        listed = _listed(self.listed, subject.operator, subject.dtype, subject.index_dtype) if self.listed else ()
        return [target for target in listed if target.plan_cases <= plan_cases and has_call(subject, target.case)]

    def blocks(self, subject: Subject, plan: Plan, seed: int) -> Iterator[CaseBlock | ListedBlock]:
        """Yield the blocks of drawn cases, then one of the listed."""
        number, count = 0, self.count(plan)
        for start in range(0, count, BLOCK_SIZE):
            name = (subject.operator.name, subject.dtype, subject.index_dtype, self.id, number)
            yield CaseBlock(subject, self, number, min(BLOCK_SIZE, count - start), derive_seed(seed, *name))
            number += 1
        if self.targets(subject, plan.cases):
            yield ListedBlock(subject, self, number, plan.cases)


@dataclass(frozen=True)
class CaseBlock:
    """``count`` cases of one aspect of one subject from the ``number``-th seed.

    The seed of its ``index``-th extension derives from its own.
    """

    subject: Subject
    aspect: CaseAspect
    number: int
    count: int
    seed: int = field(compare=False)
    index: int = 0
    min_cases: int = field(default=1, init=False)
    min_batch: int = field(default=1, init=False)

    @property
    def id(self) -> str:
        return extension_id(f"{self.subject.id}-{self.aspect.id}-{self.number}", self.index)

    @property
    def make(self) -> Make[Case]:
        """The strategy of its cases."""
        subject = self.subject
        profile = self.aspect.profile.within(subject.abilities)
        return cases(subject.operator, subject.dtype, subject.index_dtype, profile)

    def questions(self) -> list[CaseQuestion]:
        return self.prefix(self.count)

    def prefix(self, count: int) -> list[CaseQuestion]:
        """Return its first questions, or those of a longer block."""
        aspect, block = self.aspect.alone, self.id
        return [CaseQuestion(case, aspect, block) for case in generate(self.make, count, self._own_seed)]

    def groups(self, asked: int | None = None) -> dict[Group, int]:
        return {self.subject.group(self.aspect): self.count if asked is None else asked}

    def smaller(
        self, failing: Question, still_fails: Callable[[Question], bool], seconds: float
    ) -> CaseQuestion | None:
        """Redraw the block to shrink a failure."""
        from poolproof.suites.cases.searching import shrink  # with Hypothesis, which only failures need

        aspect = replace(self.aspect.alone, standards=False)
        found = shrink(
            self.make,
            self.count,
            self._own_seed,
            Case.from_json(failing.to_line()),
            lambda case: still_fails(CaseQuestion(case, aspect, self.id)),
            seconds,
        )
        return CaseQuestion(found, aspect, self.id)

    def extension(self) -> CaseBlock:
        return replace(self, index=self.index + 1, count=BLOCK_SIZE)

    def with_count(self, count: int) -> CaseBlock:
        return replace(self, count=count)

    @property
    def _own_seed(self) -> int:
        return derive_seed(self.seed, self.index) if self.index else self.seed


@dataclass(frozen=True)
class ListedBlock:
    """The listed cases of an aspect and a subject in a plan of ``plan_cases`` cases."""

    subject: Subject
    aspect: CaseAspect
    number: int
    plan_cases: int
    min_cases: int = field(default=1, init=False)
    min_batch: int = field(default=1, init=False)

    @property
    def id(self) -> str:
        return f"{self.subject.id}-{self.aspect.id}-{self.number}"

    @property
    def count(self) -> int:
        return len(self._targets)

    def questions(self) -> list[CaseQuestion]:
        return self.prefix(self.count)

    def prefix(self, count: int) -> list[CaseQuestion]:
        aspect, block = self.aspect.alone, self.id
        return [CaseQuestion(target.case, aspect, block, target.repeats) for target in self._targets[:count]]

    def groups(self, asked: int | None = None) -> dict[Group, int]:
        return {self.subject.group(self.aspect): self.count if asked is None else asked}

    def smaller(self, failing: Question, still_fails: Callable[[Question], bool], seconds: float) -> None:  # noqa: ARG002
        """Return None: listed cases are as small as their purpose allows."""
        return

    def extension(self) -> None:
        """Return None: there are no other listed cases."""

    @property
    def _targets(self) -> list[Target]:
        return self.aspect.targets(self.subject, self.plan_cases)


@dataclass(frozen=True)
class ContractAspect(Aspect):
    """The contract of an API: every clause broken alone, in pairs and in every way, every legal boundary, drawn calls.

    Only the number of drawn calls depends on the plan.
    """

    def covers(self, subject: Subject) -> bool:
        return subject.is_whole and subject.product is not None and _api(subject) in SIGNATURES

    def blocks(self, subject: Subject, plan: Plan, seed: int) -> Iterator[ContractBlock]:
        assert subject.product is not None
        for part in call_parts(subject.product, _api(subject), plan.cases, seed):
            yield ContractBlock(subject, self, part)


@dataclass(frozen=True)
class ContractBlock:
    """A part of the questions about one API on one backend."""

    subject: Subject
    aspect: ContractAspect
    part: CallPart

    @property
    def id(self) -> str:
        return f"{self.subject.id}-{self.aspect.id}-{self.part.id}"

    @property
    def count(self) -> int:
        return self.part.count(self._product, _api(self.subject))

    def questions(self) -> list[ContractQuestion]:
        return contract_questions(self._product, _api(self.subject), self.part, self.aspect.alone, self.id)

    @property
    def min_cases(self) -> int:
        return len(self._by_clause) or min(self.min_batch, self.count)

    @property
    def min_batch(self) -> int:
        return 1 if self.is_counted_by_clause else CALLS_AT_ONCE

    def prefix(self, count: int) -> list[ContractQuestion]:
        """Return its first questions; where they are counted by clause, one of each clause, then a second."""
        questions = self.questions()
        if self.is_counted_by_clause:
            questions = one_of_each_first(questions, _clause_of)
        return questions[:count]

    def groups(self, asked: int | None = None) -> dict[Group, int]:
        """Return a group for each clause, or one for all calls if they are not counted by clause."""
        group = (*self.subject.group(self.aspect), ("block", self.id))
        clauses = self._by_clause
        if asked is not None and clauses:
            clauses = Counter(map(_clause_of, self.prefix(asked)))
        by_clause = {(*group, ("clause", clause)): count for clause, count in clauses.items()}
        return by_clause or {group: self.count if asked is None else asked}

    @property
    def is_counted_by_clause(self) -> bool:
        return bool(self._by_clause)

    def smaller(
        self, failing: Question, still_fails: Callable[[Question], bool], seconds: float
    ) -> ContractQuestion | None:
        """Seek the call with the fewest and simplest changes of a legal one that breaks the same clause."""
        call = ContractCall.from_json(failing.to_line())
        small = smaller_call(self._product, call, lambda other: still_fails(self._question(other)), seconds)
        return None if small == call else self._question(small)

    def extension(self) -> None:
        """Return None: only a larger plan draws more calls."""

    def _question(self, call: ContractCall) -> ContractQuestion:
        return contract_question(call, self._product, self.aspect.alone, self.id)

    @property
    def _by_clause(self) -> Counter[str]:
        return self.part.by_clause(self._product, _api(self.subject))

    @property
    def _product(self) -> Product:
        assert self.subject.product is not None
        return self.subject.product


@cache
def _listed(listed: Listed, operator: Operator, dtype: str, index_dtype: str) -> tuple[Target, ...]:
    """Cache a list: a session counts it several times before it begins."""
    return tuple(listed(operator, dtype, index_dtype))


def _clause_of(question: ContractQuestion) -> str:
    return question.clause


def has_call(subject: Subject, case: Case) -> bool:
    """Tell whether the backend has a case's call, takes its indices, and is reached by its layouts."""
    able = subject.abilities
    if able == ALL:
        return True
    if not all(able.reaches(MemoryLayout.parse(layout).name) for _, layout in case.layouts):
        return False
    if not able.indices and (case.indices != "forward" or any(name == "indices" for name, _ in case.literals)):
        return False
    return able.lacking(case.api, case.shape, case.attributes) is None


def _api(subject: Subject) -> str:
    return f"aclnn{subject.operator.name}"
