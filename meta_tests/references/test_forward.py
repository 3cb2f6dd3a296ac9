"""The compiled forward is the rule in Python and as specified, and tells what is wrong from what is right."""

from collections import Counter
from functools import cache, partial
from itertools import product
from math import inf, isnan, nan, prod

import numpy as np
import pytest
from numpy.typing import NDArray

from poolproof.references import specification
from poolproof.references.accumulation import ACC32
from poolproof.references.formats import FLOAT32
from poolproof.references.forward import forward_maximum, judge_forward
from poolproof.references.forward_rule import FAMILY_RULE, ForwardRule, Nans, Nothing, Ties
from poolproof.references.geometry import Axis, adaptive_axis, windowed_axis
from poolproof.references.kernels.forward import POINTS_ELSEWHERE, WRONG_INDEX, WRONG_MAXIMUM
from poolproof.references.operators import FORWARDS, Operator
from poolproof.references.specification import Windows
from poolproof.references.summary import PlaneChunk, summarise
from poolproof.suites.cases.generation import generate
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.strategies import Profile, cases
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, blocks, subjects
from scatter import Scatter
from scatter_backends import Picking
from shares import a_share

AXES: dict[str, tuple[Axis, ...]] = {
    "overlapping": (windowed_axis(5, 3, 1, 1, 1, False), windowed_axis(6, 2, 1, 1, 1, True)),
    "dilated": (windowed_axis(7, 2, 2, 1, 3, False), windowed_axis(6, 3, 1, 0, 2, False)),
    "without cells": (windowed_axis(1, 2, 1, 1, 2, False), windowed_axis(4, 2, 2, 0, 1, False)),
    "adaptive": (adaptive_axis(5, 3), adaptive_axis(3, 5), adaptive_axis(4, 1)),
    "3-D": (windowed_axis(4, 2, 2, 1, 1, True), windowed_axis(5, 3, 2, 1, 1, False), adaptive_axis(4, 3)),
}


SUBNORMALS = np.array([-2, -1, 1, 2], np.float32) * np.float32(2.0**-149)


def planes(axes: tuple[Axis, ...], seed: int) -> NDArray:
    """Small integers, so that there are ties, and subnormal numbers, with NaN and whole windows of -inf."""
    random = np.random.default_rng(seed)
    values = random.integers(-2, 3, (2, *(axis.size for axis in axes))).astype(np.float32)
    values[values == 1] = random.choice(SUBNORMALS, np.count_nonzero(values == 1))
    values[random.random(values.shape) < 0.1] = np.nan
    values[random.random(values.shape) < 0.6] = -np.inf
    values[random.random(values.shape) < 0.1] = np.finfo(np.float32).min
    return values


LOWEST = float(np.finfo(np.float32).min)

ONE_OF_THEM = [ties for ties in Ties if not ties.takes_several]

ALL_RULES = [ForwardRule(*traits) for traits in product(ONE_OF_THEM, Nans, Nothing, (False, True), (False, True))]


def by_the_rule(plane: NDArray, axes: tuple[Axis, ...], window: tuple[int, ...], rule: ForwardRule) -> list[int]:
    """Every index that a rule allows one window, from the list of its cells; -1 where nothing is found."""
    visited = [axis.positions[at][axis.valid[at]] for axis, at in zip(axes, window, strict=True)]
    cells = {int(np.ravel_multi_index(cell, plane.shape)): float(plane[cell]) for cell in product(*visited)}
    if rule.flushes_subnormals:
        cells = {cell: 0.0 if abs(value) < 2.0**-126 else value for cell, value in cells.items()}
    nans, everywhere, begins_anew = [cell for cell, value in cells.items() if isnan(value)], cells, False
    if rule.nans is Nans.YIELDING and nans:  # all up to the last NaN is forgotten, but if nothing comes behind it
        behind = [*cells][[*cells].index(nans[-1]) + 1 :]
        begins_anew = bool(behind)
        cells, nans = ({cell: cells[cell] for cell in behind}, []) if behind else (cells, nans[-1:])
    if rule.nans is Nans.LEADING and nans:
        nans = [cell for cell in nans if cell == next(iter(cells))]
    if nans and rule.nans is not Nans.IGNORED:
        return {Nans.FIRST: nans[:1], Nans.LAST: nans[-1:]}.get(rule.nans, nans)
    numbers = {cell: value for cell, value in cells.items() if not isnan(value)}
    greatest = max(numbers.values(), default=-inf)
    if rule.nothing is not Nothing.CELL and not begins_anew:
        start = LOWEST if "lowest" in str(rule.nothing) else -inf
        if greatest < start or (greatest == start and rule.ties is not Ties.LAST) or not numbers:
            return [-1]
    tied = [cell for cell, value in (everywhere if rule.ties is Ties.ANY else numbers).items() if value == greatest]
    if greatest == -inf and rule.ties is not Ties.LAST:
        tied = [*cells][:1] + tied  # nothing replaced the first cell, whatever it holds
    return {Ties.FIRST: tied[:1], Ties.LAST: tied[-1:], Ties.ANY: tied}[rule.ties] or [*cells][:1] or [-1]


