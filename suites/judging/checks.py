"""The checks: each holds one claim against one trial and returns a mismatch when it is broken.

A check knows a trial, nothing of pytest, plans or rows, and not its own id: the registry takes it from the function's
name. `CHECKS` is the complete list; a plan names checks by id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Status, Tensor
from poolproof.references.forward import maximum_without_cells
from poolproof.references.kernels.forward import POINTS_ELSEWHERE, WRONG_INDEX, WRONG_MAXIMUM
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.memory import POISONS, SURROUNDINGS, as_before, guard_and_gap_mask, holds_poison
from poolproof.suites.cases.neighbours import neighbours, twin
from poolproof.suites.judging.comparing import (
    changed_bytes,
    differs,
    other_bits,
    other_shape,
    other_values,
    trespassed,
    trespasses,
    unchanged,
    wrong_element,
    wrong_window,
)
from poolproof.suites.judging.findings import (
    Finding,
    Mismatch,
    element_text,
    first_element,
    format_value,
    mismatch,
    wrong_cells,
)
from poolproof.suites.judging.otherwise import wrong_by_itself, wrong_sums
from poolproof.suites.judging.owed import unsupported
from poolproof.suites.judging.parts import REACHED, REJECTED, plane_sums
from poolproof.suites.judging.slabs import anywhere, where
from poolproof.suites.judging.trial import Run, Trial

Judge = Callable[[Trial], Mismatch | None]


@dataclass(frozen=True)
class Check:
    """One claim about every trial it applies to.

    ``find`` returns None when the claim holds. ``applies`` says whether the trial can tell at all; a trial that
    cannot is not counted as judged by this check.
    """

    id: str
    claim: str
    applies: Callable[[Trial], bool]
    find: Judge

    def judge(self, trial: Trial) -> Finding | None:
        """What breaks the claim, under the name of this check."""
        found = self.find(trial)
        return Finding(self.id, found) if found else None


CHECKS: dict[str, Check] = {}


def _check(claim: str, applies: Callable[[Trial], bool]) -> Callable[[Judge], Judge]:
    """Register the function below as the check of its name."""

    def register(find: Judge) -> Judge:
        CHECKS[find.__name__] = Check(find.__name__, claim, applies, find)
        return find

    return register


@dataclass(frozen=True)
class OfCase:
    """A condition on trials that the case alone decides."""

    holds: Callable[[Case], bool]

    def __call__(self, trial: Trial) -> bool:
        return self.holds(trial.case)


_always = OfCase(lambda case: True)  # noqa: ARG005
_backward = OfCase(lambda case: case.api.is_backward)
_owes_all = OfCase(lambda case: case.api.is_backward and not case.has_empty_window())
"""A backward of which every gradient has a cell to go to."""
_forward = OfCase(lambda case: not case.api.is_backward and not case.has_empty_window())
_readable = OfCase(lambda case: _forward.holds(case) and not case.has_bit_mask)
_gapped = OfCase(lambda case: not case.api.is_backward and case.has_empty_window())
_laid_out = OfCase(lambda case: bool(case.layouts))


@_check("outputs keep the shape, dtype and strides they were given", _always)
def results(trial: Trial) -> Mismatch | None:
    return other_shape(trial.first) or _other_strides(trial.first)


def _other_strides(run: Run) -> Mismatch | None:
    """The first output that came back with other strides, those of axes with more than one element."""
    for name in run.outcome.strides:
        tensor, strides = run.call.tensors[name], run.strides(name)
        if strides != tensor.strides and _lead_elsewhere(strides, tensor):
            because = "as the tensor was handed in"
            return mismatch(f"the strides of {name} after the call", list(strides), list(tensor.strides), because)
    return None


def _lead_elsewhere(strides: Sequence[int], tensor: Tensor) -> bool:
    """Whether elements of a tensor that is read with ``strides`` lie elsewhere than with its own."""
    pairs = zip(tensor.shape, strides, tensor.strides, strict=True)
    return 0 not in tensor.shape and any(size > 1 and read != own for size, read, own in pairs)


@_check("every output element is written", _always)
def written(trial: Trial) -> Mismatch | None:
    for name in trial.case.api.outputs:
        if trial.has_bits_of_first(trial.repetition(), name):
            continue  # of which an element that kept its poison, another one each time, has none
        outputs = [trial.known_output(name, run) for run in (trial.first, trial.repetition())]
        if anywhere(_unwritten, *outputs):
            unwritten = _unwritten(*outputs)
            element = first_element(unwritten)
            before = "what was in memory before the call"
            return mismatch(element_text(name, element), before, "a result", wrong=unwritten, element=element)
    return None


def _unwritten(first: NDArray[Any], repeated: NDArray[Any]) -> NDArray[np.bool_]:
    return holds_poison(first, POISONS[0]) & holds_poison(repeated, POISONS[1])


@_check("every cell that a window reaches holds an admissible sum", _backward)
def interval(trial: Trial) -> Mismatch | None:
    if not trial.summary.rejected_reached:
        return None
    flags = trial.parts.flags
    return wrong_cells(trial, flags & (REACHED | REJECTED) == REACHED | REJECTED, trial.summary.reached)


@_check("cells that no window reaches are exactly zero", _backward)
def unreached(trial: Trial) -> Mismatch | None:
    if not trial.summary.rejected_unreached:
        return None
    flags, unreached = trial.parts.flags, trial.summary.cells - trial.summary.reached
    return wrong_cells(trial, flags & (REACHED | REJECTED) == REJECTED, unreached)


def _conserves(trial: Trial) -> bool:
    """Exact data: every cell's sum is certain in every order, and a plane's sum fits into float64."""
    if not _owes_all(trial):
        return False
    summary = trial.summary
    certain = summary.single_valued == summary.cells and not summary.special and not summary.inexact_sums
    return certain and 0.0 < summary.total < 2.0 ** (min(summary.least_lattice, 900) + 53)


@_check("on exact data each plane of grad_input sums to its plane of grad_output", _conserves)
def plane_sum(trial: Trial) -> Mismatch | None:
    if not trial.summary.planes_off:
        return None
    owed, got = plane_sums(trial.content, trial.first.output("grad_input"))
    wrong = (got != owed).reshape(trial.case.leading_shape)
    if not wrong.any():
        return None
    plane, element = int(wrong.argmax()), first_element(wrong)
    subject = f"the sum of grad_input's plane {list(element)}"
    return mismatch(subject, got[plane], owed[plane], wrong=wrong, noun="planes", element=element)


@_check("inputs are left as they were", _always)
def inputs_untouched(trial: Trial) -> Mismatch | None:
    for name in trial.case.api.inputs:
        tensor = trial.first.call.tensors[name]
        if unchanged(trial, name):
            continue
        before = as_before(trial.content, name, POISONS[0]).buffer
        if anywhere(np.not_equal, tensor.buffer, before):
            return changed_bytes(name, tensor, before, tensor.buffer != before, "as before the call")
    return None


@_check("nothing is written outside the outputs' elements", _always)
def memory_untouched(trial: Trial) -> Mismatch | None:
    if trial.first.outcome.guard_violations:
        return Mismatch("; ".join(trial.first.outcome.guard_violations))
    outputs = [name for name in trial.case.api.outputs if trespassed(trial.first.call.tensors[name])]
    if not outputs:
        return None
    tensor = trial.first.call.tensors[outputs[0]]
    before = np.broadcast_to(np.uint8(SURROUNDINGS), tensor.buffer.shape)
    because = "as before the call: it belongs to no element"
    found = changed_bytes(outputs[0], tensor, before, trespasses(tensor), because)
    return replace(found, accounted=all(_is_accounted(trial.first, name) for name in outputs))


def _is_accounted(run: Run, name: str) -> bool:
    """Whether an output came back with strides which lead to all that was written outside of its elements."""
    tensor, strides = run.call.tensors[name], run.strides(name)
    if strides == tensor.strides:
        return False
    return not bool((trespasses(tensor) & guard_and_gap_mask(tensor.restrided(strides))).any())


@_check("the same call gives the same bits, whatever was in memory before", lambda trial: trial.is_deterministic)
def repeat(trial: Trial) -> Mismatch | None:
    for number in range(1, trial.repeats + 1):
        found = other_bits(trial, trial.repetition(number), f"in repetition {number}")
        if found:
            return found
    return None


@_check("the same content laid out contiguously gives the same values", _laid_out)
def layout_invariance(trial: Trial) -> Mismatch | None:
    return other_values(trial, trial.first, trial.with_layouts({}), because="as with the contiguous layout")


@_check(
    "another way to make the call gives the same values and stays in its memory",
    lambda trial: bool(trial.backend.modes),
)
def modes(trial: Trial) -> Mismatch | None:
    return _first(_disturbed(trial, trial.in_mode(mode), f"made with {mode}") for mode in trial.backend.modes)


def _has_variants(trial: Trial) -> bool:
    return bool(trial.backend.variants) and (_owes_all(trial) or _readable(trial))


@_check("a way of making the call that other code computes gives what the call owes", _has_variants)
def variants(trial: Trial) -> Mismatch | None:
    made = ((trial.in_mode(variant), f"made with {variant}") for variant in trial.backend.variants)
    return _first(wrong_by_itself(trial, run, how) for run, how in made)


def _first(found: Iterable[Mismatch | None]) -> Mismatch | None:
    """The first that was found; no run after it is made."""
    return next(filter(None, found), None)


@_check(
    "work queued before, behind and beside a call on streams changes nothing",
    lambda trial: trial.backend.streams is not None,
)
def streams(trial: Trial) -> Mismatch | None:
    assert trial.backend.streams is not None
    hazards = trial.backend.streams.hazards
    found = _first(_disturbed(trial, trial.among(hazard), f"made with {hazard}") for hazard in hazards)
    return found or _disturbed_beside(trial)


def _disturbed_beside(trial: Trial) -> Mismatch | None:
    """What is wrong with the call, or with one on other data, when both run at the same time on two streams.

    The other is asked alone first: what is wrong with it then is no matter of streams.
    """
    other = Trial(replace(trial.case, seed=trial.case.seed ^ 1, literals=()), trial.backend)
    if other.first.outcome.status is not Status.COMPLETED:
        return None
    runs = trial.at_once_with(other)
    how = "made at the same time as another call on another stream"
    return _first(_disturbed(*pair, how) for pair in zip((trial, other), runs, strict=True))


def _disturbed(trial: Trial, run: Run | None, how: str) -> Mismatch | None:
    """What is wrong with a run that was made ``how``; None of one that could not be made, too."""
    if run is None:
        return None
    if run.outcome.guard_violations:
        return Mismatch(f"{how}: {'; '.join(run.outcome.guard_violations)}")
    return other_values(trial, run, trial.first, how, "as the plain call gave")


@_check("what was called before changes nothing", _always)
def state(trial: Trial) -> Mismatch | None:
    after = trial.after([case for case in neighbours(trial.case) if case.id not in trial.shunned])
    return other_values(trial, after, trial.first, "after other calls", "as before them") or _wrong_twin(trial)


def _wrong_twin(trial: Trial) -> Mismatch | None:
    """What is wrong with a call that differs from the trial's, which came before, in nothing but its windows."""
    case = twin(trial.case)
    if case is None or case.id in trial.shunned:
        return None
    other = Trial(case, trial.backend)
    if other.first.outcome.status is not Status.COMPLETED:
        return None
    found = interval(other) if _backward(trial) else maximum(other)
    if found is None:
        return None
    return replace(found, message=f"after this call, one with {case.attributes} is wrong: {found.message}")


