"""Accumulation models: how a kernel may add the gradients of one cell.

Two correct kernels can differ only in the rounding of that sum. A kernel declares its model. The criterion accepts
every order of additions under it, and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from poolproof.references.formats import FLOAT32, FloatFormat

AccumulationKind = Literal["acc32", "native", "mixed"]

_FLAGS = ("ftz", "cast-ftz", "saturate")
_SPELLING = re.compile(rf"(acc32|native|mixed\((\d+)\))((?:\+(?:{'|'.join(_FLAGS)}))*)")


@dataclass(frozen=True)
class AccumulationModel:
    """The formats and roundings of partial sums.

    Attributes:
        kind: Where sums are rounded. A float64 output accumulates in float64 under every kind.
            ``acc32``: float32 partial sums in any order, then one rounding to nearest even into the output dtype.
            ``native``: every addition rounds to the output dtype.
            ``mixed``: at most ``tiles`` float32 partial sums, each rounded to the output dtype, then added there.
        tiles: Most partial sums of ``mixed``.
        flushes_subnormals: Subnormal operands and results of additions may become zero (FTZ/DAZ).
        cast_flushes: The narrowing cast may turn a subnormal result into zero.
        saturates: The narrowing cast clamps to the largest finite value instead of producing an infinity.
    """

    kind: AccumulationKind
    tiles: int = 1
    flushes_subnormals: bool = False
    cast_flushes: bool = False
    saturates: bool = False

    def accumulator(self, output: FloatFormat) -> FloatFormat:
        """Return the narrowest format of a partial sum, in which overflow and rounding errors are largest."""
        return FLOAT32 if self.kind == "acc32" and output.precision < FLOAT32.precision else output

    def __str__(self) -> str:
        """Spell the model as in rows and options: ``acc32``, ``native+ftz``, ``mixed(4)+saturate``."""
        head = f"mixed({self.tiles})" if self.kind == "mixed" else self.kind
        raised = (self.flushes_subnormals, self.cast_flushes, self.saturates)
        return head + "".join(f"+{flag}" for flag, on in zip(_FLAGS, raised) if on)

    @classmethod
    def parse(cls, text: str) -> AccumulationModel:
        """Read the spelling of ``str()``; ValueError names what is wrong."""
        match = _SPELLING.fullmatch(text)
        if match is None:
            raise ValueError(
                f"accumulation model {text!r} is not acc32, native or mixed(TILES) with flags from {_FLAGS}"
            )
        kind, tiles, flags = match.groups()
        raised = (flag in flags.split("+") for flag in _FLAGS)
        return cls(cast(AccumulationKind, kind.partition("(")[0]), int(tiles or 1), *raised)


ACC32 = AccumulationModel("acc32")
NATIVE = AccumulationModel("native")

ALL_MODELS = tuple(
    AccumulationModel(model.kind, 1, *raised)
    for raised in ((), (True,), (False, True), (True, True), (False, False, True))
    for model in (ACC32, NATIVE)
)
"""The models of real kernels, stricter ones first. Tiled sums are left out: with many tiles they accept almost any
value."""
