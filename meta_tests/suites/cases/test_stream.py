"""Random numbers are numpy's, whoever draws them; of large tensors data are pieces of what was drawn."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from poolproof.references.formats import FLOAT16, FLOAT32
from poolproof.references.geometry import windowed_axis
from poolproof.references.kernels import numbers as core
from poolproof.references.kernels.compiled import Compiled, in_numpy
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.recipes import loops
from poolproof.suites.cases.recipes import stream as streams
from poolproof.suites.cases.recipes.gradients import GRADIENTS, OF_SELF, Landing
from poolproof.suites.cases.recipes.indices import INDICES
from poolproof.suites.cases.recipes.stream import RandomStream
from poolproof.suites.cases.recipes.values import VALUES, draw_values


def test_the_largest_multiplicity_is_that_of_the_fullest_cell() -> None:
    axis = windowed_axis(9, 3, 1, 1, 1, False)
    indices = np.array([np.arange(9), np.clip(np.arange(9), 2, 8), np.clip(np.arange(9), 0, 7)])
    assert Landing(indices, 9, (axis,)).largest_multiplicity == 3
    assert Landing(indices[1:], 9, (axis,)).largest_multiplicity == 3
    assert Landing(indices[::2], 9, (axis,)).largest_multiplicity == 2
    assert Landing(indices[:1], 9, (axis,)).largest_multiplicity == 1
    assert Landing(indices[:0], 9, (axis,)).largest_multiplicity == 1


def numpys(key: tuple[int, int]) -> np.random.Philox:
    """numpy's generator with a key of two signed words."""
    words = sum((word % 2**64) << (64 * place) for place, word in enumerate(key))
    return np.random.Philox(key=words)  # type: ignore[arg-type]  # numpy's stubs know only smaller keys


KEYS = [(0, 0), (-1, -1), (2**63 - 1, -(2**63)), (-0x61C8864680B583EB, 0x0123456789ABCDEF)]


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn and placed runs as it is written, not compiled, and keeps few numbers at a time.

    Places outside an array are errors there.
    """
    monkeypatch.setattr(loops, "_AT_ONCE", 4)
    for function in (*vars(loops).values(), *vars(core).values()):
        if isinstance(function, Compiled):
            monkeypatch.setitem(function.__dict__, "_run", in_numpy(function.py_func))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("key", KEYS)
def test_numbers_are_those_of_numpys_philox(
    key: tuple[int, int], compiled: bool, request: pytest.FixtureRequest
) -> None:
    """From whatever number on, by whatever transformation."""
    if not compiled:
        request.getfixturevalue("in_python")
    for first, size in itertools.product((0, 1, 2, 3, 4, 11), (0, 1, 3, 4, 9)):
        raw = numpys(key).random_raw(first + 12 * size)[first:]
        integers, floats = np.empty(size, np.int64), np.empty(size)
        for bound in (1, 5, 1000, 2**32):
            loops.fill_below(*key, first, bound, integers)
            assert integers.tolist() == [(int(word) >> 32) * bound >> 32 for word in raw[:size]]
        loops.fill_uniform(*key, first, floats)
        uniforms = (raw >> np.uint64(11)) * 2.0**-53
        assert floats.tobytes() == uniforms[:size].tobytes()
        loops.fill_normal(*key, first, floats)
        owed = functools.reduce(np.add, uniforms.reshape(12, size)) - 6.0
        assert floats.tobytes() == owed.tobytes()


def test_draws_follow_one_another() -> None:
    """Every kind takes one number for each element, normal values take twelve."""
    stream, whole = RandomStream(5, "values"), RandomStream(5, "values").uniform(3 + 12 * 2 + 4 + 4 + 4)
    assert stream.uniform(3).tobytes() == whole[:3].tobytes()
    assert stream.normal(2).tobytes() == (functools.reduce(np.add, whole[3:27].reshape(12, 2)) - 6.0).tobytes()
    assert stream.signs(4).tolist() == [1.0 - 2.0 * int(2.0 * number) for number in whole[27:31]]
    bounds = [1, 2, 9, 2**32]
    owed = [int(bound * int(number * 2.0**32)) >> 32 for bound, number in zip(bounds, whole[31:35], strict=True)]
    assert list(map(stream.one_below, bounds)) == owed
    assert stream.uniform(4).tobytes() == whole[35:].tobytes()


SMALL = {
    "MaxPool2dWithIndicesBackward": {"shape": (2, 1, 5, 4), "kernel_size": (3, 2), "stride": (2, 1), "padding": (1,)},
    "MaxPool3dWithArgmaxBackward": {"shape": (1, 2, 4, 1, 5), "kernel_size": (2, 1, 3), "dilation": (2, 1, 1)},
}


@pytest.mark.parametrize("operator", SMALL)
def test_contents_uncompiled_are_those_compiled(operator: str, request: pytest.FixtureRequest) -> None:
    """One recipe for each tensor at a time, the others at their defaults."""
    recipes = {"gradient": GRADIENTS | OF_SELF, "indices": INDICES, "values": VALUES}
    chosen = [{field: name} for field, named in recipes.items() for name in named]
    cases = [Case.of(operator=operator, **SMALL[operator], **recipe, seed=7) for recipe in chosen]
    made = [make_operands(case) for case in cases]
    request.getfixturevalue("in_python")
    for case, compiled in zip(cases, made, strict=True):
        again = make_operands(case)
        for name in ("values", "indices", "gradient"):
            assert getattr(again, name).tobytes() == getattr(compiled, name).tobytes(), (case.id, name)


LARGE = (1, 300, 64, 64)
"""More elements than are drawn one by one."""


def large(operator: str, **recipes: str) -> Case:
    return Case.of(operator=operator, shape=LARGE, dtype="float16", kernel_size=(2,), stride=(1,), **recipes)


@pytest.mark.parametrize("recipe", ["ties", "after_relu", "infinities"])
def test_no_two_planes_of_a_large_tensor_are_alike_nor_those_before_and_behind_an_offset(recipe: str) -> None:
    """What `huge` is for: a kernel that reads at an offset cut to 20 bits reads something else."""
    values = make_operands(large("MaxPool2dWithMask", values=recipe)).values.view(np.uint16)
    planes = values.reshape(300, -1)
    assert len(np.unique(planes, axis=0)) == 300
    flat, behind = values.ravel(), 1 << 20
    assert (flat[behind:] != flat[: flat.size - behind]).mean() > 0.4


def test_gradients_of_a_large_tensor_are_those_of_their_recipe() -> None:
    drawn = make_operands(large("MaxPool2dWithIndicesBackward", gradient="integers", indices="in_window"))
    assert drawn.gradient is not None
    terms = np.abs(drawn.terms)
    assert np.bincount(drawn.landing.cells, terms).max() <= FLOAT16.largest_exact_integer
    assert (terms != 0.0).all() and len(np.unique(drawn.gradient.reshape(300, -1), axis=0)) == 300


def test_beyond_a_size_elements_are_those_of_a_table_unless_they_depend_on_their_place() -> None:
    def drawn(name: str, size: int) -> np.ndarray:
        return draw_values(name, size, FLOAT32, RandomStream(1, "values"))

    repeated, distinct = (len(np.unique(drawn("negative", streams.MAX_DRAWN + more))) for more in (1, 0))
    assert repeated <= streams.TABLE < distinct
    assert (np.diff(drawn("ascending", streams.MAX_DRAWN + 100)) == 1.0).all()
    assert (np.diff(drawn("descending", streams.MAX_DRAWN + 100)) == -1.0).all()