def _has_producer(trial: Trial) -> bool:
    """Not where the trial itself is given indices of the forward, which nobody else can make, or takes none."""
    takes_none = not trial.backend.abilities(trial.case.api).indices
    return _owes_all(trial) and not (takes_none or trial.case.has_bit_mask or 0 in trial.case.shape)


@_check("indices that the implementation's own forward made are legal, and lead to the right sums", _has_producer)
def round_trip(trial: Trial) -> Mismatch | None:
    indices = trial.device_indices()
    if indices is None:
        return None
    plane = trial.case.plane_size
    outside = (indices < 0) | (indices >= plane)
    if outside.any():
        element = first_element(outside)
        subject = f"{element_text('indices', element)} that the forward made"
        return mismatch(subject, indices[element], f"0 .. {plane - 1}", wrong=outside)
    return wrong_sums(trial, *trial.with_indices(indices), "with the indices of its own forward")


def _shows_device_memory(trial: Trial) -> bool:
    return trial.repeats > 1 and trial.backend.device_memory_in_use() is not None


@_check("repeated calls take no more device memory", _shows_device_memory)
def memory_kept(trial: Trial) -> Mismatch | None:
    """Counted over the second half of the repetitions, by when caches have settled."""
    half = max(trial.repeats // 2, 1)
    levels = []
    for _ in range(2):
        trial.call_often(half)
        levels.append(trial.backend.device_memory_in_use() or 0)
    grown = levels[1] - levels[0]
    if grown <= 0:
        return None
    return mismatch(f"the growth of device memory over {half} identical calls", f"{grown} bytes", "none")


def _has_other_index_dtype(trial: Trial) -> bool:
    other = _other_index_dtype(trial)
    return other is not None and unsupported(trial.backend, trial.case.api, trial.case.dtype, other) is None


def _other_index_dtype(trial: Trial) -> str | None:
    return {"int32": "int64", "int64": "int32"}.get(trial.case.index_dtype)


@_check("int32 and int64 indices give the same values", _has_other_index_dtype)
def index_dtype_invariance(trial: Trial) -> Mismatch | None:
    other = _other_index_dtype(trial)
    assert other is not None
    return other_values(trial, trial.first, trial.with_index_dtype(other), because=f"as with {other} indices")


_SCALE = 3


def _scales(trial: Trial) -> bool:
    """Multiplying by 2**3 leaves every term and every partial sum finite and none subnormal."""
    if not _owes_all(trial) or not trial.is_deterministic:
        return False
    summary = trial.summary
    stays = summary.greatest * 2.0 ** (_SCALE + 1) < trial.fmt.max and summary.least_lattice >= trial.fmt.min_exponent
    return stays and not summary.special


@_check("gradients times 8 give grad_input times 8", _scales)
def scale_equivariance(trial: Trial) -> Mismatch | None:
    outputs = trial.with_scale(_SCALE).output("grad_input"), trial.first.output("grad_input")
    if not anywhere(_scaled_otherwise, *outputs):
        return None
    wrong = where(_scaled_otherwise, *outputs)
    owed = format_value(float(outputs[1][first_element(wrong)]) * 2.0**_SCALE)
    return wrong_element("grad_input", wrong, outputs[0], owed, f"with gradients times {2**_SCALE}")


def _scaled_otherwise(scaled: NDArray[Any], plain: NDArray[Any]) -> NDArray[np.bool_]:
    return differs(scaled.astype(np.float64), plain.astype(np.float64) * 2.0**_SCALE)


@_check("every output is the maximum of its window", _forward)
def maximum(trial: Trial) -> Mismatch | None:
    wrong = _misses(trial, WRONG_MAXIMUM)
    if wrong is None:
        return None
    value, _ = trial.maximum_of(first_element(wrong))
    return wrong_window(trial, "out", wrong, trial.first.output("out"), format_value(value))


@_check("indices are those of the declared rule: the first maximum, or the last NaN, unless it is another", _readable)
def index_rule(trial: Trial) -> Mismatch | None:
    wrong = _misses(trial, WRONG_INDEX)
    if wrong is None:
        return None
    _, index = trial.maximum_of(first_element(wrong))
    return wrong_window(trial, "indices", wrong, trial.output_indices, str(index))


@_check("every index lies in its window and points at the value that came out", _readable)
def index_points(trial: Trial) -> Mismatch | None:
    wrong = _misses(trial, POINTS_ELSEWHERE)
    if wrong is None:
        return None
    value = float(trial.first.output("out")[first_element(wrong)])
    owed = f"a cell of its window that holds {format_value(value)}"
    return wrong_window(trial, "indices", wrong, trial.output_indices, owed)


def _misses(trial: Trial, kind: int) -> NDArray[np.bool_] | None:
    """Which windows are wrong in one way, of the pooled shape; None where none is."""
    if not trial.misses_of_any_kind & kind:
        return None
    return (trial.misses.reshape(trial.case.pooled_shape) & kind) != 0


@_check(
    "a window without cells yields -inf, or what the declared rule says, and an index inside the plane, or -1 for none",
    _gapped,
)
def empty_window(trial: Trial) -> Mismatch | None:
    empty = trial.case.empty_windows
    out, indices = trial.first.output("out"), trial.output_indices
    outside = empty & ((indices < -1) | (indices >= trial.case.plane_size))
    legal, why = f"-1 .. {trial.case.plane_size - 1}", "or the backward would write outside the plane"
    owed = maximum_without_cells(trial.forward_rule, trial.fmt)
    return wrong_window(trial, "out", empty & (out != owed), out, format_value(owed)) or wrong_element(
        "indices", outside, indices, legal, because=why
    )


def _is_watched(trial: Trial) -> bool:
    return trial.first.outcome.changed is not None


@_check(
    "a call leaves its process as it was: rounding mode, flush-to-zero, folder, signals, umask, locale, limits, "
    "threads, children",
    _is_watched,
)
def process_untouched(trial: Trial) -> Mismatch | None:
    changed = next((run.outcome.changed for run in trial.runs if run.outcome.changed), None)
    if changed is None:
        return None
    what, before, after = changed[0]
    others = ", ".join(name for name, _, _ in changed[1:])
    return mismatch(
        f"{what} of the process after the call", after, before, f"and {others} changed, too" if others else ""
    )


IN_COMPANY = (state.__name__, round_trip.__name__)
"""Checks that make calls of other cases in the process of the call that they judge: companions, and producers."""

_COSTLY = tuple(check.__name__ for check in (modes, state, streams, round_trip, memory_kept))

USUAL = tuple(name for name in CHECKS if name not in _COSTLY)
"""Checks of every aspect; the costly ones belong to an aspect of their own."""


def owed_checks(case: Case, ids: Iterable[str]) -> tuple[str, ...]:
    """Those of some checks that judge the case whatever the backend and the data are, if it conforms."""
    return tuple(name for name in ids if isinstance(test := CHECKS[name].applies, OfCase) and test.holds(case))


def run_checks(trial: Trial, ids: tuple[str, ...]) -> tuple[list[str], list[Finding]]:
    """(checks that judged, what they found) for a trial whose first run completed.

    An output of another shape or dtype than was given is all that is said: nothing else can be held against it.
    With other strides it is read as its caller reads it, and judged.
    """
    assert trial.first.outcome.status is Status.COMPLETED
    judged, findings = [], []
    for check in _in_order(ids):
        if check.applies(trial):
            judged.append(check.id)
            finding = check.judge(trial)
            if finding is not None:
                findings.append(finding)
                if check.id == results.__name__ and other_shape(trial.first):
                    break
    return judged, findings


@cache
def _in_order(ids: tuple[str, ...]) -> tuple[Check, ...]:
    """The checks of these ids, of which `results` decides first whether there is anything to judge."""
    return tuple(CHECKS[name] for name in sorted(ids, key=lambda name: name != results.__name__))
