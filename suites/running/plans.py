"""Plans: which aspects, how many cases of each, and which checks hold in them.

An aspect says what is drawn (its `Profile`) and what is claimed about it. A plan only decides how much. Work is
cut into blocks whose cases depend on the run's seed and the block's name alone: a smaller plan draws a prefix of
a larger one, and neither order nor number of workers matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from poolproof.backends.base import Backend
from poolproof.references.operators import OPERATORS, Operator
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import derive_seed, generate
from poolproof.suites.cases.layouts import TAGS
from poolproof.suites.cases.strategies import ALL_LAYOUTS, LENGTHS, LONG_LENGTHS, MANY_PLANES, PLANES, Profile, cases
from poolproof.suites.cases.targets import Target, examples, targets
from poolproof.suites.judging.checks import CHECKS
from poolproof.suites.judging.judge import Question
from poolproof.suites.judging.owed import unsupported

DTYPES = ("float32", "float16", "bfloat16", "float64")

BLOCK_SIZE = 200
"""Most cases in one block: small enough to spread over workers, large enough to make starting one cheap."""

_INEXACT = (
    "uniform",
    "positive",
    "wide",
    "big_among_ones",
    "cancellation",
    "rounding_probe",
    "near_overflow",
    "subnormal",
)
_DIFFICULT_VALUES = ("nan", "all_nan", "infinities", "negative_infinity", "mostly_negative_infinity", "ties")


_COSTLY = ("modes", "state", "round_trip", "memory_kept")
USUAL_CHECKS = tuple(name for name in CHECKS if name not in _COSTLY)
"""Checks of every aspect; the costly ones belong to an aspect of their own."""


@dataclass(frozen=True)
class Aspect:
    """One side of conformance: what is drawn for it and why.

    ``weight`` scales a plan's number of cases; ``repeats`` is what the determinism check may spend on each;
    ``least`` is how many cases even the smallest plan has. ``standards`` says whether the standards of others are held
    against the outputs too, which costs. ``listed`` gives the cases where they are not drawn; every plan asks them all.
    """

    id: str
    claim: str
    profile: Profile
    weight: float = 1.0
    repeats: int = 1
    directions: tuple[str, ...] = ("backward", "forward")
    checks: tuple[str, ...] = USUAL_CHECKS
    standards: bool = False
    listed: Callable[[Operator, str, str], list[Target]] | None = None
    least: int = 1

    def covers(self, operator: Operator) -> bool:
        return ("backward" if operator.is_backward else "forward") in self.directions


ASPECTS = {
    aspect.id: aspect
    for aspect in (
        Aspect(
            "values",
            "gradients arrive where their index says, and maxima are found, on exact data over all geometries",
            Profile(
                gradients=("integers", "base_four_weights", "colour_ids", "one_hot", "ones"),
                values=("normal", "ties", "constant", "negative", "ascending", "descending"),
                scales=(0, 0, -3, 5),
            ),
        ),
        Aspect(
            "precision",
            "sums that cannot be exact stay within what the declared accumulation model can produce",
            Profile(
                gradients=_INEXACT,
                indices=("in_window", "crowded", "lattice", "shared", "shared", "forward"),
                scales=(0, 0, 0, -7),
            ),
            directions=("backward",),
            standards=True,
        ),
        Aspect(
            "special_values",
            "NaN, infinities, subnormals and signed zeros go where they belong and nowhere else",
            Profile(
                gradients=("special", "special", "signed_zeros", "subnormal", "near_overflow"),
                values=_DIFFICULT_VALUES,
            ),
        ),
        Aspect(
            "layouts",
            "strides, gaps and offsets of every tensor change nothing, and gaps stay untouched",
            Profile(
                gradients=("integers", "base_four_weights", "uniform"),
                values=("normal", "ties", "nan"),
                layouts=ALL_LAYOUTS,
            ),
        ),
        Aspect(
            "tagged",
            "tensors tagged as channels last are read and written as such",
            Profile(gradients=("integers", "one_hot", "uniform"), values=("normal", "ties", "nan"), tagged="nhwc"),
        ),
        Aspect(
            "examples",
            "the examples of the published pages give what they should",
            Profile(),
            directions=("backward",),
            listed=examples,
        ),
        Aspect(
            "targets",
            "calls at the limits of known kernels give what they should",
            Profile(),
            listed=targets,
        ),
        Aspect(
            "determinism",
            "repeated calls give the same bits, with the deterministic mode on and off",
            Profile(
                gradients=("uniform", "wide", "positive"),
                indices=("shared", "crowded", "lattice"),
                budgets=(256, 1024, 4096, 4096),
                deterministic=(False, True),
            ),
            weight=0.5,
            repeats=5,
            directions=("backward",),
        ),
        Aspect(
            "state",
            "earlier calls, other streams, reused executors and a busy device change nothing",
            Profile(
                gradients=("integers", "uniform"),
                indices=("crowded", "in_window", "forward"),
                values=("normal", "ties"),
                deterministic=(True,),
            ),
            weight=0.25,
            checks=(*USUAL_CHECKS, "modes", "state"),
        ),
        Aspect(
            "round_trip",
            "a backward accepts the indices of the implementation's own forward",
            Profile(gradients=("integers", "uniform"), values=("normal", "ties", "nan", "negative_infinity")),
            weight=0.25,
            directions=("backward",),
            checks=(*USUAL_CHECKS, "round_trip"),
        ),
        Aspect(
            "memory",
            "calls leave no device memory behind",
            Profile(values=("normal",), budgets=(256, 4096), layouts=ALL_LAYOUTS),
            weight=0.05,
            repeats=40,
            checks=("interval", "maximum", "memory_kept"),
        ),
        Aspect(
            "endurance",
            "two thousand calls leave no device memory behind",
            Profile(values=("normal",), budgets=(256,)),
            weight=1 / 1600,
            least=0,
            repeats=2000,
            checks=("interval", "maximum", "memory_kept"),
        ),
        Aspect(
            "scale",
            "large planes and many planes behave like small ones",
            Profile(
                gradients=("integers", "one_hot", "uniform"),
                values=("normal", "ties"),
                budgets=(16384, 65536, 135000),
                lengths=LENGTHS + LONG_LENGTHS,
                planes=PLANES + MANY_PLANES,
                known_geometries=True,
            ),
            weight=0.15,
        ),
        Aspect(
            "huge",
            "planes past 2**24 cells, where float32 cannot count them, behave like small ones",
            Profile(values=("constant",), budgets=(1 << 25,), planes=(1,), huge=True),
            weight=1 / 1600,
            least=0,
            directions=("backward",),
            checks=("written", "interval", "unreached"),
        ),
        Aspect(
            "empty_windows",
            "a window without any cell inside the plane is refused, or gives -inf and a harmless index",
            Profile(values=("normal", "negative_infinity"), budgets=(64, 256), empty_windows=True, empty_batches=False),
            weight=0.1,
            directions=("forward",),
        ),
    )
}


EVERYTHING = Aspect("case", "all that any aspect claims", Profile(), repeats=5, checks=tuple(CHECKS), standards=True)
"""What a single case named on the command line is held against."""


@dataclass(frozen=True)
class Plan:
    """How many cases each aspect of each operator and pair of dtypes gets, before the aspect's weight."""

    name: str
    cases: int
    purpose: str

    def count(self, aspect: Aspect) -> int:
        return max(aspect.least, round(self.cases * aspect.weight))


