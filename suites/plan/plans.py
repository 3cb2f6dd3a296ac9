"""Plans: how many cases each aspect of each operator gets, and the blocks that the work is cut into.

An aspect says what is drawn and claimed; a plan only says how much. Blocks depend on the run's seed and their own name
alone: a smaller plan draws a prefix of a larger one, and neither order nor number of workers matters. The kinds of
aspects and blocks are not known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from poolproof.backends.abilities import ALL, Abilities
from poolproof.backends.base import Backend
from poolproof.references.operators import OPERATORS, Operator
from poolproof.references.products import Product
from poolproof.reports.rows.schema import GROUP, Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.judging.expected import unsupported
from poolproof.suites.judging.question import Aspect, Question, verdict

DTYPES = ("float32", "float16", "bfloat16", "float64")


@dataclass(frozen=True)
class Plan:
    """The number of cases for each aspect, operator and pair of dtypes, before the aspect's weight."""

    name: str
    cases: int
    purpose: str


PLANS = {
    plan.name: plan
    for plan in (
        Plan("smoke", 80, "a few minutes: every aspect of every operator and dtype, for each change"),
        Plan("acceptance", 1600, "the evidence to accept or refuse a library on"),
        Plan("soak", 16000, "a night: rare geometries and orders"),
    )
}


MOST_CASES = 100_000
"""Six times what a night judges; all blocks of a plan are made before the first is judged."""

MOST_EXTENSION = 100_000_000
"""More cases than one block's extensions get in a week."""

Group = tuple[tuple[str, str], ...]
"""Columns with the values that identify a group of rows."""


@dataclass(frozen=True)
class Subject:
    """One operator in one pair of dtypes on one backend; ``unsupported`` says why it cannot be judged, if it cannot.

    Without dtypes it is the operator as a whole: questions about it choose their own. ``tags``, ``product`` and
    ``abilities`` are those of `Backend`; ``on_streams`` and ``in_phases`` say whether it has `Backend.streams` and
    `Backend.phases`. ``makes_indices``: of a backward, whether the backend has a forward that makes indices for it.
    """

    backend: str
    operator: Operator
    dtype: str = ""
    index_dtype: str = ""
    unsupported: str | None = None
    tags: tuple[str, ...] = ()
    product: Product | None = None
    on_streams: bool = False
    in_phases: bool = False
    makes_indices: bool = True
    abilities: Abilities = ALL

    @property
    def is_whole(self) -> bool:
        return not self.dtype

    @property
    def id(self) -> str:
        return "-".join(part for part in (self.backend, self.operator.name, self.dtype, self.index_dtype) if part)

    def group(self, aspect: Aspect) -> Group:
        """Return the group of an aspect's rows."""
        values = (self.backend, self.operator.name, self.dtype, self.index_dtype, aspect.id)
        return tuple(zip(GROUP, values, strict=True))


def subjects(name: str, backend: Backend) -> list[Subject]:
    """List every operator in every pair of dtypes of its interface, with what a backend, called ``name``, declares."""
    found = []
    parts = (backend.streams is not None, backend.phases is not None)
    for operator in OPERATORS.values():
        abilities = backend.abilities(operator)
        for index_dtype in operator.indices.dtypes:
            for dtype in DTYPES:
                reason = unsupported(backend, operator, dtype, index_dtype)
                device = (backend.tags, backend.product, *parts)
                made = reason is None and _makes_indices(backend, operator, dtype)
                found.append(Subject(name, operator, dtype, index_dtype, reason, *device, made, abilities))
    return found


def not_supported(subject: Subject) -> Row:
    """Make the row of a subject that its backend does not have."""
    assert subject.unsupported is not None
    return {
        "backend": subject.backend,
        "operator": subject.operator.name,
        "dtype": subject.dtype,
        "index_dtype": subject.index_dtype,
        "aspect": "",
        **verdict(Verdict.NOT_SUPPORTED, subject.unsupported),
    }


def _makes_indices(backend: Backend, operator: Operator, dtype: str) -> bool:
    producer = OPERATORS.get(operator.producer or "", operator)
    return any(unsupported(backend, producer, dtype, stored) is None for stored in producer.indices.dtypes)


class Block(Protocol):
    """A numbered part of one aspect of one subject: the unit of work of a process."""

    @property
    def id(self) -> str: ...

    @property
    def subject(self) -> Subject: ...

    @property
    def aspect(self) -> Aspect: ...

    @property
    def count(self) -> int:
        """Number of its questions."""

    @property
    def min_cases(self) -> int:
        """Length of the `prefix` that holds a question of each group."""

    @property
    def min_batch(self) -> int:
        """Questions worth judging together; more than 1 where all have to be made to judge one."""

    def questions(self) -> Sequence[Question]: ...

    def prefix(self, count: int) -> Sequence[Question]:
        """Return so many of its first questions."""

    def groups(self, asked: int | None = None) -> Mapping[Group, int]:
        """Count its questions, or a prefix of ``asked``, by the groups that a complete run must have judged."""

    def smaller(self, failing: Question, still_fails: Callable[[Question], bool], seconds: float) -> Question | None:
        """Seek the smallest question that fails as ``failing``, one of its own, does; None if there is no search."""

    def extension(self) -> Extension | None:
        """Return the block that follows it, with cases that no plan has; None if there are no more."""


class Extension(Block, Protocol):
    """A block that follows another beyond the plan."""

    def with_count(self, count: int) -> Extension: ...


_EXTENSION = "+"
"""Separates the id of a planned block from the index of its extension."""


def root_of(name: str) -> str:
    """Return the id of the planned block that a block extends, or is."""
    return name.partition(_EXTENSION)[0]


def extension_id(name: str, index: int) -> str:
    """Return the id of a block's ``index``-th extension; its own for the 0th."""
    return f"{name}{_EXTENSION}{index}" if index else name


Q = TypeVar("Q", bound=Question)


def one_of_each_first(questions: Iterable[Q], kind: Callable[[Q], Hashable]) -> list[Q]:
    """Order questions: the first of each kind, then the second of each, and so on."""
    seen: Counter[Hashable] = Counter()
    ranked = []
    for question in questions:
        seen[kind(question)] += 1
        ranked.append((seen[kind(question)], question))
    return [question for _, question in sorted(ranked, key=lambda pair: pair[0])]


B_co = TypeVar("B_co", bound=Block, covariant=True)


class PlannedAspect(Protocol[B_co]):
    """An aspect that knows its subjects and blocks."""

    def covers(self, subject: Subject) -> bool: ...

    def blocks(self, subject: Subject, plan: Plan, seed: int) -> Iterator[B_co]: ...


def blocks(chosen: Sequence[Subject], aspects: Iterable[PlannedAspect[B_co]], plan: Plan, seed: int) -> Iterator[B_co]:
    """Yield the blocks of a plan: those of every pair of dtypes, then those of the operators as a whole."""
    aspects = list(aspects)
    for subject in (*chosen, *_as_wholes(chosen)):
        for aspect in aspects:
            if aspect.covers(subject):
                yield from aspect.blocks(subject, plan, seed)


def _as_wholes(chosen: Iterable[Subject]) -> Iterable[Subject]:
    return dict.fromkeys(
        replace(subject, dtype="", index_dtype="", unsupported=None, makes_indices=True, abilities=ALL)
        for subject in chosen
    )