def value_of(index: int, plane: NDArray, is_empty: bool, rule: ForwardRule) -> float:
    if index >= 0:
        value = float(plane.flat[index])
        return -inf if isnan(value) and rule.nans is Nans.IGNORED else value
    is_lowest = rule.empty_is_lowest if is_empty else "lowest" in str(rule.nothing)
    return LOWEST if is_lowest else -inf


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
def test_maxima_and_indices_are_those_of_the_rule_and_no_other_index_is_admissible(axes: tuple[Axis, ...]) -> None:
    for seed, rule in enumerate(ALL_RULES):
        values = planes(axes, seed)
        maxima, indices = forward_maximum(values, axes, rule)
        assert maxima.dtype == values.dtype
        others = np.random.default_rng(seed).integers(-1, values[0].size, indices.shape)
        flags = judge_forward(values, axes, np.zeros(indices.shape), others, rule).reshape(indices.shape)
        for place in np.ndindex(indices.shape):
            plane = values[place[0]]
            found = by_the_rule(plane, axes, place[1:], rule)
            is_empty = not all(axis.valid[at].any() for axis, at in zip(axes, place[1:], strict=True))
            is_origin = found == [-1] and not is_empty and "origin" in str(rule.nothing)
            allowed = [0] if is_origin else found
            assert indices[place] in allowed, (rule, place)
            assert bool(flags[place] & WRONG_INDEX) == (others[place] not in allowed), (rule, place)
            owed = value_of(-1 if is_origin else indices[place], plane, is_empty, rule)
            assert maxima[place] == pytest.approx(owed, abs=0, nan_ok=True), (rule, place)
        assert not (judge_forward(values, axes, maxima, indices, rule) & (WRONG_MAXIMUM | WRONG_INDEX)).any(), rule


def test_no_rule_excuses_an_index_that_points_nowhere() -> None:
    """A window of nothing but -inf, for which a running maximum from the lowest number on finds no index.

    Neither does an array that cannot be written: compiled code takes writable ones alone, and of one element even a
    broadcast one is contiguous.
    """
    axes, values = (windowed_axis(2, 2, 2, 0, 1, False),) * 2, np.full((1, 2, 2), -np.inf)
    for nothing, index in ((Nothing.LOWEST, -1), (Nothing.LOWEST_ORIGIN, 0)):
        rule = ForwardRule(nothing=nothing)
        maxima, indices = forward_maximum(values, axes, rule)
        assert (maxima.item(), indices.item()) == (-np.finfo(np.float64).max, index)
        assert judge_forward(values, axes, maxima, indices, rule).tolist() == [[POINTS_ELSEWHERE]]
    out, indices = np.broadcast_to(1.0, (1, 1, 1)), np.broadcast_to(-1, (1, 1, 1))
    assert judge_forward(np.ones((1, 2, 2)), axes, out, indices).tolist() == [[WRONG_INDEX | POINTS_ELSEWHERE]]


def test_planes_of_many_slabs_are_all_judged() -> None:
    axes, values = (adaptive_axis(300, 2), adaptive_axis(300, 2)), np.zeros((3, 300, 300))
    values[:, 7, 9] = 1.0
    maxima, indices = forward_maximum(values, axes)
    assert (indices[:, 0, 0] == 7 * 300 + 9).all()
    indices[2, 1, 1] += 1
    assert np.argwhere(judge_forward(values, axes, maxima, indices)).tolist() == [[2, 3]]


def test_a_rule_is_read_as_it_is_spelled() -> None:
    assert [ForwardRule.parse(str(rule)) for rule in ALL_RULES] == ALL_RULES
    for text, wrong in (("newest", "is none of first, last"), ("first+last", "says two things about ties")):
        with pytest.raises(ValueError, match=wrong):
            ForwardRule.parse(text)


ROW = np.array([[[1.0, 3.0, 3.0, nan, -0.0, nan, 2.0]]])
"""Of one window that is its first three cells, one the next three, and one the last cell alone."""

PAIRS = (windowed_axis(1, 1, 1, 0, 1, False), windowed_axis(7, 3, 3, 0, 1, True))