PLANS = {
    plan.name: plan
    for plan in (
        Plan("smoke", 80, "a few minutes: every aspect of every operator and dtype, for each change"),
        Plan("acceptance", 1600, "the evidence to accept or refuse a library on"),
        Plan("soak", 16000, "a night: rare geometries and orders"),
    )
}


@dataclass(frozen=True)
class Cell:
    """One operator in one pair of dtypes on one backend; ``unsupported`` says why it cannot be asked, if it cannot.

    ``tags`` are the format tags that the backend takes (`Backend.tags`).
    """

    backend: str
    operator: Operator
    dtype: str
    index_dtype: str
    unsupported: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """A numbered part of one aspect of one cell: ``count`` cases from the ``number``-th seed."""

    cell: Cell
    aspect: Aspect
    number: int
    count: int
    seed: int = field(compare=False)

    @property
    def id(self) -> str:
        cell = self.cell
        return f"{cell.backend}-{cell.operator.name}-{cell.dtype}-{cell.index_dtype}-{self.aspect.id}-{self.number}"

    @property
    def strategy(self) -> st.SearchStrategy[Case]:
        cell = self.cell
        return cases(cell.operator, cell.dtype, cell.index_dtype, self.aspect.profile)

    @property
    def backend(self) -> str:
        return self.cell.backend

    def cases(self) -> list[Case]:
        return [question.case for question in self.questions()]

    def questions(self) -> list[Question]:
        aspect, cell = self.aspect, self.cell
        if aspect.listed:
            asked = [(item.case, item.repeats) for item in aspect.listed(cell.operator, cell.dtype, cell.index_dtype)]
        else:
            asked = [(case, aspect.repeats) for case in generate(self.strategy, self.count, self.seed)]
        return [Question(case, aspect.checks, aspect.id, self.id, repeats, aspect.standards) for case, repeats in asked]


def cells(name: str, backend: Backend) -> list[Cell]:
    """Every operator in every pair of dtypes, with what ``backend``, called ``name``, says about it.

    Index dtypes that the operator's own interface does not have are left out.
    """
    found = []
    for operator in OPERATORS.values():
        for index_dtype in operator.indices.dtypes:
            for dtype in DTYPES:
                reason = unsupported(backend, operator, dtype, index_dtype)
                found.append(Cell(name, operator, dtype, index_dtype, reason, backend.tags))
    return found


def blocks(chosen: Sequence[Cell], aspects: Sequence[Aspect], plan: Plan, seed: int) -> Iterator[Block]:
    """The blocks of a plan, for supported cells only."""
    for cell in chosen:
        for aspect in aspects:
            if cell.unsupported is None and aspect.covers(cell.operator) and _possible(aspect, cell):
                yield from _blocks_of(cell, aspect, plan, seed)


def _blocks_of(cell: Cell, aspect: Aspect, plan: Plan, seed: int) -> Iterator[Block]:
    count = plan.count(aspect)
    if aspect.listed:
        count = len(aspect.listed(cell.operator, cell.dtype, cell.index_dtype))
        yield Block(cell, aspect, 0, count, seed)
        return
    for number, start in enumerate(range(0, count, BLOCK_SIZE)):
        name = (cell.operator.name, cell.dtype, cell.index_dtype, aspect.id, number)
        yield Block(cell, aspect, number, min(BLOCK_SIZE, count - start), derive_seed(seed, *name))


def _possible(aspect: Aspect, cell: Cell) -> bool:
    """Not every kind of windows can miss its input, and few interfaces have format tags."""
    profile = aspect.profile
    if profile.tagged and not (cell.operator.takes_tags and TAGS[profile.tagged] in cell.tags):
        return False
    return not profile.empty_windows or cell.operator.windows.can_miss_input
