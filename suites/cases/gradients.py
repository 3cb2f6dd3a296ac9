"""Cases with gradients drawn one by one, so that a search can steer them to the largest error."""

from __future__ import annotations

from poolproof.references.formats import FORMATS
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive, Lengths, Windowed, Windows, per_kind
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import Draws, composite

TERMS = (2, 3, 5, 9, 17, 33)
"""Gradients that meet in one cell: the fewest of each class of a row's ``k_error``, from the second on."""

_STEPS = 10
"""Bits of a drawn gradient. A longer significand has them at both ends, or its sums would be exact."""


@composite
def literal_gradients(draw: Draws, operator: Operator, dtype: str, index_dtype: str, terms: int) -> Case:
    """Draw a case of a backward in which ``terms`` windows along one axis send their gradients to one cell.

    Each gradient is drawn as one integer, which a search can raise step by step: a number in [1, 2) without rounding.
    Half of the cases have positive gradients only. In the others some may cancel, in half of these to subnormal
    numbers. ``self`` has one maximum, so the indices follow from it, and the case suits implementations that find them
    themselves.
    """
    fmt = FORMATS[dtype]
    axis = operator.spatial_rank - 1 - draw(operator.spatial_rank)
    deterministic = draw.flip()
    signs, scale = draw.choose(((1, 0), (1, 0), (2, 0), (2, fmt.min_exponent)))
    bits = min(_STEPS, fmt.precision - 1)
    drawn = [divmod(draw(signs << bits), 1 << bits) for _ in range(terms)]
    ends = 2.0**-bits + (2.0 ** (1 - fmt.precision) if bits < fmt.precision - 1 else 0.0)
    beside, windows = _MEETING[operator.windows](_along(axis, terms, operator.spatial_rank), terms)
    return Case(
        operator=operator.name,
        shape=(1, 1, *_along(axis, 2 * beside + 1, operator.spatial_rank)),
        dtype=dtype,
        index_dtype=index_dtype,
        attributes=windows,
        scale=scale,
        deterministic=deterministic,
        literals=(
            ("grad_output", tuple((-1) ** sign * (1.0 + number * ends) for sign, number in drawn)),
            ("self", (*(0,) * beside, 1, *(0,) * beside)),
        ),
    )


def _along(axis: int, length: int, rank: int) -> Lengths:
    return tuple(length if number == axis else 1 for number in range(rank))


def _overlapping(lengths: Lengths, terms: int) -> tuple[int, Windows]:
    """Lay windows one cell apart, of which each has the middle cell."""
    return terms - 1, Windowed(lengths, (1,), (0,), (1,))


def _all_alike(lengths: Lengths, terms: int) -> tuple[int, Windows]:  # noqa: ARG001
    """Lay all windows on the only cell."""
    return 0, Adaptive(lengths)


_MEETING = per_kind("way to meet", {Windowed: _overlapping, Adaptive: _all_alike})
"""How many cells are on both sides of that where all windows meet, and the windows."""
