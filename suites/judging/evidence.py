"""Evidence of a failure: the output, the expected output, the input, and everything needed to repeat the call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.aclnn.calls import call_record
from poolproof.backends.base import Backend, Call, Outcome, Status
from poolproof.references.accumulation import ALL_MODELS, NATIVE, AccumulationModel
from poolproof.references.formats import FORMATS
from poolproof.references.forward import forward_maximum
from poolproof.references.forward_rule import FAMILY_RULE, ForwardRule
from poolproof.references.kernels.numbers import NO_LATTICE
from poolproof.reports.rows.evidence import (
    MAX_ARRAY,
    Evidence,
    Meta,
    evidence_path,
    shrunk_path,
    write_evidence,
    write_programs,
)
from poolproof.reports.rows.rejudge import LATTICE, NAN
from poolproof.reports.rows.schema import Row
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.memory import allocate, guard_and_gap_mask
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.varying import needs_producer
from poolproof.suites.judging.comparing import is_written_out_of_bounds, out_of_bounds_writes
from poolproof.suites.judging.findings import Finding
from poolproof.suites.judging.measure import digest, look_at_data
from poolproof.suites.judging.trial import ExecutedCall, Trial

MAX_ELEMENTS = 1_000_000
"""Most cells of self, or windows, of a case with evidence; the replay line of a larger one repeats the call."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class EvidenceFolder:
    """The folder of a run for evidence, and the backend's name in the run.

    Attributes:
        shrunk_from: Id of the failing case that was shrunk to the one to write; empty for an unshrunk case.
        wants: Tells from a violation's row whether to write evidence.
    """

    folder: Path
    backend: str
    shrunk_from: str = ""
    wants: Callable[[Row], bool] = lambda _row: True

    def put(self, trial: Trial, findings: Sequence[Finding]) -> None:
        """Write the evidence of a trial that ended with ``findings``; nothing if its case is too large."""
        case = trial.case
        if is_too_large(case):
            return
        trial.forget_variations()
        arrays, meta = evidence_of(trial, findings)
        place_of = shrunk_path if self.shrunk_from else evidence_path
        path = place_of(self.folder, self.shrunk_from or case.id, self.backend)
        write_evidence(path, arrays, meta | Meta(backend=self.backend))
        write_programs(self.folder)

    def write_unfinished(self, row: Row, call: Call | None = None) -> None:
        """Write the evidence of a row after its process ended in ``call``; low-level calls have none."""
        try:
            case = Case.from_json(row["case"])
        except CaseError:
            return
        if not (case.api.is_backward and (case.has_bit_mask or case.has_empty_window)):  # else only it had the indices
            self.put(_recorded(case, _outputs(call) if call else {}), ())


def is_too_large(case: Case) -> bool:
    """Tell whether a case has more elements than evidence may hold."""
    return case.planes * max(case.plane_size, case.plane_windows) > MAX_ELEMENTS


def _outputs(call: Call) -> Arrays:
    return {name: call.tensors[name].array for name in call.operator.outputs}


def _recorded(case: Case, left: Arrays, model: AccumulationModel | ForwardRule = NATIVE) -> Trial:
    """Recreate the trial of an implementation that has gone from its outputs ``left``, judged by ``model``."""
    trial = Trial(case, cast(Backend, None))  # no method of it is called
    trial.operands = make_operands(case)
    trial.model, trial.forward_rule = (NATIVE, model) if isinstance(model, ForwardRule) else (model, FAMILY_RULE)
    call = trial.new_call()
    outputs = _outputs(call)
    if all(name in outputs and outputs[name].shape == array.shape for name, array in left.items()):
        for name, array in left.items():
            outputs[name][...] = array
    trial.baseline = ExecutedCall(call, Outcome(Status.COMPLETED))
    return trial


