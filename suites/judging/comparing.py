"""What the runs of a trial are held against one another by: the first element, bit or byte that differs, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Tensor, dtype_name
from poolproof.references.formats import Float64
from poolproof.suites.cases.memory import (
    POISONS,
    SURROUNDINGS,
    as_bits,
    element_bytes,
    guard_and_gap_mask,
    has_gaps,
    is_surrounded,
    meant,
)
from poolproof.suites.cases.operands import Contents
from poolproof.suites.judging.findings import Element, Mismatch, element_text, first_element, mismatch
from poolproof.suites.judging.slabs import anywhere, slabs, where
from poolproof.suites.judging.trial import Run, Trial


def differs(first: Float64, second: Float64) -> NDArray[np.bool_]:
    """Where two results differ in value; NaN payloads and signs of zero do not count."""
    other = first != second
    return other & ~(np.isnan(first) & np.isnan(second)) if np.count_nonzero(other) else other


def wrong_window(
    trial: Trial, name: str, wrong: NDArray[np.bool_], got: NDArray[Any], owed: NDArray[Any] | str, how: str = ""
) -> Mismatch | None:
    """The first output of a forward, made ``how``, that is wrong, with its window; None where none is."""
    if not wrong.any():
        return None
    window = first_element(wrong)[-trial.case.api.spatial_rank :]
    visited = [
        axis.positions[number][axis.valid[number]].tolist()
        for axis, number in zip(trial.case.axes, window, strict=True)
    ]
    because = f"its window visits coordinates {' x '.join(map(_spelled, visited))}"
    return wrong_element(name, wrong, got, owed, how, because, windows=(window,))


_MOST_COORDINATES = 8
"""Of a window along one axis that are told one by one."""


def _spelled(coordinates: list[int]) -> str:
    """The coordinates of a window along one axis, which lie evenly apart."""
    if len(coordinates) <= _MOST_COORDINATES:
        return str(coordinates)
    return f"[{coordinates[0]}, {coordinates[1]}, ..., {coordinates[-1]}]"


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


def other_shape(run: Run) -> Mismatch | None:
    """The first output that came back with another shape or dtype."""
    for name, (shape, dtype) in run.outcome.results.items():
        tensor = run.call.tensors[name]
        if (shape, dtype) != (tensor.shape, dtype_name(tensor.dtype)):
            given = f"{dtype_name(tensor.dtype)}{list(tensor.shape)}"
            return mismatch(f"{name} as it came back", f"{dtype}{list(shape)}", given)
    return None


def other_bits(trial: Trial, other: Run, how: str) -> Mismatch | None:
    """The first element whose bits differ between another run, made ``how``, and the first."""
    for name in trial.case.api.outputs:
        if not trial.has_bits_of_first(other, name):
            got, owed = (trial.known_output(name, run) for run in (other, trial.first))
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
        wrong = where(_other_value, *outputs)
        if trial.case.api.is_backward:
            wrong &= trial.owes_bits.reshape(wrong.shape)
        found = wrong_element(name, wrong, *outputs, how, because)
        if found:
            return found
    return None


def _other_value(got: NDArray[Any], owed: NDArray[Any]) -> NDArray[np.bool_]:
    """`differs`, for which bits that are alike are enough."""
    other = as_bits(got) != as_bits(owed)
    return differs(got.astype(np.float64), owed.astype(np.float64)) if np.count_nonzero(other) else other


def unchanged(trial: Trial, name: str) -> bool:
    """Whether all bytes of an input of the first run are seen to be as they were before it."""
    tensor, before = trial.first.call.tensors[name], trial.first.before.get(name)
    return untouched(tensor, trial.content, name) if before is None else tensor.buffer.tobytes() == before


def untouched(tensor: Tensor, content: Contents, name: str) -> bool:
    """Whether all bytes of an input of a first run are seen to be as they were; of one with gaps that is not seen."""
    elements = meant(content, name)
    if elements is None or not content.case.forms[name].is_dense:
        return False
    if not is_surrounded(tensor, POISONS[0]):
        return False
    pair = tensor.array, elements.reshape(tensor.shape)
    return not anywhere(np.not_equal, *(pair if name == "indices" else map(as_bits, pair)))


def trespassed(tensor: Tensor) -> bool:
    """Whether something was written to a guard band of an output, or between its elements.

    There is something between them where the storage holds more bytes other than `SURROUNDINGS` than the elements do.
    """
    if not is_surrounded(tensor, SURROUNDINGS):
        return True
    return has_gaps(tensor) and _others(tensor.storage) != _others(element_bytes(tensor))


def trespasses(tensor: Tensor) -> NDArray[np.bool_]:
    """Which bytes of an output's buffer were written that belong to no element."""
    written = guard_and_gap_mask(tensor)
    written &= tensor.buffer != SURROUNDINGS
    return written


def _others(memory: NDArray[np.uint8]) -> int:
    """How many bytes are not `SURROUNDINGS`."""
    return sum(int(np.count_nonzero(slab != SURROUNDINGS)) for (slab,) in slabs(memory))


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
