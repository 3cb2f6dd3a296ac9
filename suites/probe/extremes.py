"""Probes of subnormals, overflow, infinities, NaN and signed zeros, and of repetitions."""

from __future__ import annotations

import numpy as np

from poolproof.references.formats import FLOAT32, Float64
from poolproof.suites.cases.recipes.gradients import Landing
from poolproof.suites.probe.experiment import Experiment, Observation

REPETITIONS = 20


def subnormals(experiment: Experiment) -> Observation:
    """Find whether subnormals survive alone, as terms of a normal sum, and as the sum of normal terms."""
    smallest = experiment.fmt.smallest_normal
    pairs = {"alone": (0.75, 0.0), "as terms": (0.75, 0.75), "as sums": (1.5, -1.0)}
    kept = {
        place: bool((_of_pairs(experiment, first * smallest, second * smallest) == (first + second) * smallest).all())
        for place, (first, second) in pairs.items()
    }
    evidence = ", ".join(f"{place} {'kept' if survived else 'lost'}" for place, survived in kept.items())
    if all(kept.values()):
        return Observation("subnormals", "kept", evidence)
    if experiment.fmt.precision < FLOAT32.precision and kept["as terms"]:
        return Observation("subnormals", "flushed by the cast", evidence)
    return Observation("subnormals", "flushed", evidence)


def _of_pairs(experiment: Experiment, first: float, second: float) -> Float64:
    """Run cells whose first two gradients are these and whose others are zero; alone if ``second`` is zero."""

    def craft(landing: Landing) -> Float64:
        pair = landing.multiplicity >= 2
        return np.select([pair & (landing.rank == 0), pair & (landing.rank == 1)], [first, second], 0.0)

    return experiment.crafted(craft).gradient_input[experiment.landing().cells_of_at_least(2)]


def overflow(experiment: Experiment) -> Observation:
    """Find what the sum of the largest value with itself becomes."""
    largest = experiment.fmt.max
    outputs = _of_pairs(experiment, largest, largest), -_of_pairs(experiment, -largest, -largest)
    return _named("overflow", np.concatenate(outputs), {"infinity": np.inf, "saturates": largest})


def infinities(experiment: Experiment) -> Observation:
    """Find what becomes of an infinite gradient that is alone in its cell."""
    outputs = _of_pairs(experiment, np.inf, 0.0), -_of_pairs(experiment, -np.inf, 0.0)
    return _named("infinity", np.concatenate(outputs), {"kept": np.inf, "saturates": experiment.fmt.max})


def nan(experiment: Experiment) -> Observation:
    """Find what becomes of NaN."""
    return _named("NaN", _of_pairs(experiment, np.nan, 0.0), {"kept": np.nan, "zero": 0.0})


def negative_zero(experiment: Experiment) -> Observation:
    """Find whether a cell of negative zeros alone is negative zero."""
    trial = experiment.crafted(lambda landing: np.full(len(landing.cells), -0.0))
    negative = np.signbit(trial.gradient_input[experiment.landing().cells])
    found = "kept" if negative.all() else "becomes +0" if not negative.any() else "sometimes kept"
    return Observation("-0", found, f"{int(negative.sum())} of {len(negative)} stay negative")


def _named(trait: str, outputs: Float64, names: dict[str, float]) -> Observation:
    for name, value in names.items():
        if np.array_equal(outputs, np.full(len(outputs), value), equal_nan=True):
            return Observation(trait, name, f"all of {len(outputs)}")
    seen = ", ".join(map(str, np.unique(outputs)[:4]))
    return Observation(trait, "mixed" if len(np.unique(outputs)) > 1 else "other", f"became {seen}")


def determinism(experiment: Experiment, demanded: bool) -> Observation:
    """Find whether repetitions of a call whose result depends on the order of additions agree in every bit."""
    trait = "repetitions, asked to be deterministic" if demanded else "repetitions"
    first = experiment.recipe("uniform", crowded=True, deterministic=demanded)
    trials = [first, *(experiment.trial(first.case, first.operands) for _ in range(REPETITIONS - 1))]
    seen = {np.ascontiguousarray(trial.baseline.output("grad_input")).tobytes() for trial in trials}
    return Observation(trait, "differ" if len(seen) > 1 else "agree", f"{len(seen)} results in {REPETITIONS} calls")
