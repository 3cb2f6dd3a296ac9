"""By which rules a forward picks the index of a maximum."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from poolproof.references.forward import window_cells
from poolproof.references.geometry import Int64
from poolproof.suites.probe.account import Observation
from poolproof.suites.probe.experiment import Experiment

Bool = NDArray[np.bool_]


def exact_data(experiment: Experiment) -> Observation:
    """Whether maxima arrive, and indices point at them: without that rules cannot be told."""
    wrong = windows = 0
    for recipe in ("normal", "ties", "negative", "descending"):
        trial = experiment.forward(recipe)
        case = trial.case
        maxima = trial.maximum[0].astype(np.float64).ravel()
        picked = trial.output_indices.reshape(case.planes, case.plane_windows)
        inside = (picked >= 0) & (picked < case.plane_size)
        planes = trial.content.values.astype(np.float64).reshape(case.planes, case.plane_size)
        pointed = np.take_along_axis(planes, np.where(inside, picked, 0), axis=1).ravel()
        right = (trial.first.output("out").astype(np.float64).ravel() == maxima) & (pointed == maxima) & inside.ravel()
        wrong += int((~right).sum())
        windows += len(maxima)
    return Observation("exact data", "wrong" if wrong else "right", f"{wrong} of {windows} maxima or indices are wrong")


def tie_rule(experiment: Experiment) -> Observation:
    """Which of several equal maxima is taken."""
    values, valid, cells, picked = _seen(experiment, ("ties", "constant"))
    best = valid & (values == values.max(axis=-1, where=valid, initial=-np.inf, keepdims=True))
    several = best.sum(axis=-1) > 1
    rules = {"first": _first(best, cells), "last": _last(best, cells)}
    return _agreeing("tie", {name: index[several] for name, index in rules.items()}, picked[several])


def nan_rule(experiment: Experiment) -> Observation:
    """Which cell is taken where there are NaN in a window."""
    values, valid, cells, picked = _seen(experiment, ("nan",))
    nan = valid & np.isnan(values)
    numbers = valid & ~np.isnan(values)
    best = numbers & (values == np.where(numbers, values, -np.inf).max(axis=-1, keepdims=True))
    chosen = (nan.sum(axis=-1) > 1) & best.any(axis=-1)
    rules = {"last NaN": _last(nan, cells), "first NaN": _first(nan, cells), "NaN ignored": _first(best, cells)}
    return _agreeing("NaN", {name: index[chosen] for name, index in rules.items()}, picked[chosen])


def negative_infinity_rule(experiment: Experiment) -> Observation:
    """Which cell is taken where all of a window is -inf."""
    values, valid, cells, picked = _seen(experiment, ("negative_infinity",))
    nothing = ~(valid & (values > -np.inf)).any(axis=-1)
    rules = {"first": _first(valid, cells), "last": _last(valid, cells), "none (-1)": np.full(picked.shape, -1)}
    return _agreeing("-inf", {name: index[nothing] for name, index in rules.items()}, picked[nothing])


def _seen(experiment: Experiment, recipes: tuple[str, ...]) -> tuple[NDArray, Bool, Int64, Int64]:
    """(values, valid, cells) of shape (runs * planes, windows, taps), and the index picked of every window."""
    values, picked = [], []
    for recipe in recipes:
        trial = experiment.forward(recipe)
        case = trial.case
        cells, valid = window_cells(case.axes)
        planes = trial.content.values.astype(np.float64).reshape(case.planes, case.plane_size)
        values.append(planes[:, cells])
        indices = trial.output_indices
        picked.append(indices.reshape(case.planes, case.plane_windows))
    gathered = np.concatenate(values)
    shape = gathered.shape
    return gathered, np.broadcast_to(valid, shape), np.broadcast_to(cells, shape), np.concatenate(picked)


def _first(chosen: Bool, cells: Int64) -> Int64:
    return np.take_along_axis(cells, chosen.argmax(axis=-1)[..., None], -1)[..., 0]


def _last(chosen: Bool, cells: Int64) -> Int64:
    taps = chosen.shape[-1] - 1 - chosen[..., ::-1].argmax(axis=-1)
    return np.take_along_axis(cells, taps[..., None], -1)[..., 0]


def _agreeing(trait: str, rules: Mapping[str, Int64], picked: Int64) -> Observation:
    """The rule that predicts every index that was picked."""
    agreeing = {name: int((index == picked).sum()) for name, index in rules.items()}
    name = max(agreeing, key=lambda rule: agreeing[rule])
    evidence = f"predicts {agreeing[name]} of {picked.size} indices"
    if picked.size and agreeing[name] == picked.size:
        return Observation(trait, name, evidence)
    return Observation(trait, "none of those known", f"{name} comes closest: it {evidence}")
