"""Cases whose gradients are drawn one by one, so that a search can steer them to the largest error."""

from __future__ import annotations

from poolproof.references.formats import FORMATS
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive, Lengths, Windowed, Windows, per_kind
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import Draws, composite

TERMS = (2, 3, 5, 9, 17, 33)
"""Gradients that meet in one cell: the fewest of each class of a row's ``k_error``, from the second on."""


@composite
def literal_gradients(draw: Draws, operator: Operator, dtype: str, index_dtype: str, terms: int) -> Case:
    """Draw a case of a backward in which ``terms`` windows along one axis send their gradients to one cell.

    Each gradient is a number in [1, 2) with all bits of ``dtype``, drawn as one integer. Some cases have gradients of
    both signs, which may cancel. Some have a scale at which what is left of them is subnormal. ``self`` has one
    maximum, so the indices follow from it, and the case suits implementations that find them themselves.
    """
    fmt = FORMATS[dtype]
    axis = operator.spatial_rank - 1 - draw(operator.spatial_rank)
    deterministic, is_signed = draw.flip(), draw.flip()
    scale = draw.choose((0, fmt.min_exponent))
    numbers = 1 << (fmt.precision - 1)
    drawn = [draw(numbers << is_signed) for _ in range(terms)]
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
            ("grad_output", tuple((1 + number % numbers / numbers) * (-1) ** (number // numbers) for number in drawn)),
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
