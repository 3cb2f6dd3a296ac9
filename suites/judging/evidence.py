"""Evidence of a failure: what came out, what was expected, what went in, and all that it takes to make the call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.aclnn.calls import call_record
from poolproof.backends.base import Backend, Call, Outcome, Status
from poolproof.references.accumulation import ALL_MODELS, NATIVE, AccumulationModel
from poolproof.references.formats import FORMATS
from poolproof.references.kernels.numbers import NO_LATTICE
from poolproof.references.operators import Operator
from poolproof.reports.rows.evidence import Evidence, Meta, evidence_path, shrunk_path, write_evidence, write_programs
from poolproof.reports.rows.rejudge import LATTICE, NAN
from poolproof.reports.rows.schema import Row
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.memory import POISONS, allocate, guard_and_gap_mask
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.varying import needs_producer
from poolproof.suites.judging.comparing import is_written_out_of_bounds, out_of_bounds_writes
from poolproof.suites.judging.findings import Finding
from poolproof.suites.judging.measure import digest, look_at_data
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
        if _is_too_large(case):
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
            self.put(Trial(case, _Recorded(_outputs(call) if call else {})), ())


def _is_too_large(case: Case) -> bool:
    return max(case.planes * case.plane_size, case.planes * case.plane_windows) > MAX_ELEMENTS


def _outputs(call: Call) -> Arrays:
    return {name: call.tensors[name].array for name in call.operator.outputs}


class _Recorded(Backend):
    """In place of an implementation that is gone: puts out what it ``left``, which was added by a ``model``."""

    def __init__(self, left: Mapping[str, NDArray[Any]], model: AccumulationModel = NATIVE) -> None:
        self._left = left
        self._model = model

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:  # noqa: ARG002
        return None

    def run(self, call: Call, mode: str = "") -> Outcome:  # noqa: ARG002
        fresh = _outputs(call)
        if all(name in fresh and fresh[name].shape == array.shape for name, array in self._left.items()):
            for name, array in self._left.items():
                fresh[name][...] = array
        return Outcome(Status.COMPLETED)

    def accumulation(self, call: Call) -> AccumulationModel:  # noqa: ARG002
        return self._model


def contradiction(row: Row, evidence: Evidence, is_shrunk: bool) -> str:
    """Return what in the evidence of a row, or of its shrunk case, is other than its case says; empty if nothing is.

    Looked at are backwards whose inputs follow from the case alone. What the row says of the output is held against
    that, too. The model of the shrunk case is not recorded, nor that of a call that was refused: any is accepted.
    """
    try:
        case = Case.from_json(str(row["shrunk" if is_shrunk else "case"]))
        model = NATIVE if row["model"] is None else AccumulationModel.parse(row["model"])
    except ValueError:
        return "is about no case"
    got, operator = evidence.arrays["got"], case.api
    tensor = str(evidence.meta.get("tensor"))
    if _is_too_large(case):
        return "is of a case that is too large to leave any"
    if got.shape != (case.pooled_shape if tensor in ("out", "indices") else case.shape):
        return f"has the shape {list(got.shape)}, which is not that of its case"
    if tensor != "grad_input" or needs_producer(case) or "indices" not in evidence.arrays:
        return ""
    stored = evidence.arrays["indices"]
    output = got.astype(FORMATS[case.dtype].dtype)
    if not is_shrunk and (other := _other_than_said(row, case, output, stored)):
        return other
    for assumed in (model, *ALL_MODELS) if is_shrunk or row["model"] is None else (model,):
        derived, meta = evidence_of(Trial(case, _Recorded({operator.outputs[0]: output}, assumed)), ())
        if not np.array_equal(derived["indices"], stored):  # an implementation that takes none has its own
            return ""
        different = [name for name, array in derived.items() if not _is_same(array, evidence.arrays.get(name))]
        if not different:
            break
    if different or evidence.arrays.keys() - derived.keys() - {"written"}:
        return f"has another array {next(iter(different), 'besides')!r} than follows from its case"
    is_same_call = evidence.meta.get("call") == json.loads(json.dumps(meta["call"]))
    return "" if is_same_call else "makes another call than its case"


def _other_than_said(row: Row, case: Case, output: NDArray[Any], indices: NDArray[Any]) -> str:
    if row["output_digest"] and digest(output) != row["output_digest"]:
        return "holds another output than its row was judged on"
    made = make_operands(case)
    if np.array_equal(made.indices.ravel(), indices.ravel()) and row["data"] != look_at_data(made).get("data"):
        return "has other data than its row says"
    return ""


def _is_same(derived: NDArray[Any], stored: NDArray[Any] | None) -> bool:
    return stored is not None and np.array_equal(derived, stored, equal_nan=derived.dtype.kind == "f")


def evidence_of(trial: Trial, findings: Sequence[Finding]) -> tuple[Arrays, Meta]:
    """Make the arrays that `poolproof.reports.rows.evidence` describes, from the first run of the trial."""
    arrays, meta = _of_backward(trial) if trial.case.api.is_backward else _of_forward(trial, findings)
    if findings:
        meta["checks"] = list(dict.fromkeys(finding.check for finding in findings))
    elements = [finding.mismatch.element for finding in findings]
    shape = arrays["got"].shape
    fitting = [element for element in elements if element is not None and len(element) == len(shape)]
    if fitting:
        meta["element"] = list(fitting[0])
    if findings and trial.case.api.is_backward:
        meta["faults"] = trial.fault_records
    if any(finding.check == "memory_untouched" for finding in findings):
        tensors = trial.baseline.call.tensors
        for name in filter(lambda name: is_written_out_of_bounds(tensors[name]), trial.case.api.outputs):
            is_element = ~guard_and_gap_mask(tensors[name])
            arrays["written"] = np.where(is_element, 1, 2 * out_of_bounds_writes(tensors[name])).astype(np.uint8)
            meta["written"] = name
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
