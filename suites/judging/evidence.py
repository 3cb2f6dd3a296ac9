"""Evidence of a failure: what came out, what was expected, what went in, and all that it takes to make the call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.aclnn.calls import call_record
from poolproof.backends.base import Backend, Call, Outcome, Status
from poolproof.references.accumulation import NATIVE, AccumulationModel
from poolproof.references.kernels.numbers import NO_LATTICE
from poolproof.references.operators import Operator
from poolproof.reports.rows.evidence import Meta, evidence_path, shrunk_path, write_evidence, write_programs
from poolproof.reports.rows.rejudge import LATTICE, NAN
from poolproof.reports.rows.schema import Row
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.memory import POISONS, allocate
from poolproof.suites.judging.findings import Finding
from poolproof.suites.judging.trial import Trial

MAX_ELEMENTS = 1_000_000
"""Cells of self, or windows, above which a case leaves no evidence."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class EvidenceFolder:
    """Where evidence is put: the folder of a run, and the name that the run has for the backend.

    ``shrunk_from`` is the id of the failing case that the one put there is the smallest of; empty for a case itself.
    ``wants`` says, before the work is done, whether a violation of that row is to leave any.
    """

    folder: Path
    backend: str
    shrunk_from: str = ""
    wants: Callable[[Row], bool] = lambda _row: True

    def put(self, trial: Trial, findings: Sequence[Finding]) -> None:
        """Write down the trial that ended with ``findings``, unless it is too large."""
        case = trial.case
        if max(case.planes * case.plane_size, case.planes * case.plane_windows) > MAX_ELEMENTS:
            return
        arrays, meta = evidence_of(trial, findings)
        place_of = shrunk_path if self.shrunk_from else evidence_path
        path = place_of(self.folder, self.shrunk_from or case.id, self.backend)
        write_evidence(path, arrays, meta | Meta(backend=self.backend))
        write_programs(self.folder)

    def write_unfinished(self, row: Row, call: Call | None = None) -> None:
        """Write down the case of a row whose process ended in ``call``. Low-level calls leave no evidence."""
        try:
            case = Case.from_json(row["case"])
        except CaseError:
            return
        if not (case.api.is_backward and (case.has_bit_mask or case.has_empty_window())):  # indices of who has died
            self.put(Trial(case, _Died(call)), ())


class _Died(Backend):
    """In place of an implementation whose process ended: puts out what ``last`` had, and may have added in any way."""

    def __init__(self, last: Call | None) -> None:
        self._last = last

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:  # noqa: ARG002
        return None

    def run(self, call: Call, mode: str = "") -> Outcome:  # noqa: ARG002
        last = self._last
        if last is not None and last.operator == call.operator:
            for name in call.operator.outputs:
                if last.tensors[name].shape == call.tensors[name].shape:
                    call.tensors[name].array[...] = last.tensors[name].array
        return Outcome(Status.COMPLETED)

    def accumulation(self, call: Call) -> AccumulationModel:  # noqa: ARG002
        return NATIVE


def evidence_of(trial: Trial, findings: Sequence[Finding]) -> tuple[Arrays, Meta]:
    """Make the arrays that `poolproof.reports.rows.evidence` describes, from the first run of the trial."""
    arrays, meta = _of_backward(trial) if trial.case.api.is_backward else _of_forward(trial, findings)
    elements = [finding.mismatch.element for finding in findings]
    shape = arrays["got"].shape
    fitting = [element for element in elements if element is not None and len(element) == len(shape)]
    if fitting:
        meta["element"] = list(fitting[0])
    if findings and trial.case.api.is_backward:
        meta["faults"] = trial.fault_records
    call = allocate(trial.operands, POISONS[0])
    memory = {f"memory_{name}": call.tensors[name].storage for name in call.operator.inputs}
    return arrays | memory, meta | Meta(spatial_rank=trial.case.api.spatial_rank, call=describe_call(call))


def describe_call(call: Call) -> dict[str, Any]:
    """Describe the call as data, for torch and for aclnn: see `poolproof.reports.rows.evidence.Meta`."""
    operator = call.operator
    passed = [value if isinstance(value, bool) else list(value) for value in operator.passed(call.attributes)]
    of_torch = {  # indices stand after the attributes, results go by keyword
        "function": [operator.aten, operator.outputs[0]],
        "arguments": [*operator.inputs[:2], *passed, *operator.inputs[2:]],
        "results": {name: name for name in operator.outputs},
    }
    tensors = {
        name: {
            "dtype": tensor.dtype.name,
            "shape": list(tensor.shape),
            "strides": list(tensor.strides),
            "offset": tensor.offset,
            "bytes": len(tensor.storage),
        }
        for name, tensor in call.tensors.items()
    }
    return {
        "operator": operator.name,
        "deterministic": call.deterministic,
        "outputs": list(operator.outputs),
        "tensors": tensors,
        "torch": of_torch if operator.aten else None,
        "aclnn": call_record(call),
    }


def _of_backward(trial: Trial) -> tuple[Arrays, Meta]:
    case, operands = trial.case, trial.operands
    assert operands.indices is not None
    _, outputs, sums, admissible = trial.cells.chunk(slice(0, operands.values.size))
    on_lattice = admissible.lattice != NO_LATTICE
    cells = {
        "got": outputs,
        "low": admissible.low,
        "high": admissible.high,
        "flags": admissible.specials | np.where(on_lattice, LATTICE, 0).astype(np.uint8),  # bits as in evidence
        "lattice": np.where(on_lattice, admissible.lattice, 0),
        "exact": sums.exact,
    }
    arrays = {name: array.reshape(case.shape) for name, array in cells.items()} | {
        "gradient": operands.terms.reshape(case.pooled_shape),
        "indices": operands.indices.reshape(case.pooled_shape),
        "window_first": _corners(np.where(axis.valid, axis.positions, axis.size).min(axis=1) for axis in case.axes),
        "window_last": _corners(np.where(axis.valid, axis.positions, -1).max(axis=1) for axis in case.axes),
    }
    meta = Meta(tensor="grad_input")
    return arrays, meta | Meta(limit=admissible.limit) if np.isfinite(admissible.limit) else meta


def _of_forward(trial: Trial, findings: Sequence[Finding]) -> tuple[Arrays, Meta]:
    case = trial.case
    empty = case.empty_windows
    maxima, indices = (expected.reshape(case.pooled_shape).astype(np.float64) for expected in trial.maximum)
    if findings and findings[0].check in ("index_rule", "index_points"):
        arrays = {
            "got": trial.output_indices.astype(np.float64),
            "low": np.where(empty, -1.0, indices),
            "high": np.where(empty, case.plane_size - 1.0, indices),
            "flags": np.zeros(empty.shape, np.uint8),
        }
        return arrays, Meta(tensor="indices")
    exact = np.where(empty, -np.inf, maxima)
    nan = np.isnan(exact)
    arrays = {
        "got": trial.baseline.output("out").astype(np.float64),
        "low": np.where(nan, np.inf, exact),
        "high": np.where(nan, -np.inf, exact),
        "flags": np.where(nan, NAN, 0).astype(np.uint8),
        "exact": exact,
    }
    return arrays, Meta(tensor="out")


def _corners(per_axis: Iterable[NDArray[Any]]) -> NDArray[np.int32]:
    """Combine one cell per axis in every way, the last axis running fastest: of shape (windows, axes)."""
    corners = np.stack(np.meshgrid(*per_axis, indexing="ij"), axis=-1)
    return corners.reshape(-1, corners.shape[-1]).astype(np.int32)
