"""A correct backend in numpy whose accumulation model and rounding mode are switches.

It is the subject of the probe's tests: what the probe says must be how the switches stand.
"""

from dataclasses import dataclass

import numpy as np

from poolproof.references.accumulation import ACC32, AccumulationModel
from poolproof.references.formats import FLOAT32, FORMATS, FloatFormat
from scatter import Scatter


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A + b as (rounded sum, exact error) (Knuth)."""
    total = a + b
    from_b = total - a
    return total, (a - (total - from_b)) + (b - from_b)


def round_by(mode: str, x: np.ndarray, residue: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    """The real number ``x + residue`` in ``fmt`` by one of the probe's rounding modes; residue below x's ulp."""
    if mode == "even":
        return fmt.round(x, residue if residue.any() else None)
    with np.errstate(invalid="ignore", over="ignore"):
        ulp = fmt.ulp(x)
        below = np.floor(x / ulp)
        rest = x / ulp - below
        down = (rest == 0.0) & (residue < 0.0)
        below, rest = np.where(down, below - 1, below), np.where(down, 1.0, rest)
        exact = (rest == 0.0) & (residue == 0.0)
        side = np.where(down, 1, np.sign(rest - 0.5))
        side = np.where((side == 0) & ~down, np.sign(residue), side)
        positive = x >= 0.0
        tie = {
            "half away from zero": positive,
            "half toward zero": ~positive,
            "toward zero": ~positive,
            "away from zero": positive,
            "down": np.zeros_like(exact),
            "up": np.ones_like(exact),
            "odd": below % 2 == 0,
        }[mode]
        nearest = mode in ("half away from zero", "half toward zero")
        upward = np.where(side == 0, tie, side > 0) if nearest else tie
        rounded = np.where(np.isfinite(x), (below + (upward & ~exact)) * ulp, x)
    return np.where(np.abs(rounded) > fmt.max, np.copysign(np.inf, x), rounded)


@dataclass(frozen=True)
class Switches:
    model: AccumulationModel = ACC32
    rounding: str = "even"
    accumulator: FloatFormat | None = None
    keeps_negative_zero: bool = False


class Switchable(Scatter):
    """Adds in memory order as ``switches`` stand."""

    def __init__(self, switches: Switches = Switches(), declared: AccumulationModel | None = None) -> None:
        self.switches = switches
        self.declared = declared or switches.model
        self._known: dict[tuple[str, bytes, bytes, int], np.ndarray] = {}

    def accumulation(self, call):  # type: ignore[no-untyped-def]
        return self.declared

    def accumulate(self, call, cells, terms, size):  # type: ignore[no-untyped-def]
        """Calls that are repeated, as most of a probe's are, are added up once."""
        key = (call.dtype, cells.tobytes(), terms.tobytes(), size)
        if key not in self._known:
            self._known[key] = self._accumulated(call, cells, terms, size)
        return self._known[key]

    def _accumulated(self, call, cells, terms, size):  # type: ignore[no-untyped-def]
        fmt, model = FORMATS[call.dtype], self.switches.model
        terms = terms.astype(np.float64)
        ranks, counts = ranks_of(cells, size)
        if model.kind != "mixed" or fmt.precision >= FLOAT32.precision:
            accumulator = self.switches.accumulator or model.accumulator(fmt)
            return self._narrowed(self._sums(cells, terms, ranks, size, accumulator), fmt)
        tile = ranks * model.tiles // np.maximum(counts[cells], model.tiles)
        total = np.zeros(size)
        for number in range(model.tiles):
            chosen = tile == number
            partial = self._sums(cells[chosen], terms[chosen], ranks_of(cells[chosen], size)[0], size, FLOAT32)
            total = self._add(total, self._narrowed(partial, fmt), fmt)
        return total

    def _sums(self, cells, terms, ranks, size, fmt):  # type: ignore[no-untyped-def]
        total = np.full(size, -0.0 if self.switches.keeps_negative_zero else 0.0)
        total[np.bincount(cells, minlength=size) == 0] = 0.0
        order = np.argsort(ranks, kind="stable")
        for now in np.split(order, np.cumsum(np.bincount(ranks))[:-1]):
            total[cells[now]] = self._add(total[cells[now]], self._flushed(terms[now], fmt), fmt)
        return total

    def _add(self, a, b, fmt):  # type: ignore[no-untyped-def]
        with np.errstate(invalid="ignore", over="ignore"):
            sums, residue = two_sum(a, b)
        rounded = sums if fmt.precision == 53 else round_by(self._mode(fmt), sums, residue, fmt)
        return self._flushed(np.where((sums == 0.0) & (residue == 0.0), sums, rounded), fmt)

    def _mode(self, fmt):  # type: ignore[no-untyped-def]
        """Float32 accumulation in front of a narrowing rounds to even; the switch is about the last rounding."""
        narrows = self.switches.model.kind != "native" and fmt is FLOAT32 and self._output is not FLOAT32
        return "even" if narrows else self.switches.rounding

    def _flushed(self, values, fmt):  # type: ignore[no-untyped-def]
        flushes = self.switches.model.flushes_subnormals
        return np.where(np.abs(values) < fmt.smallest_normal, 0.0, values) if flushes else values

    def _narrowed(self, sums, fmt):  # type: ignore[no-untyped-def]
        if fmt.precision == 53:
            return sums
        narrowed = np.where(sums == 0.0, sums, round_by(self.switches.rounding, sums, np.zeros_like(sums), fmt))
        if self.switches.model.saturates:
            narrowed = np.where(np.isnan(narrowed), narrowed, np.clip(narrowed, -fmt.max, fmt.max))
        if self.switches.model.cast_flushes:
            narrowed = np.where(np.abs(narrowed) < fmt.smallest_normal, 0.0, narrowed)
        return narrowed

    def backward(self, call):  # type: ignore[no-untyped-def]
        self._output = FORMATS[call.dtype]
        super().backward(call)

    def narrow(self, call, sums):  # type: ignore[no-untyped-def]
        return sums


def ranks_of(cells: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(position of each term among those of its cell in memory order, number of terms of each cell)."""
    order = np.argsort(cells, kind="stable")
    counts = np.bincount(cells, minlength=size)
    first = np.cumsum(counts) - counts
    ranks = np.empty(len(cells), np.int64)
    ranks[order] = np.arange(len(cells)) - first[cells[order]]
    return ranks, counts