@pytest.mark.parametrize(
    ("out", "index", "flags"),
    [
        pytest.param((3.0, nan, 2.0), (1, 5, 6), (0, 0, 0), id="right"),
        pytest.param((3.0, -nan, 2.0), (1, 5, 6), (0, 0, 0), id="another NaN"),
        pytest.param((3.0, nan, 2.0), (2, 5, 6), (WRONG_INDEX, 0, 0), id="a later maximum"),
        pytest.param((3.0, nan, 2.0), (1, 3, 6), (0, WRONG_INDEX, 0), id="an earlier NaN"),
        pytest.param((3.0, nan, 2.0), (1, 4, 6), (0, WRONG_INDEX | POINTS_ELSEWHERE, 0), id="another value"),
        pytest.param((3.0, nan, 2.0), (1, 5, 2), (0, 0, WRONG_INDEX | POINTS_ELSEWHERE), id="another window's cell"),
        pytest.param((3.0, nan, 2.0), (1, 5, 7), (0, 0, WRONG_INDEX | POINTS_ELSEWHERE), id="past the plane"),
        pytest.param((3.0, nan, 2.0), (-6, 5, 6), (WRONG_INDEX | POINTS_ELSEWHERE, 0, 0), id="before the plane"),
        pytest.param((1.0, nan, 2.0), (0, 5, 6), (WRONG_INDEX | WRONG_MAXIMUM, 0, 0), id="a cell that is no maximum"),
        pytest.param((1.0, nan, 2.0), (1, 5, 6), (WRONG_MAXIMUM | POINTS_ELSEWHERE, 0, 0), id="not what it points at"),
        pytest.param((3.0, 0.0, 2.0), (1, 4, 6), (0, WRONG_MAXIMUM | WRONG_INDEX, 0), id="NaN passed over"),
    ],
)
def test_what_is_wrong_has_its_flag(out: tuple[float, ...], index: tuple[int, ...], flags: tuple[int, ...]) -> None:
    assert judge_forward(ROW, PAIRS, np.array([out]), np.array([index])).tolist() == [list(flags)]


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
def test_the_same_source_gives_the_same_uncompiled(axes: tuple[Axis, ...], request: pytest.FixtureRequest) -> None:
    values = planes(axes, 5)
    maxima, indices = forward_maximum(values, axes)
    wrong = judge_forward(values, axes, np.roll(maxima, 1), np.roll(indices, 1))
    request.getfixturevalue("in_python")
    np.testing.assert_array_equal(forward_maximum(values, axes)[1], indices)
    np.testing.assert_array_equal(judge_forward(values, axes, np.roll(maxima, 1), np.roll(indices, 1)), wrong)


# Windows, maxima and whole backward passes, held to the specification; sums and the criterion are in `test_criterion`.


def visited(axis: Axis) -> Windows:
    return [axis.positions[o][axis.valid[o]].tolist() for o in range(axis.windows)]


def test_windows_lie_where_the_specification_lays_them() -> None:
    missing = Counter[bool]()
    for size, kernel, stride, dilation in product(range(1, 8), range(1, 6), range(1, 6), range(1, 4)):
        for padding, ceil_mode in product(range(kernel + 1), (False, True)):
            attributes = size, kernel, stride, padding, dilation, ceil_mode
            windows = specification.windowed(*attributes)
            if windows:
                axis = windowed_axis(*attributes)
                assert visited(axis) == windows
                assert axis.has_empty_window is ([] in windows)
                missing[axis.has_empty_window] += 1
            else:
                with pytest.raises(ValueError, match="has no window"):
                    windowed_axis(*attributes)
    assert missing.total() > 3000 and missing[True] > 100
    for size, count in product(range(1, 12), range(1, 15)):
        assert visited(adaptive_axis(size, count)) == specification.adaptive(size, count)


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
def test_a_pool_and_its_backward_are_those_of_the_specification(axes: tuple[Axis, ...]) -> None:
    rng, sizes = np.random.default_rng(4), tuple(axis.size for axis in axes)
    windows = specification.windows_of_plane([(axis.size, visited(axis)) for axis in axes])
    rejected = 0
    for _ in range(30):
        values = rng.choice([-inf, -1.0, 0.0, 1.0, 2.0, nan], (1, *sizes), p=[0.4, 0.1, 0.1, 0.2, 0.1, 0.1])
        expected = [specification.forward(values.ravel().tolist(), window) for window in windows]
        maxima, indices = forward_maximum(values, axes)
        assert indices.ravel().tolist() == [index for _, index in expected]
        np.testing.assert_array_equal(maxima.ravel(), [maximum for maximum, _ in expected])
        assert not (judge_forward(values, axes, maxima, indices) & ~np.uint8(POINTS_ELSEWHERE)).any()

        indices[indices < 0] = 0
        gradients = FLOAT32.round(rng.normal(size=len(windows)))
        terms = specification.backward(gradients.tolist(), indices.ravel().tolist(), prod(sizes))
        outputs = FLOAT32.round(np.array([sum(cell) for cell in terms], float))
        outputs[rng.integers(len(outputs))] += rng.choice([0.0, 2.0**-20])
        chunk = partial(PlaneChunk, indices.ravel(), gradients, outputs)
        summary = summarise([chunk], prod(sizes), FLOAT32, ACC32).tally
        verdicts = [
            specification.admissible(cell, FLOAT32, ACC32).accepts(output)
            for cell, output in zip(terms, outputs.tolist(), strict=True)
        ]
        assert summary.rejected == verdicts.count(False)
        rejected += summary.rejected
    assert rejected > 5


