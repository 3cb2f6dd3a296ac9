"""Forward rules: which cell of a window an implementation takes, where implementations differ.

All of them take a greatest value. They differ in ties, in NaN, in windows of nothing but -inf, and in whether subnormal
numbers count as zero. An implementation declares its rule, and is judged by it. No rule excuses an index outside the
window, or one that points at another value than the output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from poolproof.references.text_enum import TextEnum


class Ties(TextEnum):
    """Which of several equal maxima is taken; the cells of a window are visited in row-major order.

    Of a backward that finds the maxima itself: ``shared``, each gets an equal part of the gradient; ``all``, each gets
    the whole. Neither is judged where there are ties; a forward's index is that of the first.
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
    """The treatment of NaN in a window.

    ``last``, ``first``, ``any``: one of them is taken, whatever else there is. ``leading``: NaN is taken in the first
    cell of the window, and nothing replaces it there; others are ignored. ``yielding``: NaN replaces whatever was, and
    is replaced by whatever comes next, as where a maximum stays only while it compares as not less. ``ignored``: the
    numbers decide.
    """

    LAST = "last-nan"
    FIRST = "first-nan"
    ANY = "any-nan"
    LEADING = "leading-nan"
    YIELDING = "yielding-nan"
    IGNORED = "no-nan"


class Nothing(TextEnum):
    """The initial running maximum, which a window yields where nothing replaces it.

    ``cell``: -inf and the window's first cell. ``none``: -inf and the index -1. ``lowest``: the lowest finite number
    and the index -1. ``origin`` and ``lowest-origin``: the same with the index 0, that of the plane's first cell.
    """

    CELL = "cell"
    NONE = "none"
    LOWEST = "lowest"
    ORIGIN = "origin"
    LOWEST_ORIGIN = "lowest-origin"

    @property
    def is_lowest(self) -> bool:
        """Whether it is the lowest finite number, not -inf."""
        return self in (Nothing.LOWEST, Nothing.LOWEST_ORIGIN)

    @property
    def place(self) -> int:
        """Its index; that of ``cell`` is each window's own."""
        return 0 if self in (Nothing.ORIGIN, Nothing.LOWEST_ORIGIN) else -1


@dataclass(frozen=True)
class ForwardRule:
    """How a forward picks the index of each window.

    ``nothing``: what a window gives in which nothing is greater than -inf. ``empty_is_lowest``: a window without a cell
    gives the lowest finite number instead of -inf; the rule does not judge its index. ``flushes_subnormals``:
    comparisons take subnormal numbers for zero, as processors with FTZ and DAZ do.
    The defaults are the rule of torch (``DilatedMaxPool2d``: ``val > maxval || isnan(val)``), which the operator
    library documents as its own: what is greater, or NaN, replaces a running maximum that begins with -inf.
    """

    ties: Ties = Ties.FIRST
    nans: Nans = Nans.LAST
    nothing: Nothing = Nothing.CELL
    empty_is_lowest: bool = False
    flushes_subnormals: bool = False

    def __str__(self) -> str:
        """Spell the rule as in options and rows: the traits that differ from those of the family, or ``first``."""
        words = [
            word
            for word, (name, value) in _TRAITS.items()
            if getattr(FAMILY_RULE, name) != getattr(self, name) == value
        ]
        return "+".join(words) or str(self.ties)

    @property
    def leaves_open(self) -> bool:
        """Whether more than one index of a window may be right."""
        return self.ties is Ties.ANY or self.nans is Nans.ANY

    @classmethod
    def parse(cls, text: str) -> ForwardRule:
        """Read the spelling of ``str()``; ValueError names what is wrong."""
        read: dict[str, Any] = {}
        for word in text.split("+"):
            if word not in _TRAITS:
                raise ValueError(f"forward rule {text!r}: {word!r} is none of {', '.join(_TRAITS)}")
            name, value = _TRAITS[word]
            if name in read:
                raise ValueError(f"forward rule {text!r} says two things about {name}")
            read[name] = value
        return cls(**read)


_TRAITS: dict[str, tuple[str, Any]] = {
    **{str(trait): ("ties", trait) for trait in Ties},
    **{str(trait): ("nans", trait) for trait in Nans},
    **{str(trait): ("nothing", trait) for trait in Nothing},
    "lowest-if-empty": ("empty_is_lowest", True),
    "ftz": ("flushes_subnormals", True),
}

FAMILY_RULE = ForwardRule()
