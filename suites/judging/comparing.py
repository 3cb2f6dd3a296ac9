"""What the runs of a trial are held against one another by: the first element, bit or byte that differs, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Tensor
from poolproof.references.formats import Float64
from poolproof.suites.cases.memory import SURROUNDINGS, as_bits, element_bytes, has_gaps
from poolproof.suites.judging.findings import Element, Mismatch, element_text, first_element, mismatch
from poolproof.suites.judging.trial import Run, Trial


def differs(first: Float64, second: Float64) -> NDArray[np.bool_]:
    """Where two results differ in value; NaN payloads and signs of zero do not count."""
    return (first != second) & ~(np.isnan(first) & np.isnan(second))


def wrong_window(
    trial: Trial, name: str, wrong: NDArray[np.bool_], got: NDArray[Any], owed: NDArray[Any] | str
) -> Mismatch | None:
    """The first output of a forward that is wrong, with the window it belongs to; None where none is."""
    if not wrong.any():
        return None
    window = first_element(wrong)[-trial.case.api.spatial_rank :]
    visited = [
        axis.positions[number][axis.valid[number]].tolist()
        for axis, number in zip(trial.case.axes, window, strict=True)
    ]
    because = f"its window visits coordinates {' x '.join(map(str, visited))}"
    return wrong_element(name, wrong, got, owed, because=because, windows=(window,))


def wrong_element(
    name: str,
    wrong: NDArray[np.bool_],
    got: NDArray[Any],
    owed: NDArray[Any] | str,
    how: str = "",
    because: str = "",
    windows: Sequence[Element] = (),
) -> Mismatch | None:
    """The first element of a tensor, made ``how``, that is wrong; None where none is."""
    if not wrong.any():
        return None
    element = first_element(wrong)
    right = owed if isinstance(owed, str) else owed[element]
    subject = f"{element_text(name, element)} {how}".rstrip()
    return mismatch(subject, got[element], right, because, wrong=wrong, element=element, windows=windows)


_SLAB = 1 << 16
"""Elements that are gone through at a time: what they take stays in the cache."""


def _slabs(*arrays: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Corresponding parts, flat, of arrays of one shape, in the order in which they lie in memory."""
    parts = np.nditer(arrays, ("external_loop", "buffered", "zerosize_ok"), order="K", buffersize=_SLAB)
    for part in parts:
        yield part if len(arrays) > 1 else (part,)  # type: ignore[misc]  # numpy's stubs know tuples only


def anywhere(
    test: Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]], first: NDArray[Any], second: NDArray[Any]
) -> bool:
    """Whether ``test`` finds something in two arrays of one shape, which it is given a slab at a time."""
    if first.size <= _SLAB:
        return bool(test(first, second).any())
    return any(bool(test(*slabs).any()) for slabs in _slabs(first, second))


def other_bits(trial: Trial, other: Run, how: str) -> Mismatch | None:
    """The first element whose bits differ between another run, made ``how``, and the first."""
    for name in trial.case.api.outputs:
        got, owed = (trial.case.known(name, run.output(name)) for run in (other, trial.first))
        if anywhere(np.not_equal, as_bits(got), as_bits(owed)):
            return wrong_element(name, as_bits(got) != as_bits(owed), got, owed, how, "as the first call gave")
    return None


def other_values(trial: Trial, run: Run, right: Run, how: str = "", because: str = "") -> Mismatch | None:
    """The first element of a run, made ``how``, whose value is not that of another, where the criterion owes bits."""
    for name in trial.case.api.outputs:
        if name not in trial.case.api.strided:
            continue
        outputs = run.output(name), right.output(name)
        if not anywhere(_other_value, *outputs):
            continue
        got, owed = (output.astype(np.float64) for output in outputs)
        wrong = differs(got, owed)
        if trial.case.api.is_backward:
            wrong &= trial.owes_bits.reshape(got.shape)
        found = wrong_element(name, wrong, got, owed, how, because)
        if found:
            return found
    return None


def _other_value(got: NDArray[Any], owed: NDArray[Any]) -> NDArray[np.bool_]:
    """`differs`, for which bits that are alike are enough."""
    other = as_bits(got) != as_bits(owed)
    return differs(got.astype(np.float64), owed.astype(np.float64)) if other.any() else other


def trespassed(tensor: Tensor) -> bool:
    """Whether something was written to a guard band of an output, or between its elements.

    There is something between them where the storage holds more bytes other than `SURROUNDINGS` than the elements do.
    """
    guard, end = tensor.guard, len(tensor.buffer) - tensor.guard
    if (tensor.buffer[:guard] != SURROUNDINGS).any() or (tensor.buffer[end:] != SURROUNDINGS).any():
        return True
    return has_gaps(tensor) and _others(tensor.storage) != _others(element_bytes(tensor))


def _others(memory: NDArray[np.uint8]) -> int:
    """How many bytes are not `SURROUNDINGS`."""
    return sum(int(np.count_nonzero(slab != SURROUNDINGS)) for (slab,) in _slabs(memory))


def changed_bytes(
    name: str, tensor: Tensor, before: NDArray[np.uint8], changed: NDArray[np.bool_], because: str
) -> Mismatch:
    """The first byte of a tensor's memory that was written and should not have been."""
    byte = int(changed.argmax())
    subject = f"byte {_place_text(byte, tensor.guard, len(tensor.buffer))} of {name}"
    return mismatch(subject, tensor.buffer[byte], before[byte], because, wrong=changed, noun="bytes")


def _place_text(byte: int, guard: int, length: int) -> str:
    if byte < guard:
        return f"{guard - byte} before the storage"
    if byte >= length - guard:
        return f"{byte - (length - guard)} past the storage"
    return f"{byte - guard} in the storage"
