"""Checks of writes: every output element, nothing else in memory, and no state of the process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Backend, Call, MemoryInUse, Tensor, can_run
from poolproof.backends.host.protocol import FIRST_CALL
from poolproof.references.sequences import REFUSED
from poolproof.suites.cases.memory import (
    GAP_FILL,
    has_intact_guards,
    holds_poison,
    lies_outside,
    poisons,
    rebuild_input,
)
from poolproof.suites.judging.checks.registry import check
from poolproof.suites.judging.chunks import anywhere, are_same_bits
from poolproof.suites.judging.comparing import (
    changed_bytes,
    is_written_out_of_bounds,
    other_shape,
    out_of_bounds_writes,
)
from poolproof.suites.judging.findings import Mismatch, element_text, first_element, mismatch
from poolproof.suites.judging.trial import Trial

_MOST_SHOWN = 4
"""Most reports of a sanitizer in a message."""

_BATCHES = 5
"""Batches of equal calls."""

_PROVING = 15
"""Batches that tell a leak from a cache that fills: growth in all of them is a leak."""

_CALLS = 200
"""Fewest calls of a batch for growth of host memory to count: threads keep memory for long on a busy machine."""

_BYTES = 24
"""Least bytes that a leak adds per call: the C library allocates at least 32."""

_SHAPES = 16
"""Shapes of the calls in a batch of different ones, which shows memory kept at each change of shape."""

_MOST_ELEMENTS = 1 << 16
"""Most elements of self for calls of different shapes: 80 calls of 10^7 elements would take most of a replay."""


@check("outputs keep the shape, dtype and strides they were given", leaves_memory_intact=True)
def results(trial: Trial) -> Mismatch | None:
    """Compare strides only of axes with more than one element."""
    run = trial.baseline
    if other := other_shape(run):
        return other
    for name in run.outcome.strides:
        tensor, strides = run.call.tensors[name], run.strides(name)
        pairs = zip(tensor.shape, strides, tensor.strides, strict=True)
        if 0 not in tensor.shape and any(size > 1 and read != given for size, read, given in pairs):
            reason = "as the tensor was handed in"
            return mismatch(f"the strides of {name} after the call", list(strides), list(tensor.strides), reason)
    return None


@check("every output element is written")
def written(trial: Trial) -> Mismatch | None:
    for name in trial.case.api.outputs:
        if trial.equals_baseline(trial.repetition(), name):
            continue  # unwritten elements would differ: each run has another poison
        outputs = [trial.case.known(name, run.output(name)) for run in (trial.baseline, trial.repetition())]
        unwritten_of = partial(_unwritten, poisons(trial.case))
        if anywhere(unwritten_of, *outputs):
            unwritten = unwritten_of(*outputs)
            element = first_element(unwritten)
            before = "what was in memory before the call, or beside the elements of an input"
            return mismatch(element_text(name, element), before, "a result", wrong=unwritten, element=element)
    return None


def _unwritten(bytes_: tuple[int, int], first: NDArray[Any], repeated: NDArray[Any]) -> NDArray[np.bool_]:
    return holds_poison(first, bytes_[0]) & holds_poison(repeated, bytes_[1])


@check("inputs are left as they were")
def inputs_untouched(trial: Trial) -> Mismatch | None:
    for name in trial.case.api.inputs:
        if _holds_operands(trial, name):
            continue
        tensor = trial.baseline.call.tensors[name]
        before = rebuild_input(trial.operands, name).buffer
        if anywhere(np.not_equal, tensor.buffer, before):
            return changed_bytes(name, tensor, before, tensor.buffer != before, "as before the call")
    return None


def _holds_operands(trial: Trial, name: str) -> bool:
    """Tell whether a dense numeric input is unchanged; False also if only a rebuilt input can show it."""
    filled = {"self": trial.operands.values, "grad_output": trial.operands.gradient}.get(name)
    tensor = trial.baseline.call.tensors[name]
    if filled is None or not (trial.case.forms[name].is_dense and has_intact_guards(tensor, poisons(trial.case)[0])):
        return False
    return are_same_bits(tensor.array, filled)


@check("nothing is written outside the outputs' elements")
def memory_untouched(trial: Trial) -> Mismatch | None:
    if trial.baseline.outcome.guard_violations:
        return Mismatch("; ".join(trial.baseline.outcome.guard_violations))
    outputs = [name for name in trial.case.api.outputs if is_written_out_of_bounds(trial.baseline.call.tensors[name])]
    if not outputs:
        return None
    tensor = trial.baseline.call.tensors[outputs[0]]
    before = np.broadcast_to(np.uint8(GAP_FILL), tensor.buffer.shape)
    reason = "as before the call: it belongs to no element"
    poison = poisons(trial.case)[0]
    found = changed_bytes(outputs[0], tensor, before, out_of_bounds_writes(tensor), reason)
    all_outputs = (trial.baseline.call.tensors[name] for name in trial.case.api.outputs)
    return replace(found, accounted=all(_has_place_for_all(output, poison) for output in all_outputs))


def _has_place_for_all(tensor: Tensor, poison: int) -> bool:
    """Tell whether the written gaps of an output can hold its unwritten elements, and its guards are intact."""
    in_gaps = lies_outside(tensor) & ~holds_poison(tensor.buffer.view(tensor.dtype), GAP_FILL)
    is_left = holds_poison(tensor.array, poison)
    return has_intact_guards(tensor, GAP_FILL) and bool(np.count_nonzero(in_gaps) >= np.count_nonzero(is_left))


@check(
    "sanitizers inside the implementation's process report no fault",
    is_shown_by=lambda trial: trial.baseline.outcome.sanitizer is not None,
)
def sanitizer(trial: Trial) -> Mismatch | None:
    reports = next((run.outcome.sanitizer for run in trial.runs if run.outcome.sanitizer), None)
    if not reports:
        return None
    more = f"; and {len(reports) - _MOST_SHOWN} more" if len(reports) > _MOST_SHOWN else ""
    return Mismatch("; ".join(reports[:_MOST_SHOWN]) + more, got=reports[0])


@check(
    "repeated calls, refused ones, and small calls of many shapes in turn take no more memory of the device, nor of "
    "their process",
    is_shown_by=lambda trial: trial.repeats > 1 and trial.backend.memory_after(trial.new_call(), 0) != MemoryInUse(),
)
def memory_kept(trial: Trial) -> Mismatch | None:
    """Compare the memory between batches; caches settle in the first, and growth extends the test to `_PROVING`."""
    call, backend, each = trial.new_call(), trial.backend, max(trial.repeats // _BATCHES, 1)
    kinds = {"identical": [call]} | ({"refused": [call]} if can_run(backend, REFUSED) else {})
    if prod(trial.case.shape) <= _MOST_ELEMENTS:
        kinds["different"] = [*trial.calls_of_shapes(_SHAPES)]
    for kind, calls in kinds.items():
        count = each if len(calls) == 1 else 1
        measured = partial(_memory_after, backend, calls, count, kind == "refused")
        levels = [measured()]
        while len(levels) < _BATCHES or (len(levels) < _PROVING and _grows_always(levels, count)):
            levels.append(measured())
        number = f"{(len(levels) - 1) * count * len(calls)} {kind} calls"
        if (grown := (levels[-1].device or 0) - (levels[0].device or 0)) > 0:
            return mismatch(f"the growth of device memory over {number}", f"{grown} bytes", "none")
        if _grows_always(levels, count):
            grown = (levels[-1].host or 0) - (levels[0].host or 0)
            what = f"the growth of the process's own memory over {number}, in each {count} of them"
            return mismatch(what, f"{grown} bytes", "none")
    return None


def _memory_after(backend: Backend, calls: Sequence[Call], times: int, refused: bool) -> MemoryInUse:
    """Return the memory in use after ``times`` calls of each of ``calls``."""
    return [backend.memory_after(call, times, refused) for call in calls][-1]


def _grows_always(levels: Sequence[MemoryInUse], calls: int) -> bool:
    """Tell whether host memory grew in every batch of ``calls`` calls, at least as much as a leak in each call."""
    grown = [(after.host or 0) - (before.host or 0) for before, after in pairwise(levels)]
    return calls >= _CALLS and min(grown) >= _BYTES * calls


@check(
    "a call leaves its process as it was: rounding mode, flush-to-zero, folder, signals, umask, locale, limits, "
    "threads, children",
    is_shown_by=lambda trial: trial.baseline.outcome.changed is not None,
)
def process_untouched(trial: Trial) -> Mismatch | None:
    changed = next((run.outcome.changed for run in trial.runs if run.outcome.changed), None)
    if changed and all(what in FIRST_CALL for what, _, _ in changed):
        again = {what for what, _, _ in trial.after(()).outcome.changed or ()}
        changed = tuple(change for change in changed if change[0] in again)
    if not changed:
        return None
    what, before, after = changed[0]
    further = ", ".join(name for name, _, _ in changed[1:])
    reason = f"and {further} changed, too" if further else ""
    return mismatch(f"{what} of the process after the call", after, before, reason)
