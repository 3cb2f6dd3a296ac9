"""Forward rules: which cell of a window an implementation takes, where implementations differ.

Every rule takes a greatest value. Rules differ in ties, in NaN, in windows of only -inf, and in whether subnormal
numbers count as zero. An implementation declares its rule and is judged by it. No rule allows an index outside the
window, or an index of another value than the output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from poolproof.references.text_enum import TextEnum


class Ties(TextEnum):
    """Which of several equal maxima wins; the cells of a window are visited in row-major order.

    ``shared`` and ``all`` describe backwards that find the maxima themselves. ``shared`` gives each maximum an equal
    part of the gradient, ``all`` gives each the whole. Neither is judged at ties. Their forward takes the first.
    """

    FIRST = "first"
    LAST = "last"
    ANY = "any"
    SHARED = "shared"
    ALL = "all"

    @property
    def takes_several(self) -> bool:
        """Whether the gradient of one window goes to several cells."""
        return self in (Ties.SHARED, Ties.ALL)


class Nans(TextEnum):
    """How NaN in a window is treated.

    - ``last``, ``first``, ``any``: this NaN wins over all numbers.
    - ``leading``: NaN wins in the first cell of the window; other NaN are ignored.
    - ``yielding``: NaN replaces the maximum, and the next cell replaces NaN, as in ``max >= value ? max : value``.
    - ``ignored``: only numbers count.
    """

    LAST = "last-nan"
    FIRST = "first-nan"
    ANY = "any-nan"
    LEADING = "leading-nan"
    YIELDING = "yielding-nan"
    IGNORED = "no-nan"


class Nothing(TextEnum):
    """The initial running maximum and its index, which a window yields if nothing replaces it.

    - ``cell``: -inf, and the window's first cell.
    - ``none``: -inf, and the index -1.
    - ``lowest``: the lowest finite number, and the index -1.
    - ``origin`` and ``lowest-origin``: as ``none`` and ``lowest``, but with index 0, the plane's first cell.
    """

    CELL = "cell"
    NONE = "none"
    LOWEST = "lowest"
    ORIGIN = "origin"
    LOWEST_ORIGIN = "lowest-origin"

    @property
    def is_lowest(self) -> bool:
        """Whether the maximum is the lowest finite number instead of -inf."""
        return self in (Nothing.LOWEST, Nothing.LOWEST_ORIGIN)

    @property
    def place(self) -> int:
        """The index: 0 or -1. With ``cell``, each window has its own."""
        return 0 if self in (Nothing.ORIGIN, Nothing.LOWEST_ORIGIN) else -1


@dataclass(frozen=True)
class ForwardRule:
    """How a forward picks the index of each window.

    The defaults are the rule of torch (``DilatedMaxPool2d``: ``val > maxval || isnan(val)``). The operator library
    documents it as its own: a greater value, or NaN, replaces a running maximum that begins with -inf.

    Attributes:
        nothing: Result of a window in which nothing exceeds -inf.
        empty_is_lowest: A window without a cell yields the lowest finite number, not -inf. Its index is not judged.
        flushes_subnormals: Comparisons treat subnormal numbers as zero, as processors with FTZ and DAZ do.
    """

    ties: Ties = Ties.FIRST
    nans: Nans = Nans.LAST
    nothing: Nothing = Nothing.CELL
    empty_is_lowest: bool = False
    flushes_subnormals: bool = False

    def __str__(self) -> str:
        """Spell the rule as in options and rows: the traits that differ from `FAMILY_RULE`, or ``first``."""
        words = [
            word for word, (name, value) in TRAITS.items() if getattr(FAMILY_RULE, name) != getattr(self, name) == value
        ]
        return "+".join(words) or str(self.ties)

    @property
    def leaves_open(self) -> bool:
        """Whether several indices of one window may be right."""
        return self.ties is Ties.ANY or self.nans is Nans.ANY

    @classmethod
    def parse(cls, text: str) -> ForwardRule:
        """Read the spelling of ``str()``; ValueError names what is wrong."""
        read: dict[str, Any] = {}
        for word in text.split("+"):
            if word not in TRAITS:
                raise ValueError(f"forward rule {text!r}: {word!r} is none of {', '.join(TRAITS)}")
            name, value = TRAITS[word]
            if name in read:
                raise ValueError(f"forward rule {text!r} says two things about {name}")
            read[name] = value
        return cls(**read)


TRAITS: dict[str, tuple[str, Any]] = {
    **{str(trait): ("ties", trait) for trait in Ties},
    **{str(trait): ("nans", trait) for trait in Nans},
    **{str(trait): ("nothing", trait) for trait in Nothing},
    "lowest-if-empty": ("empty_is_lowest", True),
    "ftz": ("flushes_subnormals", True),
}

FAMILY_RULE = ForwardRule()
