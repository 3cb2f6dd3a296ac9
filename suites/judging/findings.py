"""Findings: the element that breaks a check's claim, its expected and actual value, and the windows that reach it.

`mismatch` writes the message of every check, so that all are alike. Only a failure needs this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.references.accumulation import ALL_MODELS
from poolproof.references.criterion import admissible
from poolproof.references.formats import Float64
from poolproof.references.geometry import Int64
from poolproof.references.kernels.numbers import NO_LATTICE
from poolproof.references.kernels.sums import ExactSums
from poolproof.references.summary import summarise
from poolproof.reports.rows.failures import MAX_GUESSED
from poolproof.reports.rows.rejudge import LATTICE, expected, number
from poolproof.suites.judging.cells import REJECTED, CellChunks
from poolproof.suites.judging.chunks import array_chunks
from poolproof.suites.judging.trial import Trial

_MAX_WINDOWS = 6

Element = tuple[int, ...]
"""Coordinates of an element in its tensor."""


@dataclass(frozen=True)
class Mismatch:
    """How a claim is broken.

    Attributes:
        wrong: Number of deviating elements, of ``judged`` ones.
        element: Coordinates of the worst one in its tensor, or of the first if none is worse.
        expected: Its expected value, as text; ``got`` is the actual one.
        windows: Output coordinates of the windows that reach it.
        accounted: All writes outside of the outputs' elements are in their storage, which has a place for every
            element.
    """

    message: str
    wrong: int = 0
    judged: int = 0
    element: Element | None = None
    expected: str = ""
    got: str = ""
    windows: tuple[Element, ...] = ()
    accounted: bool = False


@dataclass(frozen=True)
class Finding:
    """A mismatch, and the check with the broken claim."""

    check: str
    mismatch: Mismatch

    def to_record(self) -> dict[str, Any]:
        """Return the record of the column ``findings``."""
        return {"check": self.check} | asdict(self.mismatch)


def mismatch(
    subject: str,
    got: object,
    expected: object,
    reason: str = "",
    *,
    wrong: NDArray[np.bool_] | None = None,
    judged: int | None = None,
    noun: str = "elements",
    place: str = "",
    element: Element | None = None,
    windows: Sequence[Element] = (),
    guess: str = "",
) -> Mismatch:
    """Return the mismatch of ``subject``, which ``got`` one value where another is ``expected``.

    ``reason`` explains the right value, ``guess`` the wrong one. ``wrong`` marks the deviating elements, called
    ``noun``, of ``judged`` ones (all, if None), in ``place``. If ``element`` is not the first of them, the message also
    names the first.
    """
    right_text, got_text = _text(expected), _text(got)
    parts = [f"{subject}: got {got_text}, expected {right_text}{f', {reason}' if reason else ''}"]
    count, among = (0, 0) if wrong is None else (int(wrong.sum()), wrong.size if judged is None else judged)
    if wrong is not None:
        first = first_element(wrong)
        elsewhere = element is not None and len(element) == len(first) and element != first
        parts.append(
            f"{count} of {among} {noun} are wrong{place}{f', the first at {list(first)}' if elsewhere else ''}"
        )
    message = "; ".join([*parts, *([guess] if guess else [])])
    return Mismatch(message, count, among, element, right_text, got_text, tuple(windows))


def first_element(wrong: NDArray[np.bool_]) -> Element:
    return _coordinates(int(wrong.argmax()), wrong.shape)


def wrong_cells(trial: Trial, wrong: NDArray[np.bool_], judged: int) -> Mismatch | None:
    """Return the worst of the ``wrong`` flat cells of grad_input, with its windows; None if none is wrong."""
    if not wrong.any():
        return None
    case = trial.case
    cell = trial.cells.worst(wrong)
    chunk = trial.cells.around(cell)
    element = _coordinates(cell, case.shape)
    senders = trial.operands.senders(cell)
    decoded = "; ".join(fault.text(case) for fault in trial.faults if fault.shows_in(cell))
    return mismatch(
        element_text("grad_input", element),
        chunk.outputs[cell - chunk.cells.start],
        expected_text(trial.cells, cell),
        _senders_text(trial, senders),
        wrong=wrong.reshape(case.shape),
        judged=judged,
        noun="cells",
        place=_end_with(wrong.reshape(case.planes, *case.shape[-case.api.spatial_rank :])),
        element=element,
        windows=[_coordinates(sender, case.pooled_shape) for sender in senders[:_MAX_WINDOWS]],
        guess="; ".join(filter(None, (decoded or explain(trial, cell, senders), _as_all_of_it(trial, cell)))),
    )


def _end_with(wrong: NDArray[np.bool_]) -> str:
    """Return the ends of axes that hold all wrong cells of (planes, *spatial), as text; empty for a single cell."""
    names = ("plane", *("slice", "row", "column")[1 - wrong.ndim :])
    ends = []
    for axis, (name, size) in enumerate(zip(names, wrong.shape, strict=True)):
        held = np.flatnonzero(wrong.any(axis=tuple(other for other in range(wrong.ndim) if other != axis)))
        if len(held) == 1 < size and held[0] in (0, size - 1):
            ends.append(f"the {'last' if held[0] else 'first'} {name}")
    return f", all in {' and '.join(ends)}" if ends and wrong.sum() > 1 else ""


def _as_all_of_it(trial: Trial, cell: int) -> str:
    """Return another way to add that explains all of grad_input, as text; empty if none does, or for large cases.

    A model that does not explain the wrong ``cell`` is not tried on the others.
    """
    if trial.case.planes * trial.case.plane_size > MAX_GUESSED:
        return ""
    if _is_stored(trial):
        return "all of it would be right if gradients were to be stored in place of added"
    chunk, chunks = trial.cells.around(cell), [*trial.operands.chunks(trial.baseline.output("grad_input"))]
    own = slice(cell - chunk.cells.start, cell - chunk.cells.start + 1)
    sums, output = ExactSums._make(fact[own] for fact in chunk.sums), chunk.outputs[own]
    for model in ALL_MODELS:
        if model == trial.model or not admissible(sums, trial.fmt, model).accepts(output).all():
            continue
        if not summarise(chunks, trial.case.plane_size, trial.fmt, model).tally.rejected:
            return f"declared {trial.model}; all of it would be right as {model}"
    return ""


def _is_stored(trial: Trial) -> bool:
    """Tell whether each cell has one of the gradients that belong there, and not their sum."""
    tensors = (trial.baseline.output("grad_input"), trial.operands.gradient, trial.operands.indices)
    outputs, gradients, indices = (tensor.reshape(trial.case.planes, -1) for tensor in tensors)
    planes, windows = np.nonzero((indices >= 0) & (indices < trial.case.plane_size))
    cells = planes, indices[planes, windows]
    holds_one = outputs == 0
    holds_one[cells] = False
    np.logical_or.at(holds_one, cells, outputs[cells] == gradients[planes, windows])
    return bool(holds_one.all())


def expected_text(cells: CellChunks, cell: int) -> str:
    """Return the admissible outputs of a cell as text: ``3.5``, ``[1, 1.25] in steps of 2**-3``, ``65504 or inf``."""
    chunk = cells.around(cell)
    admissible, cell = chunk.admissible, cell - chunk.cells.start
    lattice = admissible.lattice[cell : cell + 1]
    flags = admissible.specials[cell : cell + 1] | np.where(lattice == NO_LATTICE, 0, LATTICE)
    low, high = admissible.low[cell : cell + 1], admissible.high[cell : cell + 1]
    return expected({"low": low, "high": high, "flags": flags, "lattice": lattice}, (0,))


def _text(value: object) -> str:
    if isinstance(value, np.integer) or not isinstance(value, (float, np.generic)):
        return str(value)
    return number(float(value))


def explain(trial: Trial, cell: int, senders: np.ndarray) -> str:
    """Guess the cause from the size of the error; empty if nothing fits.

    The difference to the exact sum may be a gradient that was lost, misrouted or added twice. Or it is a gradient that
    belongs elsewhere, in any plane, and was sent here instead or added here as well.
    """
    chunk = trial.cells.around(cell)
    got, exact = (float(numbers[cell - chunk.cells.start]) for numbers in (chunk.outputs, chunk.sums.sum))
    if not np.isfinite(got) or not all(np.isfinite(terms).all() for (terms,) in array_chunks(trial.operands.gradient)):
        return ""
    difference = got - exact
    if got == 0.0 and len(senders) > 1:
        return f"as if every contribution {_gone(trial, cell, exact) or 'were lost'}"
    windows = trial.case.plane_windows
    plane, cell_of_plane = divmod(cell, trial.case.plane_size)
    indices = trial.operands.indices.reshape(-1)[plane * windows : (plane + 1) * windows]
    same = np.flatnonzero(trial.operands.indices.reshape(-1) == cell_of_plane)  # in any plane
    elsewhere = np.append(plane * windows + np.flatnonzero(indices != cell_of_plane), same[same // windows != plane])
    for text, candidates, wanted in (
        ("lost", senders, -difference),
        ("added twice", senders, difference),
        ("sent here", elsewhere, difference),
    ):
        match = candidates[_terms(trial, candidates) == wanted] if wanted else candidates[:0]
        if len(match):
            window = list(_coordinates(match[0], trial.case.pooled_shape))
            also = f" (or one of {len(match) - 1} others of that value)" if len(match) > 1 else ""
            went = (text == "lost" and _gone(trial, cell, wanted)) or f"were {text}"
            if text == "sent here":
                went = "had been added as well" if _arrived(trial, match[0]) else f"{went} instead"
            return f"as if grad_output{window} = {number(wanted)} {went}{also}"
    return ""


def _arrived(trial: Trial, window: int) -> bool:
    """Tell whether the cell where a gradient belongs has an admissible value."""
    plane, index = window // trial.case.plane_windows, int(trial.operands.indices.reshape(-1)[window])
    return index in range(size := trial.case.plane_size) and not trial.cells.flags[plane * size + index] & REJECTED


def _gone(trial: Trial, cell: int, missing: float) -> str:
    """Return which cell has too much what another lacks: the nearest unreached one, or else the nearest wrong one."""
    chunk = trial.cells.around(cell)
    with np.errstate(invalid="ignore"):
        surplus = np.flatnonzero(chunk.outputs - chunk.sums.sum == missing)
    if not missing or not len(surplus):
        return ""
    nearest = min(surplus.tolist(), key=lambda other: (chunk.sums.k[other] > 0, abs(other + chunk.cells.start - cell)))
    return f"had gone to {element_text('grad_input', _coordinates(nearest + chunk.cells.start, trial.case.shape))}"


def _terms(trial: Trial, windows: Int64) -> Float64:
    return trial.operands.gradient.reshape(-1)[windows].astype(np.float64)


def _senders_text(trial: Trial, senders: np.ndarray) -> str:
    if not len(senders):
        return "no window reaches it"
    first = senders[:_MAX_WINDOWS]
    places = (list(_coordinates(sender, trial.case.pooled_shape)) for sender in first)
    shown = [f"{place}={number(term)}" for place, term in zip(places, _terms(trial, first), strict=True)]
    more = f" and {len(senders) - _MAX_WINDOWS} more" if len(senders) > _MAX_WINDOWS else ""
    return f"the sum ({trial.model}) of {len(senders)}: grad_output{', '.join(shown)}{more}"


def element_text(name: str, element: Sequence[int]) -> str:
    return f"{name}{list(map(int, element))}"


def _coordinates(number: int, shape: tuple[int, ...]) -> Element:
    return tuple(map(int, np.unravel_index(number, shape)))
