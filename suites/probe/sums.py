"""Probes of grad_input: how many bits partial sums keep, how they are rounded, and what becomes of special values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from poolproof.references.accumulation import ACC32, NATIVE, AccumulationModel
from poolproof.references.criterion import admissible
from poolproof.references.formats import FLOAT32, Float64, FloatFormat
from poolproof.reports.rows.text import count_of
from poolproof.suites.cases.recipes.gradients import Landing
from poolproof.suites.judging.trial import Trial
from poolproof.suites.probe.experiment import Craft, Experiment, Observation

WIDEST = {"float64": 58}
"""Widths that are tried, in bits, where not 30."""


def exact_data(experiment: Experiment) -> Observation:
    """Find whether integers arrive with sums that any accumulator of 8 bits holds: all else rests on that."""
    wrong = cells = 0
    for crowded in (False, True):
        trial = experiment.crafted(
            lambda landing: 1.0 + landing.window % max(256 // landing.largest_multiplicity, 1), crowded
        )
        wrong += int((trial.gradient_input != trial.operands.sums.sum).sum())
        cells += len(trial.gradient_input)
    evidence = f"{wrong} of {cells} sums of small integers are wrong"
    return Observation("exact data", "wrong" if wrong else "right", evidence)


def kept_bits(experiment: Experiment) -> int:
    """Count the bits that partial sums keep: the most for which no order loses the 1 of 2**j + 1 - 2**j."""
    widest, fmt = WIDEST.get(experiment.dtype, 30), experiment.fmt
    unit = fmt.smallest_normal if fmt.max_exponent < 64 else 1.0  # leaves room for the largest power of two above it

    def craft(landing: Landing) -> Float64:
        big = np.exp2(1 + landing.plane % widest)
        return unit * np.select([landing.place == 0, landing.place == 1, landing.place == 2], [1.0, big, -big])

    landing, outputs = experiment.landing(), experiment.crafted(craft).gradient_input
    judged = landing.cells[landing.multiplicity >= 3]
    plane_of = landing.plane[landing.multiplicity >= 3]
    lost = set(map(int, 1 + plane_of[outputs[judged] != unit] % widest))
    return min(lost, default=widest + 1)


RoundingMode = Callable[[Float64, Float64], Float64]
"""(even or odd integer L, t in (-1, 1)) -> the integer that L + t becomes."""


def _nearest(ties: Callable[[Float64, Float64], NDArray[np.bool_] | bool]) -> RoundingMode:
    """Round to the nearest integer, a tie away from zero where ``ties`` says so."""

    def rounded(leading: Float64, tail: Float64) -> Float64:
        outward = np.sign(tail) == np.sign(leading)
        tie = np.where(ties(leading, tail) == outward, np.sign(tail), 0.0)
        return leading + np.where(np.abs(tail) == 0.5, tie, np.rint(tail))

    return rounded


def _directed(toward: Callable[[Float64], Float64]) -> RoundingMode:
    """Round to the neighbour in the direction ``toward``, which takes the sign of the sum."""

    def rounded(leading: Float64, tail: Float64) -> Float64:
        direction = toward(np.sign(leading))
        return leading + np.where(np.sign(tail) == direction, direction, 0.0)

    return rounded


ROUNDINGS: Mapping[str, RoundingMode] = {
    "even": _nearest(lambda leading, tail: (leading % 2 != 0) == (np.sign(tail) == np.sign(leading))),
    "half away from zero": _nearest(lambda *_: True),
    "half toward zero": _nearest(lambda *_: False),
    "toward zero": _directed(np.negative),
    "away from zero": _directed(np.positive),
    "down": _directed(lambda sign: -np.ones_like(sign)),
    "up": _directed(np.ones_like),
    "odd": lambda leading, tail: leading + np.where(leading % 2 == 0, np.sign(tail), 0.0),
}


def rounding(experiment: Experiment) -> Observation:
    """Find the rounding of a sum of two: the mode that predicts every output of pairs around and on the ties."""
    trial = experiment.recipe("rounding_probe")
    leading, tail, outputs = _pairs(trial)
    agreeing = {name: int((mode(leading, tail) == outputs).sum()) for name, mode in ROUNDINGS.items()}
    name = max(agreeing, key=lambda mode: agreeing[mode])
    evidence = f"predicts {agreeing[name]} of {len(outputs)} sums of two"
    if agreeing[name] == len(outputs):
        return Observation("rounding", name, evidence)
    again = _pairs(experiment.recipe("rounding_probe"))[2]
    between = (outputs == np.floor(leading + tail)) | (outputs == np.ceil(leading + tail))
    if not np.array_equal(again, outputs) and between.all():
        return Observation("rounding", "not repeatable", "the same sums of two were rounded up and down")
    return Observation("rounding", "none of those known", f"{name} comes closest: it {evidence}")


def _pairs(trial: Trial) -> tuple[Float64, Float64, Float64]:
    """Return (integer L, t, output) of the cells with two gradients or more, in ulps; the probe's others are zero.

    Left out: powers of two, below which the ulp is another.
    """
    landing, terms = trial.operands.landing, trial.operands.terms
    leading, tail = np.zeros(landing.size), np.zeros(landing.size)
    leading[landing.cells[landing.rank == 0]] = terms[landing.rank == 0]
    tail[landing.cells[landing.rank == 1]] = terms[landing.rank == 1]
    chosen = (tail != 0.0) & (np.frexp(np.abs(leading))[0] != 0.5)
    return leading[chosen], tail[chosen], trial.gradient_input[chosen]


def accumulation(experiment: Experiment, bits: int, rounded: str) -> tuple[AccumulationModel | None, Observation]:
    """Return the accumulation model that the sums show, None if no model has them, with the evidence.

    The bits that partial sums keep tell acc32 from the others. How many gradients are added before a rounding to the
    output's format tells mixed from native.
    """
    fmt = experiment.fmt
    evidence = f"partial sums keep {'at least ' * (bits > WIDEST.get(experiment.dtype, 30))}{bits} bits"
    if bits >= max(fmt.precision, FLOAT32.precision):
        return ACC32, Observation("accumulation", "acc32", evidence)
    if bits != fmt.precision:
        return None, Observation("accumulation", "too narrow" if bits < fmt.precision else "in between", evidence)
    if rounded not in _HALF_ULPS:
        return None, Observation("accumulation", "native or mixed", f"{evidence}; this rounding hides more")
    together, of = _added_together(experiment, rounded)
    if together > 2 and _keeps_neighbours(experiment):
        evidence += f", and {together} of {of} gradients are added before a rounding to them"
        for tiles in (-(-of // together) + more for more in range(of - 1)):
            model = AccumulationModel("mixed", tiles)
            if rounded != "even" or not admits(model, mixture(experiment)):
                return model, Observation("accumulation", str(model), evidence)
    return NATIVE, Observation("accumulation", "native", f"{evidence}, and every one of {of} additions rounds to them")


_HALF_ULPS = {"even": 1, "half away from zero": 1, "half toward zero": 1, "toward zero": 2, "down": 2, "up": 2}
"""How many halves of an ulp a sum has to exceed before it moves, upwards or (for up) downwards."""


def _added_together(experiment: Experiment, rounded: str) -> tuple[int, int]:
    """Return (n, k): of k gradients the most that are certainly added before the sum is rounded to the output's format.

    Beside a large value 2**p, gradients just above an n-th of what moves it move it if n of them are added first.
    Whoever adds one by one sums them up if the large value comes last, hence the least over its places counts.
    """
    most = experiment.landing(crowded=True).largest_multiplicity
    for number in range(2, most):
        if not _moves(experiment, rounded, number):
            return number - 1, most
    return most, most


def _keeps_neighbours(experiment: Experiment) -> bool:
    """Tell whether three neighbours in memory that need more bits than the output has are mostly added without a loss.

    They are where many gradients are added in float32 before a rounding, all three in one of those groups. Groups that
    are themselves added in the output's format lose the 1 of 2**(p + 1) + 1 - 2**(p + 1) wherever it is not last.
    """
    kept: list[bool] = []
    for order in ((1.0, 0.0, -1.0), (0.0, 1.0, -1.0)):
        pattern = np.where(np.array(order) == 0.0, 1.0, np.array(order) * 4.0 * experiment.fmt.largest_exact_integer)

        def craft(landing: Landing, pattern: Float64 = pattern) -> Float64:
            position = landing.rank - (5 * landing.plane + landing.cells) % np.maximum(landing.multiplicity - 2, 1)
            chosen = (landing.multiplicity == landing.largest_multiplicity) & (position >= 0) & (position < 3)
            return np.where(chosen, pattern[np.clip(position, 0, 2)], 0.0)

        kept += (_in_fullest(experiment, craft) == 1.0).tolist()
    return sum(kept) > len(kept) / 2


def _moves(experiment: Experiment, rounded: str, number: int) -> bool:
    """Tell whether tails of an n-th of what moves the large value do, wherever it stands."""
    fmt = experiment.fmt
    big = 2.0**fmt.precision * (-1.0 if rounded == "up" else 1.0)
    enough = _HALF_ULPS[rounded] * (1.0 + 2.0 * fmt.unit_roundoff)  # a sum of so much still does when it is rounded
    tail = np.copysign(_at_or_above(enough / number, fmt), big)

    def craft(landing: Landing) -> Float64:
        fullest = landing.multiplicity == landing.largest_multiplicity
        position = landing.plane * (landing.multiplicity - 1) // max(int(landing.plane.max()), 1)
        return np.where(fullest, np.where(landing.rank == position, big, tail), 0.0)

    return bool((_in_fullest(experiment, craft) != big).all())


def _in_fullest(experiment: Experiment, craft: Craft) -> Float64:
    """Return what the cells hold in which most crafted gradients meet."""
    landing = experiment.landing(crowded=True)
    fullest = landing.cells_of_at_least(landing.largest_multiplicity)
    return experiment.crafted(craft, crowded=True).gradient_input[fullest]


def _at_or_above(x: float, fmt: FloatFormat) -> float:
    """Round up to a value of the format."""
    ulp = float(fmt.ulp(np.array([x]))[0])
    return float(np.ceil(x / ulp) * ulp)


def mixture(experiment: Experiment) -> list[Trial]:
    """Run data of many kinds in cells that few and many gradients reach, two among them: there bits are demanded."""
    recipes = ["uniform", "positive", "big_among_ones", "cancellation", "rounding_probe", "subnormal", "near_overflow"]
    crowds = [experiment.recipe(recipe, crowded) for recipe in recipes for crowded in (False, True)]
    pairs = [experiment.recipe(recipe, indices="in_window") for recipe in ("uniform", "rounding_probe")]
    return crowds + pairs


def admits(model: AccumulationModel, trials: list[Trial]) -> str:
    """Say how many outputs of ``trials`` the model rejects; empty if it admits every one."""
    rejected = cells = 0
    for trial in trials:
        accepted = admissible(trial.operands.sums, trial.fmt, model).accepts(trial.gradient_input)
        rejected += int((~accepted).sum())
        cells += len(accepted)
    return f"{rejected} of {cells} outputs" if rejected else ""


_REPETITIONS = 20


def subnormals(experiment: Experiment) -> Observation:
    """Find whether subnormals survive alone, as terms of a normal sum, and as the sum of normal terms."""
    smallest = experiment.fmt.smallest_normal
    pairs = {"alone": (0.75, 0.0), "as terms": (0.75, 0.75), "as sums": (1.5, -1.0)}
    kept = {
        place: bool((_of_pairs(experiment, first * smallest, second * smallest) == (first + second) * smallest).all())
        for place, (first, second) in pairs.items()
    }
    evidence = ", ".join(f"{place} {'kept' if survived else 'lost'}" for place, survived in kept.items())
    by_cast = experiment.fmt.precision < FLOAT32.precision and kept["as terms"]
    found = "kept" if all(kept.values()) else "flushed by the cast" if by_cast else "flushed"
    return Observation("subnormals", found, evidence)


def _of_pairs(experiment: Experiment, first: float, second: float) -> Float64:
    """Run cells with these first two gradients, and zeros after them; ``first`` alone if ``second`` is zero."""

    def craft(landing: Landing) -> Float64:
        pair = landing.multiplicity >= 2
        return np.select([pair & (landing.rank == 0), pair & (landing.rank == 1)], [first, second], 0.0)

    return experiment.crafted(craft).gradient_input[experiment.landing().cells_of_at_least(2)]


def specials(experiment: Experiment) -> Iterator[Observation]:
    """Find what becomes of the largest value added to itself, and of an infinity or NaN that is alone in its cell."""
    largest = experiment.fmt.max
    yield _special(experiment, "overflow", (largest, largest), {"infinity": np.inf, "saturates": largest})
    yield _special(experiment, "infinity", (np.inf, 0.0), {"kept": np.inf, "saturates": largest})
    yield _special(experiment, "NaN", (np.nan, 0.0), {"kept": np.nan, "zero": 0.0})


def negative_zero(experiment: Experiment) -> Observation:
    """Find whether a cell of negative zeros alone is negative zero."""
    trial = experiment.crafted(lambda landing: np.full(len(landing.cells), -0.0))
    negative = np.signbit(trial.gradient_input[experiment.landing().cells])
    found = "kept" if negative.all() else "becomes +0" if not negative.any() else "sometimes kept"
    return Observation("-0", found, f"{int(negative.sum())} of {len(negative)} stay negative")


def _special(experiment: Experiment, trait: str, pair: tuple[float, float], names: Mapping[str, float]) -> Observation:
    """Name what becomes of a pair of gradients, and of their negatives, by the values that it may become."""
    first, second = pair
    outputs = np.concatenate([sign * _of_pairs(experiment, sign * first, sign * second) for sign in (1.0, -1.0)])
    for name, value in names.items():
        if np.array_equal(outputs, np.full(len(outputs), value), equal_nan=True):
            return Observation(trait, name, f"all of {len(outputs)}")
    seen = ", ".join(map(str, np.unique(outputs)[:4]))
    return Observation(trait, "mixed" if len(np.unique(outputs)) > 1 else "other", f"became {seen}")


def determinism(experiment: Experiment, demanded: bool) -> Observation:
    """Find whether repetitions of a call agree in every bit, if its result depends on the order of additions."""
    trait = "repetitions in deterministic mode" if demanded else "repetitions"
    first = experiment.recipe("uniform", crowded=True, deterministic=demanded)
    trials = [first, *(experiment.trial(first.case, first.operands) for _ in range(_REPETITIONS - 1))]
    seen = {np.ascontiguousarray(trial.baseline.output("grad_input")).tobytes() for trial in trials}
    results = f"{count_of(len(seen), 'result')} in {_REPETITIONS} calls"
    return Observation(trait, "differ" if len(seen) > 1 else "agree", results)