def contradiction(row: Row, evidence: Evidence, is_shrunk: bool) -> str:
    """Return the contradiction between the evidence of a row, or of its shrunk case, and the case; empty if none.

    The evidence is derived again from the case, and compared with the row. The model of a shrunk case or a refused call
    is not recorded. Then a backward may have any model, and of a forward only the shape is checked.
    """
    try:
        case = Case.from_json(str(row["shrunk" if is_shrunk else "case"]))
        models = _models(row, case, is_shrunk)
    except ValueError:
        return "is about no case"
    if other := _other_size(case, evidence):
        return other
    arrays, tensor = evidence.arrays, evidence.meta.get("tensor")
    if tensor not in case.api.outputs:
        return f"holds {tensor!r}, which its case does not put out"
    is_derived = not needs_producer(case) and "indices" in arrays if case.api.is_backward else bool(models)
    if not is_derived:
        return ""
    if not is_shrunk and (other := _contradicts_row(row, case, evidence)):
        return other
    left = {} if tensor == "indices" else {tensor: arrays["got"].astype(FORMATS[case.dtype].dtype)}
    for assumed in models:
        derived, meta = evidence_of(_recorded(case, left, assumed), (), tensor)
        if case.api.is_backward and not np.array_equal(derived["indices"], arrays["indices"]):
            return ""  # an implementation without an indices input has its own
        apart = {"got"} if tensor == "indices" else ()
        different = [name for name in derived.keys() - apart if not _is_same(derived[name], arrays.get(name))]
        if not different:
            break
    if different or arrays.keys() - derived.keys() - {"written"}:
        return f"has another array {min(different, default='besides')!r} than follows from its case"
    made = json.loads(json.dumps([meta.get("call"), meta.get("case")]))
    is_same_call = made == [evidence.meta.get("call"), evidence.meta.get("case")]
    return "" if is_same_call else "makes another call than its case"


def evidence_of_row(row: Row) -> tuple[Arrays, Meta] | None:
    """Return the evidence of a judged case as if it had failed; None if its row does not define the whole call."""
    try:
        case = Case.from_json(str(row["case"]))
    except CaseError:  # a low-level call
        return None
    if is_too_large(case) or needs_producer(case) or not (models := _models(row, case, False)):
        return None
    arrays, meta = evidence_of(_recorded(case, {}, models[0]), (), case.api.outputs[0])
    return (arrays, meta) if "call" in meta else None


def _models(row: Row, case: Case, is_shrunk: bool) -> Sequence[AccumulationModel | ForwardRule]:
    """Return the models that may have judged a call; none for a forward without a recorded rule."""
    text = None if is_shrunk else row["model"]
    if not case.api.is_backward:
        return () if text is None else (ForwardRule.parse(text),)
    recorded = NATIVE if row["model"] is None else AccumulationModel.parse(row["model"])
    return (recorded, *ALL_MODELS) if text is None else (recorded,)


def _other_size(case: Case, evidence: Evidence) -> str:
    if is_too_large(case):
        return "is of a case that is too large to leave any"
    held, shape = evidence.arrays["got"].shape, case.shape if case.api.is_backward else case.pooled_shape
    if held != shape or evidence.meta.get("spatial_rank") != case.api.spatial_rank:
        return f"has the shape {list(held)}, which is not that of its case"
    return ""


def _contradicts_row(row: Row, case: Case, evidence: Evidence) -> str:
    output = evidence.arrays["got"].astype(FORMATS[case.dtype].dtype)
    if row["output_digest"] and digest(output) != row["output_digest"]:
        return "holds another output than its row was judged on"
    made = make_operands(case)
    are_own = not case.api.is_backward or np.array_equal(made.indices.ravel(), evidence.arrays["indices"].ravel())
    if are_own and row["data"] != look_at_data(made).get("data"):
        return "has other data than its row says"
    return ""


def _is_same(derived: NDArray[Any], stored: NDArray[Any] | None) -> bool:
    return stored is not None and np.array_equal(derived, stored, equal_nan=derived.dtype.kind == "f")


