"""The checks: each holds one claim against one trial and returns a finding when it is broken.

A check knows a trial, nothing of pytest, plans or rows. `CHECKS` is the complete list; a plan names checks by id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Status
from poolproof.references.criterion import acceptance
from poolproof.references.forward import window_cells
from poolproof.references.oracle import NO_LATTICE
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.neighbours import neighbours, twin
from poolproof.suites.cases.operands import POISONS, guard_and_gap_mask
from poolproof.suites.judging.findings import Finding, element_text, format_value, owed_text, unravel, value_finding
from poolproof.suites.judging.trial import Run, Trial, decoded_indices


@dataclass(frozen=True)
class Check:
    """One claim about every trial it applies to.

    ``judge`` returns None when the claim holds. ``applies`` says whether the trial can tell at all; a trial that
    cannot is not counted as judged by this check.
    """

    id: str
    claim: str
    applies: Callable[[Trial], bool]
    judge: Callable[[Trial], Finding | None]


CHECKS: dict[str, Check] = {}


def _check(claim: str, applies: Callable[[Trial], bool]) -> Callable[..., Callable[[Trial], Finding | None]]:
    def register(judge: Callable[[Trial], Finding | None]) -> Callable[[Trial], Finding | None]:
        name = judge.__name__
        CHECKS[name] = Check(name, claim, applies, judge)
        return judge

    return register


def _always(_trial: Trial) -> bool:
    return True


def _backward(trial: Trial) -> bool:
    return trial.case.api.is_backward


def _forward(trial: Trial) -> bool:
    return not trial.case.api.is_backward and not trial.case.has_empty_window()


def _readable(trial: Trial) -> bool:
    return _forward(trial) and not trial.case.has_bit_mask


@_check("outputs keep the shape and dtype they were given", _always)
def results(trial: Trial) -> Finding | None:
    for name, (shape, dtype) in trial.first.outcome.results.items():
        tensor = trial.first.call.tensors[name]
        if (shape, dtype) != (tensor.shape, tensor.dtype.name):
            owed, got = f"{tensor.dtype.name}{list(tensor.shape)}", f"{dtype}{list(shape)}"
            return Finding("results", f"{name} came back as {got}, owed {owed}", owed=owed, got=got)
    return None


@_check("every output element is written", _always)
def written(trial: Trial) -> Finding | None:
    for name in trial.case.api.outputs:
        unwritten = _holds_poison(trial.first, name, POISONS[0]) & _holds_poison(trial.repetition(), name, POISONS[1])
        if name == "indices" and trial.case.api.indices == "mask":
            unwritten = unwritten.ravel()[: _known_bytes(trial.case)]
        if unwritten.any():
            element = tuple(map(int, np.argwhere(unwritten)[0]))
            message = f"{element_text(name, element)} still holds what was in memory before the call"
            return _counted("written", message, unwritten, element)
    return None


@_check("every cell that a window reaches holds an admissible sum", _backward)
def interval(trial: Trial) -> Finding | None:
    reached = trial.content.sums.count > 0
    wrong = np.flatnonzero(~trial.accepted & reached)
    return value_finding(trial, "interval", wrong, int(reached.sum())) if len(wrong) else None


@_check("cells that no window reaches are exactly zero", _backward)
def unreached(trial: Trial) -> Finding | None:
    unreached = trial.content.sums.count == 0
    wrong = np.flatnonzero(~trial.accepted & unreached)
    return value_finding(trial, "unreached", wrong, int(unreached.sum())) if len(wrong) else None


def _conserves(trial: Trial) -> bool:
    """Exact data: every cell's sum is certain in every order, and a plane's sum fits into float64."""
    if not _backward(trial) or not trial.acceptance.demands_bits.all():
        return False
    sums = trial.content.sums
    magnitude = sums.positive + sums.negative
    if not _all_finite(trial) or not magnitude.any():
        return False
    lattice = int(sums.lattice.min())
    exactly_rounded = np.array_equal(trial.fmt.round(sums.sum, sums.residue), sums.sum)
    return lattice != NO_LATTICE and float(magnitude.sum()) < 2.0 ** (min(lattice, 900) + 53) and exactly_rounded


def _all_finite(trial: Trial) -> bool:
    sums = trial.content.sums
    return not (sums.nan.any() or sums.positive_infinity.any() or sums.negative_infinity.any())


@_check("on exact data each plane of grad_input sums to its plane of grad_output", _conserves)
def plane_sum(trial: Trial) -> Finding | None:
    gradient = trial.content.gradient
    assert gradient is not None
    planes = trial.case.planes
    owed = gradient.reshape(planes, trial.case.plane_windows).sum(axis=1)
    with np.errstate(invalid="ignore"):
        got = trial.gradient_input.reshape(planes, trial.case.plane_size).sum(axis=1)
    wrong = got != owed
    if not wrong.any():
        return None
    plane = int(wrong.argmax())
    element = tuple(map(int, np.unravel_index(plane, trial.case.leading_shape)))
    owed_text, got_text = format_value(owed[plane]), format_value(got[plane])
    message = f"plane {list(element)} of grad_input sums to {got_text}, owed {owed_text}"
    return _counted("plane_sum", message, wrong, element, owed_text, got_text)


@_check("inputs are left as they were", _always)
def inputs_untouched(trial: Trial) -> Finding | None:
    for name, before in trial.first.before.items():
        tensor = trial.first.call.tensors[name]
        changed = tensor.buffer != before
        if changed.any():
            place = _place_text(int(changed.argmax()), tensor.guard, len(tensor.buffer))
            return _counted("inputs_untouched", f"input {name} was changed {place}", changed)
    return None


@_check("nothing is written outside the outputs' elements", _always)
def memory_untouched(trial: Trial) -> Finding | None:
    if trial.first.outcome.complaints:
        return Finding("memory_untouched", "; ".join(trial.first.outcome.complaints))
    for name in trial.case.api.outputs:
        tensor = trial.first.call.tensors[name]
        trespass = guard_and_gap_mask(tensor) & (tensor.buffer != POISONS[0])
        if trespass.any():
            place = _place_text(int(trespass.argmax()), tensor.guard, len(tensor.buffer))
            return _counted(
                "memory_untouched", f"memory of {name} that belongs to no element was written {place}", trespass
            )
    return None


@_check("the same call gives the same bits, whatever was in memory before", lambda trial: trial.is_deterministic)
def repeat(trial: Trial) -> Finding | None:
    for number in range(1, trial.repeats + 1):
        finding = _same_bits(trial, "repeat", trial.repetition(number), f"repetition {number}")
        if finding:
            return finding
    return None


@_check("the same content laid out contiguously gives the same values", lambda trial: bool(trial.case.layouts))
def layout_invariance(trial: Trial) -> Finding | None:
    return _same_values(trial, "layout_invariance", trial.with_layouts({}), "the contiguous layout")


@_check(
    "another way to make the call gives the same values and stays in its memory",
    lambda trial: bool(trial.backend.modes),
)
def modes(trial: Trial) -> Finding | None:
    for mode in trial.backend.modes:
        run = trial.in_mode(mode)
        if run is None:
            continue
        if run.outcome.complaints:
            return Finding("modes", f"made with {mode}: {'; '.join(run.outcome.complaints)}")
        finding = _same_values(trial, "modes", run, f"the plain call, made with {mode}")
        if finding:
            return finding
    return None


@_check("what was called before changes nothing", _always)
def state(trial: Trial) -> Finding | None:
    return _same_values(
        trial, "state", trial.after(neighbours(trial.case)), "the first call, after other calls"
    ) or _wrong_twin(trial)


def _wrong_twin(trial: Trial) -> Finding | None:
    """What is wrong with a call that differs from the trial's, which came before, in nothing but its windows."""
    case = twin(trial.case)
    if case is None:
        return None
    other = Trial(case, trial.backend)
    if other.first.outcome.status is not Status.COMPLETED:
        return None
    found = interval(other) if case.api.is_backward else maximum(other)
    if found is None:
        return None
    return replace(
        found, check="state", message=f"after this call, one with {case.attributes} is wrong: {found.message}"
    )


