"""The cases of the aspects `pairs` and `triples`, drawn anew: for each operator those in which classes of factors meet.

    python studies/pairs.py [--seed 0] [--operator NAME]...

Takes some twenty minutes, and is needed where a factor or a class has changed (a test tells) or a rule of
`pair_rules.py`. Untagged calls come first, then tagged ones, then what products without dilation need besides the
undilated of those; in each of them small calls, then what only large ones visit, and what is rare.

A case is put together of parts that are drawn by themselves: windows over a plane, ([N,] C), the layout of each tensor,
recipes and flags. Windows are made backwards, from their number and their cells to the plane, so that thresholds are
hit exactly. Of the parts drawn those are taken by which most pairs meet for the first time.
"""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import permutations
from math import factorial, inf, prod
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from pair_rules import Rules
from poolproof.references.geometry import pooled_size
from poolproof.references.layouts import CONTIGUOUS, DRAWN, TAGS, suitable
from poolproof.references.operators import OPERATORS, Operator
from poolproof.references.products import PRODUCTS, Product
from poolproof.references.windows import Adaptive, Lengths, Windowed, Windows, per_kind
from poolproof.reports.rows import meetings
from poolproof.reports.rows.factors import BY_NAME, LAYOUTS, Scope, classes_of
from poolproof.reports.rows.features import TensorLayout, features_of
from poolproof.reports.rows.meetings import PLACES, TOGETHER, Flags, call_of, meeting_in
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.generation import Draws
from poolproof.suites.cases.pairs import cost_of, file_of, row_of
from poolproof.suites.cases.strategies import shortened

SCOPES: tuple[tuple[tuple[str, ...], Product | None], ...] = (((), None), (("NHWC",), None), ((), PRODUCTS["A2"]))
"""Tags and product of the calls that are completed, one behind the other."""

LARGE = 1 << 22
"""`cost_of` a case that is taken only where no smaller one visits what it does."""

ATTEMPTS = {2: 12, 3: 2}
"""For a pair, and for a triple, of which there are ten times as many."""
PERSISTENT = 6
"""How many times as many for the few that are left."""

MAX_CELLS, MAX_TAPS = 1 << 17, 1 << 23
"""Of a plane: its cells, or windows, and the cells of all windows; of one that is aimed at `_AIMED` times as many."""

_AIMED = 16


_KERNELS = (1, 2, 3, 4, 6, 8, 9, 15, 25, 27, 64, 127, 128, 150, 255, 256, 257, 512, 1000, 1024, 2048, 4097, 5000)
_COUNTS = (1, 2, 3, 4, 6, 9, 15, 16, 32, 64, 128, 250, 255, 256, 257, 264, 272, 288, 512)
"""Cells of kernels, and windows of planes, that are aimed at."""
_ROWS = (1, 2, 64, 255, 256, 257, 264)
"""Windows of a row, or along each axis."""

_ROOTS = {2: (2, 3, 4, 7, 12, 16, 17, 20, 33, 65), 3: (2, 3, 4, 5, 6, 7, 11, 17)}
"""Lengths of kernels that are the same along all axes."""


def _factored(draw: Draws, number: int, rank: int) -> Lengths:
    """Split a number into lengths along the axes; often along one of them."""
    lengths, divisor, alone = [1] * rank, 2, draw.choose((None, None, rank - 1, 0))
    while number > 1:
        while number % divisor:
            divisor += 1
        lengths[draw(rank) if alone is None else alone] *= divisor
        number //= divisor
    return tuple(lengths)


Wanted = Mapping[str, str]
"""Classes that are aimed at, by their factors; without any all are drawn."""


def _aimed(factor: str, numbers: Sequence[int], wanted: Wanted) -> Sequence[int]:
    """Select the numbers of the class that is wanted of a factor, if any are."""
    return [own for own in numbers if BY_NAME[factor].class_of({factor: own}) == wanted.get(factor)] or numbers


_RELATIONS = {"<": "<", "=": "=", ">": ">", "differs by axis": "any"}
_PADDINGS = {"none": 0, "less": 1, "half of an even kernel": 2}
_BEHIND = {"no cell behind it": 1, "as without ceil_mode": 1, "dropped in spite of ceil_mode": 2}
"""Below how many cells a plane is longer than its windows, for a class of the last of them."""