def evidence_of(trial: Trial, findings: Sequence[Finding], tensor: str = "") -> tuple[Arrays, Meta]:
    """Return the arrays and metadata of a trial's first run, as `poolproof.reports.rows.evidence` describes.

    ``tensor`` is the output they are about; by default the output of the first finding.
    """
    case, element, tensor = trial.case, _worst_element(trial.case, findings), tensor or _deviating(trial.case, findings)
    meta = Meta(tensor=tensor, spatial_rank=case.api.spatial_rank)
    if case.api.is_backward:
        arrays, limit = _of_backward(trial)
        meta |= Meta(limit=limit) if np.isfinite(limit) else Meta()
    else:
        arrays = _of_forward(trial, tensor)
    if findings:
        meta["checks"] = list(dict.fromkeys(finding.check for finding in findings))
    if element is not None:
        meta["element"] = list(element)
    if case.api.is_backward:
        first = (np.where(axis.valid, axis.positions, axis.size).min(axis=1) for axis in case.axes)
        last = (np.where(axis.valid, axis.positions, -1).max(axis=1) for axis in case.axes)
        arrays |= {"window_first": _corners(first), "window_last": _corners(last)}
        meta |= Meta(faults=trial.fault_records) if findings else Meta()
    if any(finding.check == "memory_untouched" for finding in findings):
        tensors = trial.baseline.call.tensors
        for name in filter(lambda name: is_written_out_of_bounds(tensors[name]), case.api.outputs):
            is_element = ~guard_and_gap_mask(tensors[name])
            arrays["written"] = np.where(is_element, 1, 2 * out_of_bounds_writes(tensors[name])).astype(np.uint8)
            meta["written"] = name
    call = allocate(trial.operands)
    memory = {f"memory_{name}": call.tensors[name].storage for name in call.operator.inputs}
    if max(storage.nbytes for storage in memory.values()) > MAX_ARRAY:  # the mask of large windows
        return arrays, meta | Meta(case=case.to_json())
    return arrays | memory, meta | Meta(call=describe_call(call))


def _deviating(case: Case, findings: Sequence[Finding]) -> str:
    is_of_indices = bool(findings) and findings[0].check in ("index_rule", "index_points")
    return "indices" if is_of_indices else case.api.outputs[0]


def _worst_element(case: Case, findings: Sequence[Finding]) -> tuple[int, ...] | None:
    """Return the first element of the findings that has as many coordinates as the output."""
    elements = (finding.mismatch.element for finding in findings)
    return next((one for one in elements if one is not None and len(one) == len(case.shape)), None)


def describe_call(call: Call) -> dict[str, Any]:
    """Describe the call as data, for torch and for aclnn: see `poolproof.reports.rows.evidence.Meta`."""
    operator = call.operator
    passed = [value if isinstance(value, bool) else list(value) for value in operator.passed(call.attributes)]
    of_torch = {  # indices follow the attributes, results are keyword arguments
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


def _of_backward(trial: Trial) -> tuple[Arrays, float]:
    """Return the arrays of a backward, and the magnitude to which a saturating cast may clamp."""
    case, operands = trial.case, trial.operands
    _, outputs, sums, admissible = trial.cells.chunk(slice(0, case.planes * case.plane_size))
    on_lattice = admissible.lattice != NO_LATTICE
    cells = {
        "got": outputs,
        "low": admissible.low,
        "high": admissible.high,
        "flags": admissible.specials | np.where(on_lattice, LATTICE, 0).astype(np.uint8),  # bits as in evidence
        "lattice": np.where(on_lattice, admissible.lattice, 0),
        "exact": sums.exact,
    }
    arrays = {name: array.reshape(case.shape) for name, array in cells.items()}
    windows = {"gradient": operands.gradient.astype(np.float64), "indices": operands.indices}
    return arrays | {name: array.reshape(case.pooled_shape) for name, array in windows.items()}, admissible.limit


def _of_forward(trial: Trial, tensor: str) -> Arrays:
    case = trial.case
    maxima, indices = forward_maximum(trial.operands.planes, case.axes, trial.forward_rule)
    empty = np.broadcast_to(case.empty_windows_of_plane, maxima.shape)
    if tensor == "indices":
        arrays = {
            "got": trial.output_indices.astype(np.float64),
            "low": np.where(empty, -1.0, indices),
            "high": np.where(empty, case.plane_size - 1.0, indices),
            "flags": np.zeros(empty.shape, np.uint8),
        }
    else:
        exact = np.where(empty, -np.inf, maxima.astype(np.float64))
        nan = np.isnan(exact)
        arrays = {
            "got": trial.baseline.output("out").astype(np.float64),
            "low": np.where(nan, np.inf, exact),
            "high": np.where(nan, -np.inf, exact),
            "flags": np.where(nan, NAN, 0).astype(np.uint8),
            "exact": exact,
        }
    return {name: array.reshape(case.pooled_shape) for name, array in arrays.items()}


def _corners(per_axis: Iterable[NDArray[Any]]) -> NDArray[np.int32]:
    """Return all combinations of one cell per axis, last axis fastest, of shape (windows, axes)."""
    corners = np.stack(np.meshgrid(*per_axis, indexing="ij"), axis=-1)
    return corners.reshape(-1, corners.shape[-1]).astype(np.int32)