def _has_producer(trial: Trial) -> bool:
    case = trial.case
    return _backward(trial) and not (case.has_empty_window() or case.has_bit_mask or 0 in case.shape)


@_check("indices that the implementation's own forward made are legal, and lead to the right sums", _has_producer)
def round_trip(trial: Trial) -> Finding | None:
    indices = trial.device_indices()
    if indices is None:
        return None
    plane = trial.case.plane_size
    outside = (indices < 0) | (indices >= plane)
    if outside.any():
        return _counted("round_trip", f"the forward made an index outside 0 .. {plane - 1}", outside)
    run, content = trial.with_indices(indices)
    outputs = run.output("grad_input").astype(np.float64).ravel()
    allowed = acceptance(content.sums, trial.fmt, trial.model)
    wrong = ~allowed.accepts(outputs)
    if not wrong.any():
        return None
    cell = int(wrong.argmax())
    element = unravel(trial.case, cell)
    owed, got = owed_text(allowed, cell), format_value(outputs[cell])
    message = f"with the forward's own indices, {element_text('grad_input', element)} is {got}, owed {owed}"
    return _counted("round_trip", message, wrong, element, owed, got)


def _shows_device_memory(trial: Trial) -> bool:
    return trial.repeats > 1 and trial.backend.device_memory_in_use() is not None


