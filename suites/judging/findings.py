"""What a check says when it is not satisfied: which cell, what it was owed, what it got, and who sent it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from poolproof.references.criterion import Acceptance
from poolproof.references.oracle import NO_LATTICE
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.trial import Trial

_MOST_WINDOWS = 6


@dataclass(frozen=True)
class Finding:
    """One violated claim.

    ``wrong`` of ``judged`` elements deviate; ``element`` are the coordinates of the worst one in its tensor, with
    what it is ``owed`` and what it ``got``; ``windows`` the output coordinates that reach it.
    """

    check: str
    message: str
    wrong: int = 0
    judged: int = 0
    element: tuple[int, ...] | None = None
    owed: str = ""
    got: str = ""
    windows: tuple[tuple[int, ...], ...] = ()

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def value_finding(trial: Trial, check: str, wrong: np.ndarray, judged: int) -> Finding:
    """The finding for cells of grad_input (``wrong``: flat cell numbers) whose value is not admissible."""
    case, outputs = trial.case, trial.gradient_input
    cell = worst_cell(trial, wrong)
    element = unravel(case, cell)
    owed, got = owed_text(trial.acceptance, cell), format_value(outputs[cell])
    senders = np.flatnonzero(trial.content.landing.cells == cell)
    windows = [tuple(map(int, np.unravel_index(sender, case.pooled_shape))) for sender in senders]
    message = (
        f"grad_input{list(element)} is {got}, owed {owed}; {_senders_text(trial, senders)}; "
        f"{len(wrong)} of {judged} cells are wrong"
    )
    guess = "; ".join(fault.text(case) for fault in trial.faults if fault.shows_in(cell)) or explain(
        trial, cell, senders
    )
    if guess:
        message += f"; {guess}"
    return Finding(check, message, len(wrong), judged, element, owed, got, tuple(windows[:_MOST_WINDOWS]))


def worst_cell(trial: Trial, wrong: np.ndarray) -> int:
    """Of the wrong cells the one farthest from its exact sum in ulps; a non-finite deviation comes first."""
    sums, outputs = trial.content.sums.sum[wrong], trial.gradient_input[wrong]
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(outputs - sums) / trial.fmt.ulp(sums)
    distance = np.where(np.isfinite(distance), distance, np.inf)
    return int(wrong[distance.argmax()])


def unravel(case: Case, cell: int) -> tuple[int, ...]:
    """Coordinates of a flat cell number in ``self``."""
    return tuple(map(int, np.unravel_index(cell, case.shape)))


def owed_text(acceptance: Acceptance, cell: int) -> str:
    """The admissible outputs of one cell in words: ``3.5``, ``[1, 1.25] in steps of 2**-3``, ``65504 or inf``."""
    low, high = float(acceptance.low[cell]), float(acceptance.high[cell])
    parts = []
    if low == high:
        parts.append(format_value(low))
    elif low < high:
        lattice = int(acceptance.lattice[cell])
        steps = "" if lattice == NO_LATTICE else f" in steps of 2**{lattice}"
        parts.append(f"[{format_value(low)}, {format_value(high)}]{steps}")
    for flag, word in (("positive_infinity", "inf"), ("negative_infinity", "-inf"), ("nan", "nan"), ("zero", "0")):
        if getattr(acceptance, flag)[cell] and word not in parts:
            parts.append(word)
    return " or ".join(parts)


def format_value(value: float) -> str:
    """Shortest decimal that reads back as the same float64, without a trailing .0."""
    text = repr(float(value))
    return text.removesuffix(".0")


def explain(trial: Trial, cell: int, senders: np.ndarray) -> str:
    """A guess at the cause from the size of the error, empty when nothing fits.

    Reads the difference to the exact sum as one gradient lost, added twice, or sent here though it belongs elsewhere.
    """
    gradient = trial.content.gradient
    assert gradient is not None
    terms = gradient.ravel()
    got, exact = trial.gradient_input[cell], trial.content.sums.sum[cell]
    if not np.isfinite(got) or not np.isfinite(terms).all():
        return ""
    difference = got - exact
    if got == 0.0 and len(senders) > 1:
        return "as if every contribution were lost"
    for text, candidates, wanted in (
        ("lost", senders, -difference),
        ("added twice", senders, difference),
        ("sent here instead", _others(trial, cell), difference),
    ):
        match = candidates[terms[candidates] == wanted] if wanted else candidates[:0]
        if len(match):
            window = list(map(int, np.unravel_index(match[0], trial.case.pooled_shape)))
            also = f" (or one of {len(match) - 1} others of that value)" if len(match) > 1 else ""
            return f"as if grad_output{window} = {format_value(terms[match[0]])} were {text}{also}"
    return ""


def _others(trial: Trial, cell: int) -> np.ndarray:
    """Gradients of the same plane that belong into other cells."""
    plane = int(np.prod(trial.case.spatial_shape))
    cells = trial.content.landing.cells
    return np.flatnonzero((cells // plane == cell // plane) & (cells != cell))


def _senders_text(trial: Trial, senders: np.ndarray) -> str:
    if not len(senders):
        return "no window reaches it"
    gradient = trial.content.gradient
    assert gradient is not None
    terms = gradient.ravel()
    shown = [
        f"{list(map(int, np.unravel_index(sender, trial.case.pooled_shape)))}={format_value(terms[sender])}"
        for sender in senders[:_MOST_WINDOWS]
    ]
    more = f" and {len(senders) - _MOST_WINDOWS} more" if len(senders) > _MOST_WINDOWS else ""
    return f"the sum ({trial.model}) of {len(senders)}: grad_output{', '.join(shown)}{more}"


def element_text(name: str, element: Sequence[int]) -> str:
    return f"{name}{list(map(int, element))}"