# A forward is judged by the rule that it declares, and by nothing less.


RULES = tuple(
    map(ForwardRule.parse, ("last", "first-nan", "last+leading-nan", "no-nan", "no-nan+lowest", "no-nan+lowest-origin"))
)


@cache
def questions(aspect: str = "special_values") -> list[CaseQuestion]:
    """Forwards on data with ties, NaN and infinities, or on those of another aspect."""
    chosen = [
        subject
        for subject in subjects("scatter", Scatter())
        if not subject.operator.is_backward and (subject.dtype, subject.index_dtype) == ("float16", "int64")
    ]
    asked = blocks(chosen, [CASE_ASPECTS[aspect]], PLANS["smoke"], 1)
    return [question for block in asked for question in block.prefix(40)]


def violated(picks: ForwardRule, declared: ForwardRule, aspect: str = "special_values") -> set[str]:
    """The checks whose claims are broken by any of the questions."""
    rows = [question.judge(Picking(picks, declared)) for question in questions(aspect)]
    return {check for row in rows for check in row.get("checks_violated") or ()}


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_what_is_declared_is_right_but_an_index_that_points_at_nothing(rule: ForwardRule) -> None:
    """Where NaN are ignored, a window of nothing else has no cell whose value could come out."""
    assert violated(rule, declared=rule) == ({"index_points"} if "no-nan" in str(rule) else set())


@pytest.mark.parametrize("rule", a_share(RULES, 2), ids=str)
def test_what_is_not_declared_is_wrong(rule: ForwardRule) -> None:
    assert "index_rule" in violated(rule, declared=FAMILY_RULE)
    assert "index_rule" in violated(FAMILY_RULE, declared=rule)


def test_subnormal_cells_are_asked_about() -> None:
    """Comparisons that take them for zero are wrong unless that is declared, and so are others where it is."""
    flushing = ForwardRule.parse("ftz")
    assert violated(flushing, declared=flushing, aspect="subnormals") == set()
    assert violated(FAMILY_RULE, declared=FAMILY_RULE, aspect="subnormals") == set()
    assert "index_rule" in violated(flushing, declared=FAMILY_RULE, aspect="subnormals")
    assert "index_rule" in violated(FAMILY_RULE, declared=flushing, aspect="subnormals")


# Sizes, windows and maxima agree with torch, which is where the operator library's rules come from.

TORCH_FORWARDS = [operator for operator in FORWARDS if operator.aten]
VALUES = CASE_ASPECTS["special_values"].profile.values + CASE_ASPECTS["values"].profile.values
CASES = 5000


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("operator", TORCH_FORWARDS, ids=lambda operator: operator.name)
def test_forward_agrees_with_torch(operator: Operator, dtype: str) -> None:
    """Shapes, maxima and indices, on 5,000 cases over all operators and dtypes; no disagreement is known."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)  # as its backend does: threads that wait for cases this small cost more than the cases
    count = CASES // (4 * len(TORCH_FORWARDS)) + 1
    for case in generate(cases.make(operator, dtype, "int64", Profile(values=VALUES)), count, seed=1):
        values = make_operands(case).values.astype(np.float64)
        tensor = torch.from_numpy(values).to(getattr(torch, case.dtype))
        out, indices = getattr(torch.ops.aten, case.api.aten)(tensor, *case.api.passed(case.attributes))
        assert tuple(out.shape) == case.pooled_shape, case.to_json()
        maxima, flat = forward_maximum(values.reshape(case.planes, *case.spatial_shape), case.axes)
        np.testing.assert_array_equal(out.double().numpy().ravel(), maxima.ravel(), case.to_json())
        np.testing.assert_array_equal(indices.numpy().ravel(), flat.ravel(), case.to_json())
