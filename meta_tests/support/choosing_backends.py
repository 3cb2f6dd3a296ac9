"""Backwards that take no indices and look for the maxima themselves; any of the tied will do."""

from __future__ import annotations

import numpy as np

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import Call
from poolproof.references.forward import forward_maximum, window_cells
from poolproof.references.forward_rule import ForwardRule
from poolproof.references.operators import Operator
from scatter import Scatter, axes_of, planes_of

ANY = ForwardRule.parse("any+any-nan")


class Choosing(Scatter):
    """Takes another one of the tied cells from window to window."""

    declared = ANY

    def abilities(self, operator: Operator) -> Abilities:
        return Abilities(indices=False)

    def forward_rule(self, call: Call) -> ForwardRule:
        return self.declared

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        return super().unsupported(operator, dtype, index_dtype) if operator.is_backward else "no forwards"

    def route_terms(self, call: Call, cells: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        planes, axes = planes_of(call), axes_of(call)
        maxima, _ = forward_maximum(planes, axes)
        taps, valid = window_cells(axes)
        size = int(np.prod(planes.shape[1:]))
        flat = planes.reshape(len(planes), size)
        routed = [
            (plane * size + cell, share)
            for plane, row in enumerate(maxima.reshape(len(planes), len(taps)))
            for window, maximum in enumerate(row)
            for cell, share in self.sent(
                _tied(flat[plane], taps[window][valid[window]], maximum), window, terms[plane * len(row) + window]
            )
        ]
        if not routed:
            return np.zeros(0, np.int64), terms[:0]
        return np.array([cell for cell, _ in routed]), np.array([share for _, share in routed], terms.dtype)

    def sent(self, tied: np.ndarray, window: int, term: float) -> list[tuple[int, float]]:
        """(cell, gradient) of one window."""
        return [(int(tied[window % len(tied)]), term)]


def _tied(plane: np.ndarray, taps: np.ndarray, maximum: float) -> np.ndarray:
    values = plane[taps].astype(np.float64)
    return taps[np.isnan(values) if np.isnan(float(maximum)) else values == float(maximum)]


class Twice(Choosing):
    """Every one of the tied gets the whole gradient."""

    def sent(self, tied: np.ndarray, window: int, term: float) -> list[tuple[int, float]]:
        return [(int(cell), term) for cell in tied]


class Split(Choosing):
    """The tied share the gradient."""

    def sent(self, tied: np.ndarray, window: int, term: float) -> list[tuple[int, float]]:
        return [(int(cell), term / len(tied)) for cell in tied]


class Beside(Choosing):
    """The first window's gradient goes to the plane's first cell, which is no maximum of it, or the second."""

    def sent(self, tied: np.ndarray, window: int, term: float) -> list[tuple[int, float]]:
        if window == 0:
            return [(next(cell for cell in range(len(tied) + 1) if cell not in tied), term)]
        return super().sent(tied, window, term)


class Lost(Choosing):
    """Gradients of windows with ties do not arrive."""

    def sent(self, tied: np.ndarray, window: int, term: float) -> list[tuple[int, float]]:
        return [] if len(tied) > 1 else super().sent(tied, window, term)


class DeclaresFirst(Choosing):
    """Takes any, and says that it is the first."""

    declared = ForwardRule.parse("first")
