"""Probes of the rules by which a forward picks the index of a maximum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.references.forward import forward_indices, judge_forward, maximum_without_cells, window_cells
from poolproof.references.forward_rule import ForwardRule, Nans, Nothing, Ties
from poolproof.references.kernels.forward import POINTS_ELSEWHERE, WRONG_INDEX, WRONG_MAXIMUM
from poolproof.suites.judging.trial import Trial
from poolproof.suites.probe.experiment import Experiment, Observation

UNKNOWN = "none of those known"
"""Observation of a trait that no rule explains."""

NO_CELL = "no cell"
"""The trait of windows without a cell, where there are such windows."""


def exact_data(experiment: Experiment) -> Observation:
    """Find whether maxima arrive, and indices point at them: without that no rule can be found."""
    trials = map(experiment.forward, ("normal", "ties", "negative", "descending"))
    flags = np.concatenate([trial.forward_flags.ravel() for trial in trials])
    wrong = np.count_nonzero(flags & (WRONG_MAXIMUM | POINTS_ELSEWHERE))
    evidence = f"{wrong} of {flags.size} maxima or indices are wrong"
    return Observation("exact data", "wrong" if wrong else "right", evidence)


def traits(experiment: Experiment) -> tuple[list[Observation], ForwardRule]:
    """Find which cell is taken of ties, of NaN and of nothing but -inf, and whether subnormals differ from zero.

    Returns the rule that comes closest, too; where one is `UNKNOWN`, the known ones do not explain all that was seen.
    """
    seen: list[Observation] = []
    rule = ForwardRule()
    by_sums = experiment.finds_maxima
    unexplained_by, noun = (_unexplained_sums, "sums") if by_sums else (_unexplained, "windows")
    for trait in _TRAITS:
        trials = [experiment.forward(recipe) for recipe in trait.recipes]
        options = [option for option in trait.options if option not in (_FROM_INDICES, _FROM_SUMS)[by_sums]]
        rules = {option: replace(rule, **{trait.field: option}) for option in options}
        unexplained = {option: unexplained_by(trials, candidate) for option, candidate in rules.items()}
        best = min(unexplained, key=lambda option: unexplained[option].sum())
        wrong, rule = unexplained[best], rules[best]
        words, evidence = trait.options[best], f"predicts {(~wrong).sum()} of {wrong.size} {noun}"
        if wrong.any():
            words, evidence = UNKNOWN, f"{words} comes closest: it {evidence}"
        seen.append(Observation(trait.name, words, evidence))
    if trial := experiment.without_cells():
        out = trial.baseline.output("out").astype(np.float64)
        rules = {option: replace(rule, empty_is_lowest=option) for option in (False, True)}
        options = [option for option, own in rules.items() if (out == maximum_without_cells(own, trial.fmt)).all()]
        words = ("the lowest number" if options[0] else "-inf") if options else UNKNOWN
        seen.append(Observation(NO_CELL, words, f"the first is {out.flat[0]:g}"))
        rule = replace(rule, empty_is_lowest=True in options)
    return seen, rule


@dataclass(frozen=True)
class _Trait:
    """One trait of rules: the recipes of self that show it, its field, and its values with the words for them.

    If several values explain all outputs, the first one counts: a rule that admits any cell explains more than one of
    a single cell.
    """

    name: str
    recipes: tuple[str, ...]
    field: str
    options: Mapping[Any, str]


_TRAITS = (
    _Trait(
        "tie",
        ("ties", "constant"),
        "ties",
        {ties: str(ties) for ties in Ties} | {Ties.SHARED: "shared equally", Ties.ALL: "all, each as a whole"},
    ),
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

_FROM_INDICES = frozenset({Ties.SHARED, Ties.ALL})
_FROM_SUMS = frozenset({Ties.ANY, Nans.ANY})
"""What cannot be told from the indices of a forward; from the sums of a backward."""


def _unexplained(trials: Sequence[Trial], rule: ForwardRule) -> NDArray[np.bool_]:
    """Mark the windows with a maximum or an index that the rule does not give."""
    wrong = []
    for trial in trials:
        planes, out = trial.operands.planes, trial.baseline.output("out")
        wrong.append(judge_forward(planes, trial.case.axes, out, trial.output_indices, rule).ravel())
    return (np.concatenate(wrong) & (WRONG_MAXIMUM | WRONG_INDEX)) != 0


def _unexplained_sums(trials: Sequence[Trial], rule: ForwardRule) -> NDArray[np.bool_]:
    """Mark the cells with a sum of ones that the rule does not give; parts of ones as near as roundings allow."""
    wrong = []
    for trial in trials:
        case, planes = trial.case, trial.operands.planes
        sums = np.zeros((case.planes, case.plane_size))
        indices = forward_indices(planes, case.axes, rule).reshape(case.planes, -1)
        taken = np.where(indices < 0, 0.0, 1.0)[:, :, None]
        cells: NDArray = np.maximum(indices, 0)[:, :, None]
        if rule.ties.takes_several:
            cells, valid = (np.broadcast_to(array, (case.planes, *array.shape)) for array in window_cells(case.axes))
            flat = planes.reshape(case.planes, -1).astype(np.float64)
            maxima = np.take_along_axis(flat, np.maximum(indices, 0), axis=1)[:, :, None]
            tied = valid & (flat[np.arange(case.planes)[:, None, None], cells] == maxima)
            count = np.maximum(tied.sum(axis=2, keepdims=True), 1)
            taken = taken * tied / (count if rule.ties is Ties.SHARED else 1)
        np.add.at(sums, (np.arange(case.planes)[:, None, None], cells), taken)
        terms = prod(axis.overlap for axis in case.axes)
        roundings = (terms + 1) * trial.fmt.unit_roundoff if rule.ties is Ties.SHARED else 0.0
        with np.errstate(invalid="ignore"):
            wrong.append(~(np.abs(trial.gradient_input - sums.ravel()) <= roundings * sums.ravel()))
    return np.concatenate(wrong)