@_check("repeated calls take no more device memory", _shows_device_memory)
def memory_kept(trial: Trial) -> Finding | None:
    """Counted over the second half of the repetitions, by when caches have settled."""
    half = max(trial.repeats // 2, 1)
    levels = []
    for _ in range(2):
        trial.call_often(half)
        levels.append(trial.backend.device_memory_in_use() or 0)
    grown = levels[1] - levels[0]
    if grown <= 0:
        return None
    message = f"device memory in use grew by {grown} bytes over {half} identical calls"
    return Finding("memory_kept", message, got=str(grown))


def _has_other_index_dtype(trial: Trial) -> bool:
    other = _other_index_dtype(trial)
    return other is not None and trial.backend.unsupported(trial.case.api, trial.case.dtype, other) is None


def _other_index_dtype(trial: Trial) -> str | None:
    return {"int32": "int64", "int64": "int32"}.get(trial.case.index_dtype)


@_check("int32 and int64 indices give the same values", _has_other_index_dtype)
def index_dtype_invariance(trial: Trial) -> Finding | None:
    other = _other_index_dtype(trial)
    assert other is not None
    return _same_values(trial, "index_dtype_invariance", trial.with_index_dtype(other), f"{other} indices")


_SCALE = 3


def _scales(trial: Trial) -> bool:
    """Multiplying by 2**3 leaves every term and every partial sum finite and none subnormal."""
    if not _backward(trial) or not trial.is_deterministic:
        return False
    sums = trial.content.sums
    magnitude = sums.positive + sums.negative
    if not _all_finite(trial):
        return False
    return bool(
        (magnitude * 2.0 ** (_SCALE + 1) < trial.fmt.max).all() and (sums.lattice >= trial.fmt.min_exponent).all()
    )


@_check("gradients times 8 give grad_input times 8", _scales)
def scale_equivariance(trial: Trial) -> Finding | None:
    scaled = trial.with_scale(_SCALE).output("grad_input").astype(np.float64).ravel()
    owed = trial.gradient_input * 2.0**_SCALE
    differs = (scaled != owed) & ~(np.isnan(scaled) & np.isnan(owed))
    if not differs.any():
        return None
    cell = int(differs.argmax())
    element = tuple(map(int, np.unravel_index(cell, trial.case.shape)))
    owed_text, got_text = format_value(owed[cell]), format_value(scaled[cell])
    message = f"with gradients times {2**_SCALE}, {element_text('grad_input', element)} is {got_text}, owed {owed_text}"
    return _counted("scale_equivariance", message, differs, element, owed_text, got_text)


@_check("every output is the maximum of its window", _forward)
def maximum(trial: Trial) -> Finding | None:
    owed = trial.maximum[0].reshape(trial.case.pooled_shape)
    got = trial.first.output("out").astype(np.float64)
    wrong = (got != owed) & ~(np.isnan(got) & np.isnan(owed))
    return _forward_finding(trial, "maximum", "out", wrong, owed, got)


@_check("indices point at the first maximum, or the last NaN, of their window", _readable)
def index_rule(trial: Trial) -> Finding | None:
    owed = trial.maximum[1].reshape(trial.case.pooled_shape)
    got = _first_indices(trial)
    return _forward_finding(trial, "index_rule", "indices", got != owed, owed, got)


@_check("every index lies in its window and points at the value that came out", _readable)
def index_points(trial: Trial) -> Finding | None:
    case = trial.case
    cells, valid = window_cells(case.axes)
    got = _first_indices(trial).reshape(case.planes, case.plane_windows)
    inside = ((cells[None] == got[..., None]) & valid[None]).any(axis=-1)
    planes = trial.first.call.tensors["self"].array.astype(np.float64).reshape(case.planes, case.plane_size)
    pointed = np.take_along_axis(planes, np.where(inside, got, 0), axis=1)
    out = trial.first.output("out").astype(np.float64).reshape(got.shape)
    agrees = inside & ((pointed == out) | (np.isnan(pointed) & np.isnan(out)))
    return _forward_finding(
        trial,
        "index_points",
        "indices",
        ~agrees.reshape(case.pooled_shape),
        out.reshape(case.pooled_shape),
        got.reshape(case.pooled_shape),
    )


@_check(
    "a window without cells yields -inf and an index inside the plane, or -1 for none",
    lambda trial: not trial.case.api.is_backward and trial.case.has_empty_window(),
)
def empty_window(trial: Trial) -> Finding | None:
    _, valid = window_cells(trial.case.axes)
    empty = np.broadcast_to(~valid.any(axis=-1), (trial.case.planes, len(valid))).reshape(trial.case.pooled_shape)
    out, indices = trial.first.output("out").astype(np.float64), _first_indices(trial)
    minus_infinity = np.full(out.shape, -np.inf)
    finding = _forward_finding(trial, "empty_window", "out", empty & (out != -np.inf), minus_infinity, out)
    if finding:
        return finding
    outside = empty & ((indices < -1) | (indices >= trial.case.plane_size))
    if not outside.any():
        return None
    element = tuple(map(int, np.argwhere(outside)[0]))
    owed, got = f"-1 .. {trial.case.plane_size - 1}", str(indices[element])
    message = f"{element_text('indices', element)} is {got}, owed {owed}: the backward would write outside the plane"
    return _counted("empty_window", message, outside, element, owed, got)


def _first_indices(trial: Trial) -> NDArray[Any]:
    return decoded_indices(trial.case, trial.first.output("indices"))


def _forward_finding(
    trial: Trial, check: str, name: str, wrong: NDArray, owed: NDArray, got: NDArray
) -> Finding | None:
    if not wrong.any():
        return None
    element = tuple(map(int, np.argwhere(wrong)[0]))
    window = element[-trial.case.api.spatial_rank :]
    visited = [
        axis.positions[number][axis.valid[number]].tolist()
        for axis, number in zip(trial.case.axes, window, strict=True)
    ]
    owed_text, got_text = format_value(owed[element]), format_value(got[element])
    message = (
        f"{element_text(name, element)} is {got_text}, owed {owed_text}; its window visits coordinates "
        f"{' x '.join(map(str, visited))}; {int(wrong.sum())} of {wrong.size} are wrong"
    )
    return _counted(check, message, wrong, element, owed_text, got_text, (window,))


def _holds_poison(run: Run, name: str, poison: int) -> NDArray[np.bool_]:
    """Which elements of an output still hold the poison bit for bit."""
    output = np.ascontiguousarray(run.output(name))
    if output.size == 0:
        return np.zeros(output.shape, bool)
    return (output.view(np.uint8).reshape(*output.shape, output.itemsize) == poison).all(axis=-1)


def _known_bytes(case: Case) -> int:
    """How many of a mask's first bytes hold something known: int32 indices, or bits in an unpublished order."""
    return 0 if case.has_bit_mask else 4 * prod(case.pooled_shape)


def _same_bits(trial: Trial, check: str, other: Run, title: str) -> Finding | None:
    for name in trial.case.api.outputs:
        mine, theirs = (_bits(run.output(name)) for run in (trial.first, other))
        if name == "indices" and trial.case.api.indices == "mask":
            known = _known_bytes(trial.case)
            mine, theirs = mine.ravel()[:known], theirs.ravel()[:known]
        differs = mine != theirs
        if differs.any():
            return _difference(trial, check, name, differs, other, title)
    return None


def _same_values(trial: Trial, check: str, other: Run, title: str) -> Finding | None:
    """Equal values, wherever the criterion leaves no choice; NaN payloads and signs of zero do not count."""
    for name in trial.case.api.outputs:
        if name == "indices" and trial.case.api.indices == "mask":
            continue
        mine, theirs = (run.output(name).astype(np.float64) for run in (trial.first, other))
        differs = (mine != theirs) & ~(np.isnan(mine) & np.isnan(theirs))
        if trial.case.api.is_backward:
            differs &= trial.acceptance.demands_bits.reshape(mine.shape)
        if differs.any():
            return _difference(trial, check, name, differs, other, title)
    return None


def _difference(trial: Trial, check: str, name: str, differs: NDArray, other: Run, title: str) -> Finding:
    element = tuple(map(int, np.argwhere(differs)[0]))
    if len(element) != len(trial.first.output(name).shape):
        return _counted(check, f"{name} differs from {title} at byte {element[0]}", differs, element)
    got = format_value(trial.first.output(name)[element])
    owed = format_value(other.output(name)[element])
    count = f"{int(differs.sum())} of {differs.size} differ"
    message = f"{element_text(name, element)} is {got}, but {owed} with {title}; {count}"
    return _counted(check, message, differs, element, owed, got)


def _bits(array: NDArray) -> NDArray:
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def _place_text(byte: int, guard: int, length: int) -> str:
    if byte < guard:
        return f"{guard - byte} bytes before its storage"
    if byte >= length - guard:
        return f"{byte - (length - guard)} bytes past its storage"
    return f"at byte {byte - guard} of its storage"


def _counted(
    check: str,
    message: str,
    wrong: NDArray,
    element: tuple[int, ...] | None = None,
    owed: str = "",
    got: str = "",
    windows: tuple[tuple[int, ...], ...] = (),
) -> Finding:
    return Finding(check, message, int(wrong.sum()), int(wrong.size), element, owed, got, windows)


def run_checks(trial: Trial, ids: tuple[str, ...]) -> tuple[list[str], list[Finding]]:
    """(checks that judged, what they found) for a trial whose first run completed."""
    assert trial.first.outcome.status is Status.COMPLETED
    judged, findings = [], []
    for check in (CHECKS[name] for name in ids):
        if check.applies(trial):
            judged.append(check.id)
            finding = check.judge(trial)
            if finding is not None:
                findings.append(finding)
    return judged, findings
