"""Plans: how many cases each aspect of each operator gets, and the blocks of the work.

An aspect defines draws and claims; a plan only defines their number; a survey lists the subjects. Blocks depend only on
the run's seed and their own name. So a smaller plan draws a prefix of a larger one, and order and number of workers do
not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeVar

from poolproof.backends.abilities import ALL, Abilities
from poolproof.backends.base import Backend
from poolproof.references.operators import OPERATORS, Operator
from poolproof.references.products import PRODUCTS, Product
from poolproof.reports.rows.factors import Scope
from poolproof.reports.rows.schema import GROUP, Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.judging.expected import unsupported
from poolproof.suites.judging.question import verdict

DTYPES = ("float32", "float16", "bfloat16", "float64")


@dataclass(frozen=True)
class Plan:
    """The number of cases for each aspect, operator and pair of dtypes, before the aspect's weight."""

    name: str
    cases: int
    purpose: str


_PLANS = (
    Plan("smoke", 40, "a few minutes, for each change: every aspect of every operator and dtype"),
    Plan("acceptance", 1000, "evidence to accept or refuse a library"),
    Plan("soak", 16000, "a night: rare geometries and orders"),
)
PLANS = {plan.name: plan for plan in _PLANS}

MOST_CASES = 100_000
"""Six times the cases of a night; all blocks of a plan are made before the first is judged."""

Group = tuple[tuple[str, str], ...]
"""(Column, value) pairs that identify a group of rows."""


@dataclass(frozen=True)
class Subject:
    """One operator in one pair of dtypes on one backend; without dtypes, the operator as a whole.

    Attributes:
        unsupported: Why it cannot be judged, if it cannot.
        tags, product, actions, abilities: Those of `Backend`.
        makes_indices: For a backward, whether the backend has a forward that makes its indices.
        index_dtypes: All that the backend has for the operator in this dtype; if empty, only its own.
        dtypes: All that the backend has for the operator with these indices; if empty, only its own.
        supported: All subjects that the backend supports.
    """

    backend: str
    operator: Operator
    dtype: str = ""
    index_dtype: str = ""
    unsupported: str | None = None
    tags: tuple[str, ...] = ()
    product: Product | None = None
    actions: tuple[str, ...] = ()
    makes_indices: bool = True
    abilities: Abilities = ALL
    index_dtypes: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    supported: tuple[Subject, ...] = field(default=(), compare=False, repr=False)

    @property
    def is_whole(self) -> bool:
        return not self.dtype

    @property
    def id(self) -> str:
        return "-".join(part for part in (self.backend, self.operator.name, self.dtype, self.index_dtype) if part)

    def group(self, aspect: str) -> Group:
        values = (self.backend, self.operator.name, self.dtype, self.index_dtype, aspect)
        return tuple(zip(GROUP, values, strict=True))


@dataclass(frozen=True)
class Survey:
    """A backend's declaration: its environment, what it supports, and `Backend.product`."""

    environment: dict[str, str]
    subjects: list[Subject]
    product: Product | None

    @property
    def product_name(self) -> str:
        return self.product.name if self.product else ""

    def to_record(self) -> dict[str, Any]:
        """Return everything that determines the questions, for JSON."""
        first = self.subjects[0]
        return {
            "product": self.product_name,
            "tags": list(first.tags),
            "actions": list(first.actions),
            "abilities": {subject.operator.name: subject.abilities.to_record() for subject in self.subjects},
            "subjects": [
                [subject.operator.name, subject.dtype, subject.index_dtype, subject.unsupported, subject.makes_indices]
                for subject in self.subjects
            ],
        }

    @classmethod
    def from_record(cls, name: str, record: Mapping[str, Any]) -> Self:
        """Read the survey of the backend ``name``; raise KeyError, TypeError or ValueError if it is invalid."""
        product = PRODUCTS[record["product"]] if record["product"] else None
        device = tuple(record["tags"]), product, tuple(record["actions"])
        able = {operator: Abilities.from_record(declared) for operator, declared in record["abilities"].items()}
        listed = [
            Subject(name, OPERATORS[operator], dtype, index_dtype, unsupported, *device, makes_indices, able[operator])
            for operator, dtype, index_dtype, unsupported, makes_indices in record["subjects"]
        ]
        return cls({}, _with_others(listed), product)


def subjects(name: str, backend: Backend) -> list[Subject]:
    """List every operator in every pair of dtypes of its interface, as the backend, called ``name``, declares it."""
    listed = []
    device = (backend.tags, backend.product, backend.actions)
    for operator in OPERATORS.values():
        abilities = backend.abilities(operator)
        for index_dtype in operator.indices.dtypes:
            for dtype in DTYPES:
                reason = unsupported(backend, operator, dtype, index_dtype)
                producer = OPERATORS.get(operator.producer or "", operator)
                missing = (unsupported(backend, producer, dtype, stored) for stored in producer.indices.dtypes)
                makes_indices = reason is None and None in missing
                listed.append(Subject(name, operator, dtype, index_dtype, reason, *device, makes_indices, abilities))
    return _with_others(listed)


def _with_others(listed: Iterable[Subject]) -> list[Subject]:
    """Add to each subject the other dtypes in which its operator is supported, and all that is supported."""
    having = defaultdict[tuple[str, str], list[str]](list)
    for subject in (listed := list(listed)):
        if subject.unsupported is None:
            having[subject.operator.name, subject.dtype].append(subject.index_dtype)
            having[subject.operator.name, subject.index_dtype].append(subject.dtype)
    completed = [
        replace(
            each,
            index_dtypes=tuple(having[each.operator.name, each.dtype]),
            dtypes=tuple(having[each.operator.name, each.index_dtype]),
        )
        for each in listed
    ]
    supported = tuple(each for each in completed if each.unsupported is None)
    return [replace(each, supported=supported) for each in completed]


def scope_of(subject: Subject) -> Scope:
    """Return the calls of a subject's operator and dtype, in all the dtypes of indices."""
    able = tuple(subject.abilities.to_record().items())
    stored = subject.index_dtypes or (subject.index_dtype,)
    return Scope(subject.operator, stored, subject.tags, subject.product, able)


def not_supported(subject: Subject) -> Row:
    assert subject.unsupported is not None
    return dict(subject.group("")) | verdict(Verdict.NOT_SUPPORTED, subject.unsupported)


B_co = TypeVar("B_co", covariant=True)


class PlannedAspect(Protocol[B_co]):
    def covers(self, subject: Subject) -> bool: ...

    def blocks(self, subject: Subject, plan: Plan, seed: int) -> Iterator[B_co]: ...


def blocks(chosen: Sequence[Subject], aspects: Iterable[PlannedAspect[B_co]], plan: Plan, seed: int) -> Iterator[B_co]:
    """Yield the blocks of a plan: first those of every pair of dtypes, then those of whole operators."""
    aspects = list(aspects)
    wholes = (
        Subject(each.backend, each.operator, tags=each.tags, product=each.product, actions=each.actions)
        for each in chosen
    )
    for subject in (*chosen, *dict.fromkeys(wholes)):
        for aspect in aspects:
            if aspect.covers(subject):
                yield from aspect.blocks(subject, plan, seed)
