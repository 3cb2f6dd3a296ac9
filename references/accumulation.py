"""Accumulation models: how a kernel is allowed to add the gradients that meet in one cell.

Only the rounding of that sum can make two correct kernels differ, so a kernel *declares* its model and the
criterion accepts every order of additions under it, and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from poolproof.references.formats import FLOAT32, FloatFormat
from poolproof.references.kept import kept_property

Kind = Literal["acc32", "native", "mixed"]

_FLAGS = ("ftz", "cast-ftz", "saturate")
_SPELLING = re.compile(r"(?P<kind>acc32|native|mixed)(?:\((?P<tiles>\d+)\))?(?P<flags>(?:\+[a-z-]+)*)")


@dataclass(frozen=True)
class AccumulationModel:
    """How partial sums are held and rounded.

    kind
        ``acc32``: float32 partial sums in any order, then one rounding to nearest even into the output dtype.
        ``native``: every addition rounds to the output dtype.
        ``mixed``: at most ``tiles`` float32 partial sums, each rounded to the output dtype, then added there.
        float64 outputs accumulate in float64 under each of them.
    flushes_subnormals
        Subnormal operands and results of additions may become zero (FTZ/DAZ).
    cast_flushes
        The narrowing cast may turn a subnormal result into zero.
    saturates
        The narrowing cast clamps to the largest finite value instead of producing an infinity.
    """

    kind: Kind
    tiles: int = 1
    flushes_subnormals: bool = False
    cast_flushes: bool = False
    saturates: bool = False

    def accumulator(self, output: FloatFormat) -> FloatFormat:
        """The narrowest format that a partial sum passes through: where sums overflow, flush and are rounded most."""
        return FLOAT32 if self.kind == "acc32" and output.precision < FLOAT32.precision else output

    def __str__(self) -> str:
        """The spelling used in rows and options: ``acc32``, ``native+ftz``, ``mixed(4)+saturate``."""
        return self._spelling

    @kept_property
    def _spelling(self) -> str:
        head = f"mixed({self.tiles})" if self.kind == "mixed" else self.kind
        raised = (self.flushes_subnormals, self.cast_flushes, self.saturates)
        return head + "".join(f"+{flag}" for flag, on in zip(_FLAGS, raised, strict=True) if on)

    @classmethod
    def parse(cls, text: str) -> AccumulationModel:
        """Read the spelling of ``str()``; ValueError names what is wrong."""
        match = _SPELLING.fullmatch(text)
        if match is None:
            raise ValueError(
                f"accumulation model {text!r} is not acc32, native or mixed(TILES) with flags from {_FLAGS}"
            )
        kind, tiles, flags = match["kind"], match["tiles"], match["flags"].split("+")[1:]
        if (kind == "mixed") != (tiles is not None):
            raise ValueError(f"accumulation model {text!r}: mixed, and only mixed, carries a number of tiles")
        unknown = [flag for flag in flags if flag not in _FLAGS]
        if unknown:
            raise ValueError(f"accumulation model {text!r}: unknown flag {unknown[0]!r}, known are {_FLAGS}")
        raised = (flag in flags for flag in _FLAGS)
        return cls(cast(Kind, kind), int(tiles or 1), *raised)


ACC32 = AccumulationModel("acc32")
NATIVE = AccumulationModel("native")

_KINDS_OF_ORDER: tuple[Kind, ...] = ("acc32", "native")

ALL_MODELS = tuple(
    AccumulationModel(kind, 1, *raised)
    for raised in ((), (True,), (False, True), (True, True), (False, False, True))
    for kind in _KINDS_OF_ORDER
)
"""Models that kernels have, the stricter first. Sums of tiles are left out: of many tiles nearly everything is one."""
