"""Strategies draw what they promise, and the same everywhere; recipes fill what they promise, by numpy's numbers."""

import functools
import hashlib
import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from poolproof.backends.abilities import Abilities
from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FORMATS, FloatFormat
from poolproof.references.forward import window_cells
from poolproof.references.geometry import windowed_axis
from poolproof.references.layouts import DRAWN, LAYOUTS, MemoryLayout
from poolproof.references.operators import BACKWARDS, OPERATORS, Operator
from poolproof.references.windows import Windowed
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import derive_seed, generate
from poolproof.suites.cases.memory import POISONS, as_bits, holds_poison
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.recipes import stream as streams
from poolproof.suites.cases.recipes.gradients import GRADIENTS, Landing
from poolproof.suites.cases.recipes.indices import INDICES
from poolproof.suites.cases.recipes.stream import RandomStream
from poolproof.suites.cases.recipes.values import draw_values
from poolproof.suites.cases.shrinking import smaller_case
from poolproof.suites.cases.strategies import Profile, cases
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.blocks import CaseAspect
from poolproof.suites.plan.plans import PLANS, Subject, blocks


@cache
def drawn(operator: Operator, aspect: CaseAspect, count: int = 300) -> list[Case]:
    index_dtype = operator.indices.dtypes[-1]
    return generate(cases.make(operator, "float16", index_dtype, aspect.profile), count, seed=3)


@pytest.mark.parametrize("aspect", CASE_ASPECTS.values(), ids=lambda aspect: aspect.id)
@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_every_draw_is_legal(operator: Operator, aspect: CaseAspect) -> None:
    if aspect.profile.empty_windows and not operator.windows.can_miss_input:
        pytest.skip("an adaptive window always has a cell")
    if aspect.profile.tagged and not operator.takes_tags:
        pytest.skip("this operator has no channels-last tag")
    for case in drawn(operator, aspect, 60):
        assert Case.from_json(case.to_json()) == case
        assert not {*"'\n"} & {*case.to_json()}, "the line must fit between single quotes in a shell"
        assert case.has_empty_window == aspect.profile.empty_windows
        if isinstance(case.attributes, Windowed):
            assert max(case.attributes.padding, default=0) <= max(case.attributes.kernel_size) // 2
        if aspect.profile.budgets[-1] <= 4096:
            assert case.planes * case.plane_size <= 40_000
            assert case.planes * case.plane_windows <= 40_000


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
@pytest.mark.parametrize("aspect", ["values", "huge", "empty_windows"])
def test_square_windows_are_legal(operator: Operator, aspect: str) -> None:
    profile = CASE_ASPECTS[aspect].profile.within(Abilities(unequal_axes=False))
    for case in generate(cases.make(operator, "float16", operator.indices.dtypes[-1], profile), 60, seed=3):
        assert Case.from_json(case.to_json()) == case and not case.attributes.differs_by_axis
        assert case.has_empty_window == (profile.empty_windows and operator.windows.can_miss_input)


def layouts_of(operator: Operator, tensor: str) -> set[str]:
    """What programs make of such a tensor: outputs share no memory, indices only from plane to plane."""
    letters = "ncdhw" if operator.spatial_rank == 3 else "nchw"
    sharing = "" if tensor in operator.outputs else "nc" if tensor == "indices" else letters
    views = {name: LAYOUTS[name] for name in DRAWN if name != "contiguous"}
    return {
        name
        for name, view in views.items()
        if set(view.axes) <= set(letters) and set(view.shared) & set(letters) <= set(sharing)
    }


