"""What a violation leaves behind: what came out, what was owed, what went in, and a program that makes the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import Float64
from poolproof.references.forward import window_cells
from poolproof.references.oracle import NO_LATTICE, ExactSums
from poolproof.reports.rows.evidence import Meta, write_evidence
from poolproof.reports.rows.rejudge import LATTICE, NAN, NEGATIVE_INFINITY, POSITIVE_INFINITY, ZERO
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.findings import Finding
from poolproof.suites.judging.standalone import program
from poolproof.suites.judging.trial import Trial

MOST_ELEMENTS = 1_000_000
"""Cells of self, or windows, above which a case leaves no evidence."""

_ABOUT_INDICES = ("index_rule", "index_points")
"""Checks of a forward whose evidence is its indices; that of all others is its out."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class EvidenceFolder:
    """Where a judge puts evidence: the folder of a run, and the name that the run has for the backend."""

    folder: Path
    backend: str

    def put(self, trial: Trial, findings: Sequence[Finding]) -> None:
        """Write down the trial that ended with ``findings``, unless it is too large."""
        case = trial.case
        if max(case.planes * case.plane_size, case.planes * case.plane_windows) > MOST_ELEMENTS:
            return
        arrays, meta = evidence_of(trial, findings)
        script = program(case, self.backend)
        write_evidence(self.folder, case.id, self.backend, arrays, meta | Meta(script=script) if script else meta)


def evidence_of(trial: Trial, findings: Sequence[Finding]) -> tuple[Arrays, Meta]:
    """The arrays that `poolproof.reports.rows.evidence` describes, from the first run of the trial."""
    arrays, meta = _of_backward(trial) if trial.case.api.is_backward else _of_forward(trial, findings)
    elements = [finding.mismatch.element for finding in findings]
    shape = arrays["got"].shape
    fitting = [element for element in elements if element is not None and len(element) == len(shape)]
    if fitting:
        meta["element"] = list(fitting[0])
    return arrays, meta | Meta(spatial_rank=trial.case.api.spatial_rank)


def _of_backward(trial: Trial) -> tuple[Arrays, Meta]:
    case, content, owed = trial.case, trial.content, trial.admissible
    assert content.gradient is not None
    assert content.indices is not None
    on_lattice = owed.lattice != NO_LATTICE
    flags = _flags(
        {
            POSITIVE_INFINITY: owed.positive_infinity,
            NEGATIVE_INFINITY: owed.negative_infinity,
            NAN: owed.nan,
            ZERO: owed.zero,
            LATTICE: on_lattice,
        }
    )
    cells = {
        "got": trial.gradient_input,
        "low": owed.low,
        "high": owed.high,
        "flags": flags,
        "lattice": np.where(on_lattice, owed.lattice, 0),
        "exact": _exact(content.sums),
    }
    first, last = _window_corners(case)
    arrays = {name: array.reshape(case.shape) for name, array in cells.items()} | {
        "gradient": content.gradient.reshape(case.pooled_shape),
        "indices": content.indices.reshape(case.pooled_shape),
        "window_first": first,
        "window_last": last,
    }
    meta = Meta(tensor="grad_input")
    return arrays, meta | Meta(limit=owed.limit) if np.isfinite(owed.limit) else meta


def _of_forward(trial: Trial, findings: Sequence[Finding]) -> tuple[Arrays, Meta]:
    case = trial.case
    _, valid = window_cells(case.axes)
    empty = np.broadcast_to(~valid.any(axis=-1), (case.planes, case.plane_windows)).reshape(case.pooled_shape)
    maxima, indices = (owed.reshape(case.pooled_shape).astype(np.float64) for owed in trial.maximum)
    if findings[0].check in _ABOUT_INDICES:
        got = trial.output_indices.astype(np.float64)
        low, high = np.where(empty, -1.0, indices), np.where(empty, case.plane_size - 1.0, indices)
        return {"got": got, "low": low, "high": high, "flags": _flags({NAN: np.zeros_like(empty)})}, Meta(
            tensor="indices"
        )
    exact = np.where(empty, -np.inf, maxima)
    nan = np.isnan(exact)
    arrays = {
        "got": trial.first.output("out").astype(np.float64),
        "low": np.where(nan, np.inf, exact),
        "high": np.where(nan, -np.inf, exact),
        "flags": _flags({NAN: nan}),
        "exact": exact,
    }
    return arrays, Meta(tensor="out")


def _flags(raised: Mapping[int, NDArray[np.bool_]]) -> NDArray[np.uint8]:
    flags = np.zeros(next(iter(raised.values())).shape, np.uint8)
    for flag, where in raised.items():
        flags[where] |= flag
    return flags


def _exact(sums: ExactSums) -> Float64:
    """The exact sums, NaN and infinite terms included."""
    exact = np.where(sums.positive_infinity, np.inf, np.where(sums.negative_infinity, -np.inf, sums.sum))
    return np.where(sums.nan | (sums.positive_infinity & sums.negative_infinity), np.nan, exact)


def _window_corners(case: Case) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(first, last) cell of each window of one plane along each axis, each of shape (windows, axes)."""
    first = [np.where(axis.valid, axis.positions, axis.size).min(axis=1) for axis in case.axes]
    last = [np.where(axis.valid, axis.positions, -1).max(axis=1) for axis in case.axes]
    return _combinations(first), _combinations(last)


def _combinations(per_axis: Sequence[NDArray[Any]]) -> NDArray[np.int32]:
    """Every combination of one entry per axis, the last axis running fastest."""
    return np.stack(np.meshgrid(*per_axis, indexing="ij"), axis=-1).reshape(-1, len(per_axis)).astype(np.int32)
