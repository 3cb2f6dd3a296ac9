"""Probes of the rules by which a forward picks the index of a maximum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.references.forward import judge_forward
from poolproof.references.forward_rule import ForwardRule, Nans, Nothing, Ties
from poolproof.references.kernels.forward import WRONG_INDEX, WRONG_MAXIMUM
from poolproof.suites.judging.trial import Trial
from poolproof.suites.probe.experiment import Experiment, Observation


def exact_data(experiment: Experiment) -> Observation:
    """Find whether maxima arrive, and indices point at them: without that no rule can be found."""
    wrong = windows = 0
    for recipe in ("normal", "ties", "negative", "descending"):
        trial = experiment.forward(recipe)
        case = trial.case
        maxima = trial.maximum[0].astype(np.float64).ravel()
        picked = trial.output_indices.reshape(case.planes, case.plane_windows)
        inside = (picked >= 0) & (picked < case.plane_size)
        planes = trial.operands.values.astype(np.float64).reshape(case.planes, case.plane_size)
        pointed = np.take_along_axis(planes, np.where(inside, picked, 0), axis=1).ravel()
        right = (
            (trial.baseline.output("out").astype(np.float64).ravel() == maxima) & (pointed == maxima) & inside.ravel()
        )
        wrong += int((~right).sum())
        windows += len(maxima)
    return Observation("exact data", "wrong" if wrong else "right", f"{wrong} of {windows} maxima or indices are wrong")


def traits(experiment: Experiment) -> tuple[list[Observation], ForwardRule | None]:
    """Find which cell is taken of ties, of NaN and of nothing but -inf, and whether subnormals differ from zero.

    Returns the rule that these amount to, too; None where the known ones do not explain every index and maximum seen.
    """
    seen: list[Observation] = []
    rule, explained = ForwardRule(), True
    for trait in _TRAITS:
        trials = [experiment.forward(recipe) for recipe in trait.recipes]
        unexplained = {option: _unexplained(trials, trait.by(rule, option)) for option in trait.options}
        best = min(unexplained, key=lambda option: unexplained[option].sum())
        wrong, rule = unexplained[best], trait.by(rule, best)
        words, evidence = trait.options[best], f"predicts {(~wrong).sum()} of {wrong.size} windows"
        if wrong.any():
            explained = False
            words, evidence = "none of those known", f"{words} comes closest: it {evidence}"
        seen.append(Observation(trait.name, words, evidence))
    return seen, rule if explained else None


@dataclass(frozen=True)
class _Trait:
    """One trait of rules: the recipes of self that show it, its field, and its values with the words for them.

    Of several values that explain all, the first is meant: what may be any cell explains more than what is one.
    """

    name: str
    recipes: tuple[str, ...]
    field: str
    options: Mapping[Any, str]

    def by(self, rule: ForwardRule, option: Any) -> ForwardRule:
        return replace(rule, **{self.field: option})


_TRAITS = (
    _Trait("tie", ("ties", "constant"), "ties", {rule: str(rule) for rule in Ties}),
    _Trait(
        "-inf",
        ("negative_infinity", "mostly_negative_infinity"),
        "nothing",
        {
            Nothing.CELL: "a cell, as of ties",
            Nothing.NONE: "none (-1)",
            Nothing.LOWEST: "the lowest number, none (-1)",
            Nothing.ORIGIN: "the plane's first cell (0)",
            Nothing.LOWEST_ORIGIN: "the lowest number, the plane's first cell (0)",
        },
    ),
    _Trait(
        "NaN",
        ("nan",),
        "nans",
        {
            Nans.LAST: "last NaN",
            Nans.FIRST: "first NaN",
            Nans.IGNORED: "NaN ignored",
            Nans.LEADING: "NaN only as the first cell",
            Nans.YIELDING: "NaN, until the next cell",
            Nans.ANY: "any NaN",
        },
    ),
    _Trait("subnormal cells", ("subnormals",), "flushes_subnormals", {False: "compared", True: "taken for zero"}),
)


def _unexplained(trials: Sequence[Trial], rule: ForwardRule) -> NDArray[np.bool_]:
    """Mark the windows whose maximum or index is not what the rule says."""
    wrong = []
    for trial in trials:
        planes = trial.operands.values.reshape(trial.case.planes, *trial.case.spatial_shape)
        out = trial.baseline.output("out")
        wrong.append(judge_forward(planes, trial.case.axes, out, trial.output_indices, rule).ravel())
    return (np.concatenate(wrong) & (WRONG_MAXIMUM | WRONG_INDEX)) != 0
