"""Plans: how much of each aspect is asked of which operators, and the blocks that the work is cut into.

An aspect says what is asked and what is claimed about it. A plan only decides how much. Blocks depend on the run's
seed and their own name alone: a smaller plan draws a prefix of a larger one, and neither order nor number of workers
matters. What kinds of aspects and blocks there are is not known here.
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
    """How many cases each aspect of each operator and pair of dtypes gets, before the aspect's weight."""

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
"""Six times what a night judges; a plan's blocks are all made before the first is judged."""


MOST_BEYOND = 100_000_000
"""Cases that nobody asks of one block in a week."""


Group = tuple[tuple[str, str], ...]
"""Columns with the values that tell the rows of a group apart from those of all others."""


@dataclass(frozen=True)
class Subject:
    """One operator in one pair of dtypes on one backend; ``unsupported`` says why it cannot be asked, if it cannot.

    Without dtypes it is the operator as a whole: what is asked about it chooses its dtypes itself. ``tags`` are the
    format tags that the backend takes (`Backend.tags`), ``product`` is `Backend.product`, ``on_streams`` and
    ``in_phases`` say whether it has `Backend.streams` and `Backend.phases`. ``makes_indices``: of a backward, whether
    the backend has a forward that makes indices for it. ``abilities`` are `Backend.abilities`.
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
        """What the rows of an aspect have in common."""
        values = (self.backend, self.operator.name, self.dtype, self.index_dtype, aspect.id)
        return tuple(zip(GROUP, values, strict=True))


def subjects(name: str, backend: Backend) -> list[Subject]:
    """Every operator in every pair of dtypes, with what ``backend``, called ``name``, says about it.

    Index dtypes that the operator's own interface does not have are left out.
    """
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
    """The row of a subject that its backend does not have."""
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
    """A numbered part of one aspect of one subject: what one process is handed at a time."""

    @property
    def id(self) -> str: ...

    @property
    def subject(self) -> Subject: ...

    @property
    def aspect(self) -> Aspect: ...

    @property
    def count(self) -> int:
        """How many questions it has."""

    @property
    def least(self) -> int:
        """Of how many questions, the `first`, there is one of each kind that a plan owes."""

    @property
    def grain(self) -> int:
        """How many are worth to be asked at once, where all of them have to be made to ask one."""

    def questions(self) -> Sequence[Question]: ...

    def first(self, count: int) -> Sequence[Question]:
        """So many of its questions, always the same, and all of those that a smaller number gives."""

    def groups(self, asked: int | None = None) -> Mapping[Group, int]:
        """How many of its questions, or of the first that were ``asked``, lie in which of the groups that a complete
        run must have judged.
        """

    def smaller(self, failing: Question, still_fails: Callable[[Question], bool], seconds: float) -> Question | None:
        """The smallest question found that still fails as ``failing``, one of its own, does; None if none is sought."""

    def beyond(self) -> Beyond | None:
        """The block that goes on where it ends, with cases that no plan has; None where it is all that there is."""


class Beyond(Block, Protocol):
    """A block that goes on where another ends."""

    def of(self, count: int) -> Beyond:
        """The block of so many of its first cases."""


_BEYOND = "+"
"""Stands in the id of a block that goes on where another ends."""


def root_of(name: str) -> str:
    """The id of the block of a plan that one goes on from, or that it is."""
    return name.partition(_BEYOND)[0]


def beyond_id(name: str, turn: int) -> str:
    """The id of the ``turn``-th block that goes on from one; its own for the 0th."""
    return f"{name}{_BEYOND}{turn}" if turn else name


Q = TypeVar("Q", bound=Question)


def one_of_each_first(questions: Iterable[Q], kind: Callable[[Q], Hashable]) -> list[Q]:
    """The first of each kind, then the second of each, and so on."""
    turns: Counter[Hashable] = Counter()
    ranked = []
    for question in questions:
        turns[kind(question)] += 1
        ranked.append((turns[kind(question)], question))
    return [question for _, question in sorted(ranked, key=lambda pair: pair[0])]


B_co = TypeVar("B_co", bound=Block, covariant=True)


class Planned(Protocol[B_co]):
    """An aspect that a plan can hold: it says what it is asked about, and in which blocks."""

    def covers(self, subject: Subject) -> bool: ...

    def blocks(self, subject: Subject, plan: Plan, seed: int) -> Iterator[B_co]: ...


def blocks(chosen: Sequence[Subject], aspects: Iterable[Planned[B_co]], plan: Plan, seed: int) -> Iterator[B_co]:
    """The blocks of a plan: those of every pair of dtypes, then those of the operators as a whole."""
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