@pytest.mark.parametrize(
    ("operator", "index_dtype"),
    [(operator, dtype) for operator in OPERATORS.values() for dtype in operator.indices.dtypes],
    ids=lambda value: getattr(value, "name", value),
)
def test_every_tensor_meets_every_layout_in_the_smoke_plan(operator: Operator, index_dtype: str) -> None:
    subjects = [Subject("any", operator, dtype, index_dtype) for dtype in ("float32", "float16", "bfloat16")]
    planned = blocks(subjects, [CASE_ASPECTS["layouts"]], PLANS["smoke"], 0)
    drawn = [dict(question.case.layouts) for block in planned for question in block.questions()]
    choices = [{tensor: MemoryLayout.parse(text) for tensor, text in layouts.items()} for layouts in drawn]
    for tensor in operator.strided:
        met = {choice[tensor].name for choice in choices if tensor in choice}
        assert layouts_of(operator, tensor) - met == set(), tensor
    behind_an_offset = {layout.name for choice in choices for layout in choice.values() if layout.offset}
    assert layouts_of(operator, "self") - behind_an_offset == set()


def test_large_plane_counts_and_lengths_belong_to_scale() -> None:
    scale = drawn(OPERATORS["MaxPool2dWithIndicesBackward"], CASE_ASPECTS["scale"], 800)
    for threshold in ((255, 256, 257), (1023, 1024, 1025)):
        assert any(case.planes in threshold for case in scale)
    assert any(set(case.spatial_shape) & {255, 256, 257, 258} for case in scale)


def test_seeds_depend_on_every_part() -> None:
    assert len({derive_seed(0, "a", 1), derive_seed(0, "a", 2), derive_seed(1, "a", 1), derive_seed(0, "b", 1)}) == 4


def test_shrinking_ends_at_the_smallest_failing_case_and_at_once_where_none_fails_again() -> None:
    make = cases.make(OPERATORS["MaxPool2dWithIndicesBackward"], "float32", "int64", CASE_ASPECTS["values"].profile)
    drawn = generate(make, 100, 9)
    failing = next(case for case in drawn if case.attributes.ceil_mode and case.planes >= 3 and case.plane_size > 6)
    small = smaller_case(failing, {}, lambda case: case.attributes.ceil_mode and case.planes >= 2, 20.0)
    assert small.attributes.ceil_mode
    assert (small.planes, small.plane_size) == (2, 1)
    assert smaller_case(failing, {}, lambda case: False, 5.0) == failing


FMTS = (FLOAT32, FLOAT16, BFLOAT16, FLOAT64)


def crowd(k_max: int) -> Landing:
    """Cells with 1 ... k_max gradients each, in shuffled memory order."""
    cells = np.repeat(np.arange(k_max * 8), np.resize(np.arange(1, k_max + 1), k_max * 8))
    axis = windowed_axis(len(cells), 1, 1, 0, 1, ceil_mode=False)
    return Landing(np.random.default_rng(0).permutation(cells)[None], k_max * 8, (axis,))


@pytest.mark.parametrize("recipe", [name for name in GRADIENTS if name != "pointed"])
@pytest.mark.parametrize("fmt", FMTS, ids=lambda fmt: fmt.name)
def test_gradients_are_representable_and_repeatable(fmt: FloatFormat, recipe: str) -> None:
    landing = crowd(9)
    gradient = GRADIENTS[recipe](landing, fmt, RandomStream(4, "gradient"))
    assert gradient.shape == landing.cells.shape
    assert np.array_equal(gradient.astype(fmt.dtype).astype(np.float64), gradient, equal_nan=True)
    assert np.array_equal(gradient, GRADIENTS[recipe](landing, fmt, RandomStream(4, "gradient")), equal_nan=True)