def _windowed(draw: Draws, rank: int, wanted: Wanted) -> tuple[Lengths, Windows] | None:
    """Draw windows, and the plane that they cover; None where they are too many, or some miss it."""
    kernel = _factored(draw, draw.choose(_aimed("kernel cells", _KERNELS, wanted)), rank)
    if draw(4) == 0:
        kernel = (draw.choose(_ROOTS[rank]),) * rank
    count = _factored(draw, draw.choose(_aimed("windows per plane", _COUNTS, wanted)), rank)
    if draw(4) == 0:
        count = (*(draw.choose((1, 1, 2, 3)) for _ in range(rank - 1)), draw.choose(_ROWS))
    last, apart = wanted.get("last window"), wanted.get("dilation") == "within the stride"
    ceil_mode = "ceil_mode" in last if last else draw.flip()
    is_unit = wanted.get("axis of length 1", "none") != "none" if wanted else draw(8) == 0
    is_even, multiple = draw.flip(), draw.choose((1, 1, 8, 16, 32))
    relation = _RELATIONS.get(wanted.get("kernel against stride", ""), draw.choose(("<", "=", ">", "any")))
    padding, dilation = _PADDINGS.get(wanted.get("padding", ""), draw(3)), draw.choose((1, 1, 2, 3, 0))
    same = draw.choose((0, 0, 1, 2, 3, 32, 33)) if "kernel against stride" not in wanted and not apart else 0
    axes = []
    for axis, (k, n) in enumerate(zip(kernel, count, strict=True)):
        d = dilation if is_even else draw.choose((1, 2, 3, 0))
        own = draw.choose("<=>") if relation == "any" else relation
        reach = max(d, 1) * (k - 1) + 1
        s = {"<": k + draw.choose((1, 2, reach, 31, 32, 300)), "=": k, ">": draw.between(1, max(k - 1, 1))}[own]
        s = reach + draw.choose((0, 1, 300)) if apart and own == "<" else same or s
        d = d or s  # dilated by the stride, as many windows meet as a kernel has cells
        p = (0, draw(k // 2 + 1), k // 2)[padding if is_even else draw(3)]
        behind = draw(_BEHIND[last]) if last in _BEHIND else draw.choose((0, 0, draw(s), s - 1)) - ceil_mode * draw(s)
        size = (n - 1) * s + d * (k - 1) + 1 - 2 * p + behind
        if axis == rank - 1:
            size += -size % multiple
        axes.append((1 if is_unit and draw(4) else max(size, 1), k, s, p, d))
    shape = wanted.get("shape of a plane", "")
    if taller := {"H = W": 1, "H > W": 2}.get(shape, 0) if wanted else draw.choose((0, 0, 0, 0, 1, 2)):  # or one more
        axes[-2] = (axes[-1][0] + taller - 1, *axes[-2][1:])
    sizes, kernels, strides, paddings, dilations = zip(*axes, strict=True)
    counts = [pooled_size(*axis, ceil_mode) for axis in axes]
    most = _AIMED if wanted else 1
    is_large = max(prod(sizes), prod(counts)) > most * MAX_CELLS or prod(counts) * prod(kernel) > most * MAX_TAPS
    if min(counts) < 1 or is_large:
        return None
    windows = Windowed(kernels, strides, paddings, dilations, ceil_mode)
    if any(axis.has_empty_window for axis in windows.axes(sizes)):
        return None
    lists = draw.choose((windows, shortened(windows)))
    spelled = draw.choose((lists.stride, strides, strides[:1] if len(set(strides)) == 1 else strides))
    return sizes, replace(lists, stride=spelled)


_STYLES = {
    "divides it": ("divides",),
    "does not divide it": ("divides", "any", "any"),
    "longer along some axis": ("divides", "any", "longer", "one"),
}
"""What an axis is for a class of the output against the input."""


def _adaptive(draw: Draws, rank: int, wanted: Wanted) -> tuple[Lengths, Windows] | None:
    count = _factored(draw, draw.choose(_aimed("windows per plane", _COUNTS, wanted)), rank)
    cells = _factored(draw, draw.choose(_aimed("kernel cells", _KERNELS, wanted)), rank)
    if draw(3) == 0:
        count, cells = (tuple(draw.choose(lengths) for _ in range(rank)) for lengths in (_ROWS, (1, 2, 7, 256, 4100)))
    styles = _STYLES[wanted.get("output against input", draw.choose(list(_STYLES)))]
    multiple = draw.choose((1, 1, 8, 16, 32))
    sizes = []
    for n, k in zip(count, cells, strict=True):
        own = draw.choose(styles)
        sizes.append(max({"divides": n * k, "any": n * k - draw(n), "longer": draw.between(1, n), "one": 1}[own], 1))
    sizes[-1] += -sizes[-1] % multiple
    return None if prod(sizes) > (_AIMED if wanted else 1) * MAX_CELLS else (tuple(sizes), Adaptive(count))


_MAKERS = per_kind("way to be made with their plane", {Windowed: _windowed, Adaptive: _adaptive})

_LEADING = [
    (n, c) for n in (None, 0, 1, 2, 4, 8, 16, 32, 64, 65) for c in (1, 2, 3, 5, 8, 16, 32, 33, 34, 40, 48, 64, 65)
]
"""Lengths of N, None for no such axis, and of C."""

OF_PLANES = {"batch", "channels", "N*C", "N*C as a multiple"}
"""Factors of ([N,] C)."""

_FIELDS = {
    "index dtype": "index_dtype",
    "deterministic mode": "deterministic",
    "tensors tagged NHWC": "tagged",
    "indices": "indices",
    "gradients": "gradient",
    "self": "values",
}
"""Factors that one field of a case says by itself."""

_WITH_NUMBERS = ("between", "gaussian", "whole", "pointed")
"""Words that say nothing without numbers, or without the data of others."""

_AT_ONCE, _AT_MOST, _MOST_TRIED = 2_000, 6, 200
"""How many planes with windows are drawn together, how often for classes that none has so far; how many compared."""

_OF_KIND = {
    (is_tagged, kind): tuple(name for name in names if TensorLayout(name).kind == kind)
    for is_tagged, names in ((False, ("contiguous+3", *DRAWN)), (True, ("nhwc+3", *TAGS)))
    for kind in dict.fromkeys(own for factor in LAYOUTS for own in factor.classes)
}
"""The layouts that do the same to a tensor, those with an offset first."""

_USUAL_CELLS, _MOST_CELLS = 1 << 16, 1 << 23
"""Cells of a tensor, unless larger ones are wanted; and at most."""

_USUAL_COST = 1 << 21
"""Bytes of tensors, and cells of windows, which are looked at in about a millisecond."""

Weights = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class CasePart:
    """Fields of a case, and the classes that follow from them alone, with their places among all classes.

    ``cells``: how many times as many cells, or windows, a call has for it.
    """

    fields: Mapping[str, Any]
    classes: Mapping[str, str]
    places: Weights
    cells: int = 1


@dataclass(eq=False)
class Completion:
    """Cases that visit what is ``left`` to visit in a scope, by a seed.

    Of so many ``attempts`` to make a case the one is taken that visits most, of those of ``most_cost`` at most.
    """

    scope: Scope
    left: Flags
    seed: int
    attempts: int
    most_cost: float

    def __post_init__(self) -> None:
        self._draw = Draws(self.seed)
        self._draw.is_random = True
        self._unmade: set[frozenset[tuple[str, str]]] = set()
        self._used: Counter[tuple[str, str]] = Counter()
        self._rules = Rules(self.scope)
        smallest = Case.smallest(self.scope.operator)
        self._smallest = replace(smallest, index_dtype=self.scope.index_dtypes[0])
        self._names = [factor.name for factor in self._rules.factors]
        self._impossible = self._rules.impossible(2).astype(np.float32)
        fields = [({name}, [*self._words(name, field)]) for name, field in _FIELDS.items() if name in self._names]
        names = [factor.name for factor in LAYOUTS if factor.name in self._names]
        layouts = [
            ({name}, [part for kind in BY_NAME[name].classes for part in self._part({name: kind}, {name: kind})])
            for name in names
        ]
        self._said_by_others = OF_PLANES | _FIELDS.keys() | {factor.name for factor in LAYOUTS}
        self._geometries: list[CasePart] = []
        self._having = defaultdict[tuple[str, str], list[CasePart]](list)
        self._draw_geometries({})
        of_windows = {*self._names} - self._said_by_others, self._geometries
        self._kinds: list[tuple[Set[str], list[CasePart]]]
        self._kinds = [of_windows, (OF_PLANES, [*self._leading()]), *layouts, *fields]

    def cases(self) -> Iterator[Case]:
        """Yield cases until everything is visited that a case can be made for."""
        for place in np.argwhere(self.left):
            if self.left[tuple(place)] and np.all(np.diff(place) > 0):  # each combination in one order
                best = self._best(dict(PLACES[number] for number in place))
                if best and visit(self.left, best):
                    yield best

    def _best(self, wanted: Mapping[str, str]) -> Case | None:
        """Make several cases of classes, and return that in which most of what is left meets."""
        weights = self.left.sum(axis=tuple(range(2, self.left.ndim)), dtype=np.float32)
        made = (self.case(wanted, weights if attempt % 2 else None) for attempt in range(self.attempts))
        found = []
        for case in filter(None, made):
            if (cost := cost_of(case)) > self.most_cost:
                continue
            own = classes_in(case)
            if wanted.items() <= own.items() and not self._rules.excluded(own):
                met = meeting_in(call_of(own), self.left.ndim)
                found.append((self.left[met].sum() / max(1.0, cost / _USUAL_COST), case))
        return max(found, key=lambda each: each[0])[1] if found else None

    def case(self, wanted: Mapping[str, str], weights: Weights | None = None) -> Case | None:
        """Choose a part of each kind, those that ``wanted`` is about first, by which most of the open pairs meet.

        ``weights`` says by places what a pair is worth. None where no such parts were drawn, or they do not fit.
        """
        weights = np.zeros_like(self._impossible) if weights is None else weights
        chosen: list[CasePart] = []
        met, cells = np.zeros(len(PLACES), np.float32), 1
        for names, parts in sorted(self._kinds, key=lambda kind: kind[0].isdisjoint(wanted)):
            fitting = self._fitting(parts, {name: own for name, own in wanted.items() if name in names})
            if not fitting:
                return None
            most = max(_USUAL_CELLS, 2 * cells * min(part.cells for part in fitting))
            fitting = [part for part in fitting if part.cells * cells <= most]
            rows = np.stack([part.places for part in fitting])
            gains = rows @ (weights @ met) + (rows @ weights * rows).sum(axis=1) / 2
            gains[rows @ (self._impossible @ met) > 0] = -1
            best = np.flatnonzero(gains == gains.max())
            if gains[best[0]] < 0:
                return None
            part = fitting[best[self._draw(len(best))]]
            chosen.append(part)
            met, cells = met + part.places, cells * part.cells
        return self._case(chosen) if cells <= _MOST_CELLS else None

    def _fitting(self, parts: list[CasePart], wanted: Wanted) -> list[CasePart]:
        """Select parts of one kind that have the classes ``wanted``; of planes with windows draw some, if none has."""
        is_geometry = parts is self._geometries and wanted
        if is_geometry:  # thousands of parts
            parts = min((self._having[each] for each in wanted.items()), key=len)
        fitting = [part for part in parts if wanted.items() <= part.classes.items()]
        if is_geometry and not fitting and (key := frozenset(wanted.items())) not in self._unmade:
            for _ in range(_AT_MOST):
                if fitting := self._draw_geometries(wanted):
                    break
            else:
                self._unmade.add(key)
        if len(fitting) <= _MOST_TRIED:
            return fitting
        return [self._draw.choose(fitting) for _ in range(_MOST_TRIED)]

    def _part(self, fields: Mapping[str, Any], classes: Mapping[str, str], cells: int = 1) -> Iterator[CasePart]:
        """Yield a part, unless a rule keeps its classes from calls."""
        own = {name: classes[name] for name in self._names if name in classes}
        if not self._rules.excluded(classes):
            places = np.zeros(len(PLACES), np.float32)
            places[[PLACES.index(each) for each in own.items()]] = 1
            yield CasePart(fields, own, places, cells)

    def _draw_geometries(self, wanted: Wanted) -> list[CasePart]:
        """Draw planes with windows, aimed at classes, and keep those that have them."""
        operator, drawn = self._smallest.api, list[CasePart]()
        for _ in range(_AT_ONCE):
            made = _MAKERS[operator.windows](self._draw, operator.spatial_rank, wanted)
            if made is not None:
                case = replace(self._smallest, shape=(1, 1, *made[0]), attributes=made[1])
                kept = {name: own for name, own in classes_in(case).items() if name not in self._said_by_others}
                if wanted.items() <= kept.items():
                    cells = max(case.plane_size, case.plane_windows)
                    drawn += self._part({"spatial": made[0], "attributes": made[1]}, kept, cells)
        self._geometries += drawn
        for part in drawn:
            for each in part.classes.items():
                self._having[each].append(part)
        return drawn

    def _leading(self) -> Iterator[CasePart]:
        spatial = self._smallest.spatial_shape
        for n, c in _LEADING:
            leading = (c,) if n is None else (n, c)
            classes = classes_in(replace(self._smallest, shape=(*leading, *spatial)))
            kept = {name: classes[name] for name in OF_PLANES & classes.keys()}
            yield from self._part({"leading": leading}, kept, prod(max(length, 1) for length in leading))

    def _words(self, factor: str, field: str) -> Iterator[CasePart]:
        words: Mapping[str, Sequence[Any]] = BY_NAME[factor].words or {"no": (False,), "yes": (True,)}
        for own, spelled in words.items():
            for word in spelled:
                if word not in _WITH_NUMBERS:
                    yield from self._part({field: word}, {factor: own})

    def _case(self, chosen: Iterable[CasePart]) -> Case | None:
        """Put parts together; None where they do not fit."""
        fields = {name: value for part in chosen for name, value in part.fields.items()}
        shape = (*fields.pop("leading"), *fields.pop("spatial"))
        kinds = {tensor: fields.pop(f"layout of {tensor}", "packed") for tensor in self._smallest.api.tensors}
        is_tagged = fields.pop("tagged", False)
        seed = self._draw(1 << 32)
        case = replace(self._smallest, shape=shape, seed=seed, **fields)
        layouts = {tensor: self._layout(kind, case, tensor, is_tagged) for tensor, kind in kinds.items()}
        spelled = [(tensor, layout) for tensor, layout in sorted(layouts.items()) if layout != CONTIGUOUS.name]
        case = replace(case, layouts=tuple(spelled))
        try:
            return Case.from_json(case.to_json())
        except CaseError:
            return None

    def _layout(self, kind: str, case: Case, tensor: str, is_tagged: bool) -> str:
        """Choose the layout of a kind that is used least of those that a tensor can have; the usual one without any."""
        names = _OF_KIND[is_tagged, kind]
        offset = tuple(name for name in names if "+" in name)
        shape, rank = case.tensor_shape(tensor), case.api.spatial_rank
        fitting = suitable(names[len(offset) :], shape, rank, case.sharing(tensor))
        usual = "nhwc" if is_tagged else CONTIGUOUS.name
        spelled = [*offset, *fitting, *(f"{name}+3" for name in fitting if kind != "packed")]
        chosen = min(spelled, key=lambda name: self._used[tensor, name], default=usual)
        self._used[tensor, chosen] += 1
        return chosen


def classes_in(case: Case) -> dict[str, str]:
    return classes_of(features_of(row_of(case)))


def visit(left: Flags, case: Case) -> bool:
    """Take what a case visits out of what is left; false where it visits nothing of it."""
    met = meeting_in(call_of(classes_in(case)), left.ndim)
    found = bool(left[met].any())
    for order in permutations(range(left.ndim)):
        left.transpose(order)[met] = False
    return found


def cases_of(operator: Operator, seed: int) -> Iterator[list[Case]]:
    """Yield the cases of pairs, then those that visit triples besides."""
    found: list[Case] = []
    for size, attempts in ATTEMPTS.items():
        before = len(found)
        for tags, product in SCOPES:
            scope = Scope(operator, operator.indices.dtypes, tags, product)
            rules = Rules(scope)
            left = rules.possible(size)
            for case in found:
                if not rules.excluded(classes_in(case)):
                    visit(left, case)
            for most_cost, times in ((LARGE, 1), (inf, PERSISTENT)):
                found += Completion(scope, left, seed, times * attempts, most_cost).cases()
            unmet = np.count_nonzero(left) // factorial(size)
            click.echo(f"{operator.name}: {len(found)} cases, {unmet} {TOGETHER[size]} left", err=True)
        yield [replace(case, seed=number) for number, case in enumerate(found[before:], before)]


def store(operator: Operator, lists: Sequence[Sequence[Case]]) -> None:
    """Write the lists of an operator, and the classes of their cases."""
    classes = {}
    for (size, name), cases in zip(TOGETHER.items(), lists, strict=True):
        lines = "".join(f"{case.to_json()}\n" for case in cases)
        file_of(operator, size).write_bytes(gzip.compress(lines.encode(), mtime=0))
        classes[name] = np.array([call_of(classes_in(case)) for case in cases], np.int8, order="F")
    np.savez_compressed(meetings.file_of(operator), **classes)


@click.command()
@click.option("--seed", default=0, show_default=True)
@click.option("--operator", "operators", multiple=True, type=click.Choice(list(OPERATORS)), help="Only these.")
def main(seed: int, operators: tuple[str, ...]) -> None:
    for operator in (OPERATORS[name] for name in operators or OPERATORS):
        store(operator, [*cases_of(operator, seed)])


if __name__ == "__main__":
    main()
