"""Random numbers are numpy's, whoever draws them; of large tensors data are pieces of what was drawn."""

import functools
import hashlib

import numpy as np
import pytest

from poolproof.references.formats import FLOAT16, FLOAT32, FORMATS, FloatFormat
from poolproof.references.geometry import windowed_axis
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.memory import POISONS, as_bits, holds_poison
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.recipes import gradients
from poolproof.suites.cases.recipes import stream as streams
from poolproof.suites.cases.recipes.gradients import Landing
from poolproof.suites.cases.recipes.stream import RandomStream
from poolproof.suites.cases.recipes.values import draw_values


@pytest.mark.parametrize("at_once", [1, 1 << 16])
def test_the_largest_multiplicity_is_that_of_the_fullest_cell(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradients, "_AT_ONCE", at_once)
    axis = windowed_axis(9, 3, 1, 1, 1, False)
    indices = np.array([np.arange(9), np.clip(np.arange(9), 2, 8), np.clip(np.arange(9), 0, 7)])
    assert Landing(indices, 9, (axis,)).largest_multiplicity == 3
    assert Landing(indices[1:], 9, (axis,)).largest_multiplicity == 3
    assert Landing(indices[::2], 9, (axis,)).largest_multiplicity == 2
    assert Landing(indices[:1], 9, (axis,)).largest_multiplicity == 1
    assert Landing(indices[:0], 9, (axis,)).largest_multiplicity == 1


def test_numbers_are_those_of_numpys_philox_and_draws_follow_one_another() -> None:
    """Every kind takes one raw number for each element, normal values take twelve: all first ones before the second."""
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


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda fmt: fmt.name)
def test_nan_have_both_signs_and_many_payloads_and_are_quiet(fmt: FloatFormat) -> None:
    drawn = draw_values("nan", 4000, fmt, RandomStream(3, "values"))
    nan = drawn[np.isnan(drawn)]
    bits, quiet = as_bits(nan), as_bits(np.full(1, np.nan, fmt.dtype))
    assert (bits & quiet == quiet).all() and not holds_poison(nan, POISONS[0]).any()
    assert 0.4 < np.signbit(nan).mean() < 0.6 and quiet in bits and len(np.unique(bits)) > 50