@pytest.mark.parametrize("fmt", FMTS, ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("k_max", [1, 2, 9, 100])
def test_integers_are_exact_in_every_order_and_model(fmt: FloatFormat, k_max: int) -> None:
    landing = crowd(k_max)
    gradient = GRADIENTS["integers"](landing, fmt, RandomStream(1, "gradient"))
    assert (gradient != 0).all()
    assert np.bincount(landing.cells, np.abs(gradient)).max() <= fmt.largest_exact_integer


def test_special_gradients_mix_every_kind_and_subnormal_ones_are_below_twice_the_smallest_normal() -> None:
    gradient = GRADIENTS["special"](crowd(9), FLOAT16, RandomStream(1, "gradient"))
    for kind in (np.isnan, np.isposinf, np.isneginf, lambda values: np.signbit(values) & (values == 0)):
        assert kind(gradient).any()
    assert np.isfinite(gradient).mean() > 0.5
    for fmt in (FLOAT32, FLOAT16, BFLOAT16):
        gradient = np.abs(GRADIENTS["subnormal"](crowd(3), fmt, RandomStream(1, "gradient")))
        assert (gradient < fmt.smallest_normal).any()
        assert gradient.max() <= 2 * fmt.smallest_normal


@pytest.mark.parametrize("operator", BACKWARDS, ids=lambda operator: operator.name)
@pytest.mark.parametrize("recipe", INDICES)
def test_every_index_lies_in_its_own_window(operator: Operator, recipe: str) -> None:
    profile = Profile(indices=(recipe,), empty_batches=False)
    index_dtype = operator.indices.dtypes[-1]
    for case in generate(cases.make(operator, "float32", index_dtype, profile), 40, 6):
        indices = make_operands(case).indices
        assert indices is not None
        cells, valid = window_cells(case.axes)
        assert ((cells == indices.reshape(case.planes, -1, 1)) & valid).any(axis=-1).all()


def test_shared_indices_concentrate_and_tile_borders_are_hit() -> None:
    windows = {"shape": (1, 1, 66, 66), "kernel_size": (5, 5), "stride": (1,), "padding": (2,)}
    case = Case.of("MaxPool2dWithIndicesBackward", indices="shared", **windows)
    assert make_operands(case).landing.largest_multiplicity >= 9
    borders = make_operands(replace(case, indices="tile_borders")).indices
    assert borders is not None
    assert {63, 64} & set((borders % 66).ravel().tolist())


def test_data_depends_on_the_seed_and_nothing_else_that_varies() -> None:
    data = {"indices": "in_window", "gradient": "uniform"}
    base = Case.of("MaxPool2dWithIndicesBackward", shape=(2, 2, 9, 9), kernel_size=(3, 3), **data)
    same = {"stride": [], "padding": [], "dilation": [], "layouts": {"self": "sliced"}, "index_dtype": "int32"}
    other = Case.from_record(json.loads(base.to_json()) | same)
    assert np.array_equal(make_operands(base).gradient, make_operands(other).gradient)
    assert not np.array_equal(make_operands(base).gradient, make_operands(replace(base, seed=1)).gradient)


def test_numbers_are_those_of_numpys_philox_and_draws_follow_one_another() -> None:
    """Every kind takes one raw number for each element, normal values take twelve: all first ones before the second.

    Pinned besides: data must not change with a library's version.
    """
    assert RandomStream(0, "gradient").below(1000, 4).tolist() == [594, 896, 447, 10]
    key = int.from_bytes(hashlib.sha256(b"5/values").digest()[:16], "little")
    words = np.random.Philox(key=key).random_raw(3 + 12 * 2 + 4 + 4 + 4)  # type: ignore[arg-type]  # smaller in stubs
    stream, uniforms = RandomStream(5, "values"), (words >> np.uint64(11)) * 2.0**-53
    assert stream.uniform(3).tobytes() == uniforms[:3].tobytes()
    assert stream.normal(2).tobytes() == (functools.reduce(np.add, uniforms[3:27].reshape(12, 2)) - 6.0).tobytes()
    assert stream.signs(4).tolist() == [1.0 - 2.0 * int(2.0 * number) for number in uniforms[27:31]]
    bounds = [1, 2, 9, 2**32]
    owed = [(int(word) >> 32) * bound >> 32 for bound, word in zip(bounds, words[31:35], strict=True)]
    assert list(map(stream.one_below, bounds)) == owed
    assert stream.uniform(4).tobytes() == uniforms[35:].tobytes()
    assert RandomStream(5, "values").below([1] * 31 + bounds, 35)[31:].tolist() == owed


LARGE = (1, 300, 64, 64)
"""More elements than are drawn one by one."""


def large(operator: str, **recipes: str) -> Case:
    return Case.of(operator, shape=LARGE, dtype="float16", kernel_size=(2,), stride=(1,), **recipes)


@pytest.mark.parametrize("recipe", ["ties", "after_relu", "infinities"])
def test_no_two_planes_of_a_large_tensor_are_alike_nor_those_before_and_behind_an_offset(recipe: str) -> None:
    """What `huge` is for: a kernel that reads at an offset cut to 20 bits reads something else."""
    values = make_operands(large("MaxPool2dWithMask", values=recipe)).values.view(np.uint16)
    planes = values.reshape(300, -1)
    assert len(np.unique(planes, axis=0)) == 300
    flat, behind = values.ravel(), 1 << 20
    assert (flat[behind:] != flat[: flat.size - behind]).mean() > 0.4


@pytest.mark.parametrize("fmt", (BFLOAT16, FLOAT16), ids=lambda fmt: fmt.name)
def test_carries_begin_at_every_mantissa_and_in_many_binades(fmt: FloatFormat) -> None:
    windows = {"kernel_size": (2,), "stride": (1,), "shape": (1, 8, 48, 48)}
    recipes = {"gradient": "carries", "indices": "in_window"}
    drawn = make_operands(Case.of("MaxPool2dWithIndicesBackward", dtype=fmt.name, **recipes, **windows))
    mantissa, exponent = np.frexp(np.abs(drawn.terms[drawn.terms != 0.0]))
    assert {*(mantissa * 2**fmt.precision)} >= {*range(2 ** (fmt.precision - 1), 2**fmt.precision)}
    binades = {*range(fmt.min_exponent + 3, fmt.max_exponent + 1)}
    assert {*exponent[mantissa == 1 - 2.0**-fmt.precision]} == binades
    sums = np.abs(drawn.sums.sum)
    before = np.frexp(sums)[1]
    assert {*before[np.frexp(fmt.round(sums))[1] > before]} == binades and np.isfinite(fmt.round(sums)).all()


def test_gradients_of_a_large_tensor_are_those_of_their_recipe() -> None:
    drawn = make_operands(large("MaxPool2dWithIndicesBackward", gradient="integers", indices="in_window"))
    assert drawn.gradient is not None
    terms = np.abs(drawn.terms)
    assert np.bincount(drawn.landing.cells, terms).max() <= FLOAT16.largest_exact_integer
    assert (terms != 0.0).all() and len(np.unique(drawn.gradient.reshape(300, -1), axis=0)) == 300


def test_beyond_a_size_elements_are_those_of_a_table_unless_they_depend_on_their_place() -> None:
    def drawn(name: str, size: int) -> np.ndarray:
        return draw_values(name, size, FLOAT32, RandomStream(1, "values"))

    repeated, distinct = (len(np.unique(drawn("negative", times * streams.MAX_DRAWN))) for times in (2, 1))
    assert repeated <= streams.MAX_DRAWN < 1.1 * distinct
    assert (np.diff(drawn("ascending", streams.MAX_DRAWN + 100)) == 1.0).all()
    assert (np.diff(drawn("descending", streams.MAX_DRAWN + 100)) == -1.0).all()


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda fmt: fmt.name)
def test_nan_have_both_signs_and_many_payloads_and_are_quiet(fmt: FloatFormat) -> None:
    drawn = draw_values("nan", 4000, fmt, RandomStream(3, "values"))
    nan = drawn[np.isnan(drawn)]
    bits, quiet = as_bits(nan), as_bits(np.full(1, np.nan, fmt.dtype))
    assert (bits & quiet == quiet).all() and not any(holds_poison(nan, byte).any() for byte in POISONS[0])
    assert 0.4 < np.signbit(nan).mean() < 0.6 and quiet in bits and len(np.unique(bits)) > 50
