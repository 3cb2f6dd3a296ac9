"""Standards: a name, a source, and one rule on `Deviations`.

A standard never decides the suite's verdict; its answer stands beside the interval's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from poolproof.references.deviations import Bool, Deviations
from poolproof.references.formats import Float64

Thresholds = Mapping[str, float]
"""A threshold per dtype, including the texts' dtypes that no operator of the family has (HiF32, the 8-bit ones)."""

_DTYPES = ("float16", "bfloat16", "float32", "hifloat32", "float8_e4m3", "float8_e5m2")


def by_dtype(*values: float) -> Thresholds:
    """Make thresholds from the columns of a text's table: float16, bfloat16, float32, HiF32, E4M3, E5M2."""
    return dict(zip(_DTYPES, values, strict=True))


Specials = Literal["silent", "elements", "unseen"]
"""What a text says about NaN and infinities.

``silent``: nothing. A golden value that is not finite leaves the standard without an answer; an output that is not
finite where it should be has an infinite error.
``elements``: an element is right if both are NaN or the same infinity, and counts as one wrong element otherwise.
``unseen``: a case with a golden value that is not finite passes without a look at it.
"""


@dataclass(frozen=True, kw_only=True)
class Standard(ABC):
    """One rule, named.

    ``name`` is unique, in lower case, with its edition; ``source`` says where its thresholds and its formula were
    read; ``note`` names an ambiguity or a hole for whoever meets it in a contract.
    """

    name: str
    source: str
    note: str = ""
    specials: Specials = "silent"

    @abstractmethod
    def judge(self, deviations: Deviations) -> bool | None:
        """Judge one output tensor; None where the rule does not apply. An empty tensor passes every rule."""


def leaves_unanswered(deviations: Deviations, specials: Specials) -> bool:
    """Check for golden values that are not finite, where the text says nothing about them, or passes the case unseen.

    They are those that are not finite when rounded to the output's format, overflow included.
    """
    return specials != "elements" and not np.isfinite(deviations.rounded).all()


def agree(errors: Float64, within: Bool) -> Bool:
    """Accept elements without an error, or with a finite one ``within`` tolerance: an infinite one admits nothing."""
    return (errors == 0.0) | (within & np.isfinite(errors))


def count_true(mask: Bool) -> int:
    return int(np.count_nonzero(mask))


def share(mask: Bool, among: Bool | None = None) -> float:
    """Return the share of true elements, relative to those of ``among`` or to all; zero of nothing."""
    size = mask.size if among is None else count_true(among)
    return count_true(mask) / size if size else 0.0


def largest(values: Float64) -> float:
    """Return the maximum, NaN if any value is; zero of nothing."""
    return float(values.max()) if values.size else 0.0


def mean(values: Float64) -> float:
    return float(values.sum() / values.size) if values.size else 0.0


def root_mean_square(values: Float64) -> float:
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.dot(values, values) / values.size)) if values.size else 0.0
