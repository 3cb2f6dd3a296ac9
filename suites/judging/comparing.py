"""What the runs of a trial are held against one another by: the first element, bit or byte that differs, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Tensor
from poolproof.references.formats import Float64
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


def holds_poison(run: Run, name: str, poison: int) -> NDArray[np.bool_]:
    """Which elements of an output still hold the poison bit for bit."""
    output = np.ascontiguousarray(run.output(name))
    if output.size == 0:
        return np.zeros(output.shape, bool)
    return (output.view(np.uint8).reshape(*output.shape, output.itemsize) == poison).all(axis=-1)


def other_bits(trial: Trial, other: Run, how: str) -> Mismatch | None:
    """The first element whose bits differ between another run, made ``how``, and the first."""
    for name in trial.case.api.outputs:
        got, owed = (trial.case.known(name, np.ascontiguousarray(run.output(name))) for run in (other, trial.first))
        found = wrong_element(name, _bits(got) != _bits(owed), got, owed, how, "as the first call gave")
        if found:
            return found
    return None


def other_values(trial: Trial, run: Run, right: Run, how: str = "", because: str = "") -> Mismatch | None:
    """The first element of a run, made ``how``, whose value is not that of another, where the criterion owes bits."""
    for name in trial.case.api.outputs:
        if name not in trial.case.api.strided:
            continue
        got, owed = (made.output(name).astype(np.float64) for made in (run, right))
        wrong = differs(got, owed)
        if trial.case.api.is_backward:
            wrong &= trial.owes_bits.reshape(got.shape)
        found = wrong_element(name, wrong, got, owed, how, because)
        if found:
            return found
    return None


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    return array.view(f"u{array.itemsize}")


def changed_bytes(
    name: str, tensor: Tensor, before: NDArray[np.uint8], changed: NDArray[np.bool_], because: str
) -> Mismatch | None:
    """The first byte of a tensor's memory that was written and should not have been; None where none was."""
    if not changed.any():
        return None
    byte = int(changed.argmax())
    subject = f"byte {_place_text(byte, tensor.guard, len(tensor.buffer))} of {name}"
    return mismatch(subject, tensor.buffer[byte], before[byte], because, wrong=changed, noun="bytes")


def _place_text(byte: int, guard: int, length: int) -> str:
    if byte < guard:
        return f"{guard - byte} before the storage"
    if byte >= length - guard:
        return f"{byte - (length - guard)} past the storage"
    return f"{byte - guard} in the storage"
