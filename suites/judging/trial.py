"""A trial: one case on one backend, with the runs that checks need, and the exact expected result.

Runs are made on demand and cached: checks share the same variation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Backend, Call, Outcome, Status
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import scatter_sums
from poolproof.references.deviations import Deviations, sequential_sums
from poolproof.references.formats import FORMATS, Float64, FloatFormat
from poolproof.references.forward import Flags, forward_indices, forward_maximum, judge_forward
from poolproof.references.forward_rule import ForwardRule, Ties
from poolproof.references.geometry import Int64
from poolproof.references.layouts import CONTIGUOUS
from poolproof.references.sequences import Actions, calls_in
from poolproof.references.summary import Summary, summarise
from poolproof.reports.rows.guesses import right_rule
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.memory import SMALL, allocate
from poolproof.suites.cases.operands import CaseOperands, make_operands
from poolproof.suites.cases.varying import needs_producer, producers
from poolproof.suites.judging.cells import CellChunks
from poolproof.suites.judging.chunks import are_same_bits
from poolproof.suites.judging.decoder import Fault, decode, inferred_indices
from poolproof.suites.judging.expected import excuse, has_call, refusal, unsupported

SCALE = 3
"""Exponent of the power of two for the gradients of `scale_equivariance`."""


@dataclass(eq=False)
class ExecutedCall:
    """A call with its outcome."""

    call: Call
    outcome: Outcome

    def output(self, name: str) -> NDArray:
        """Return the output as its caller reads it after the call, in logical order."""
        return self.call.tensors[name].restrided(self.strides(name)).array

    def strides(self, name: str) -> tuple[int, ...]:
        return self.outcome.strides.get(name, self.call.tensors[name].strides)


_Variation = tuple[str, Any]
"""The difference of a run from the first: its kind, and the number, dtype or exponent."""

NOT_MADE = "the forward does not make "
"""Start of the reason for a case without a forward; the missing tensor and the cause follow."""


class VariationFailed(Exception):
    """A variation of a completed case did not complete.

    ``excuse`` is the verdict if that is nobody's fault, else None.
    """

    def __init__(self, reason: str, excuse: Verdict | None = None) -> None:
        super().__init__(reason)
        self.excuse = excuse


class ProducerFailed(Exception):
    """The backend's own forward did not make the mask, or the indices, that a case needs; the text says why.

    ``verdict`` is that of the case: refused if the documents allow the forward's refusal, otherwise not run.
    """

    def __init__(self, reason: str, verdict: Verdict = Verdict.NOT_RUN) -> None:
        super().__init__(reason)
        self.verdict = verdict


@dataclass(eq=False)
class Trial:
    """A case on a backend. ``repeats`` is the number of further runs for the determinism check.

    Cases of ``excluded_ids`` must not be called before it; ``checks`` will judge it. The check `state` repeats the call
    after ``neighbours``, and makes the calls of each of the ``pairs`` in turn.
    """

    case: Case
    backend: Backend
    repeats: int = 1
    excluded_ids: Collection[str] = ()
    checks: Collection[str] = ()
    neighbours: Sequence[Case] = ()
    pairs: Sequence[tuple[Case, ...]] = ()
    _runs: dict[_Variation, ExecutedCall] = field(default_factory=dict, init=False)
    _made_ahead: dict[_Variation, ExecutedCall] = field(default_factory=dict, init=False)
    _equals_baseline: dict[tuple[ExecutedCall, str], bool] = field(default_factory=dict, init=False)

    @cached_property
    def operands(self) -> CaseOperands:
        """The operands; `ProducerFailed` if they need a mask, or indices, that the backend does not make."""
        operands, case = make_operands(self.case), self.case
        if case.api.is_backward and not self.backend.abilities(case.api).indices and not case.has_empty_window:
            return self._on_own_indices(operands)
        if not needs_producer(case):
            return operands
        if case.has_bit_mask:
            mask = self.producing("a mask of bits").baseline.output("indices")
            return replace(operands, mask=np.ascontiguousarray(mask))
        indices = self.producing("the indices of windows without a cell").output_indices
        return replace(operands, indices=indices.reshape(operands.indices.shape))

    def _on_own_indices(self, operands: CaseOperands) -> CaseOperands:
        """Return the operands with the indices of a backward that takes none: those of its rule, or those it chose."""

        def sums_of(operands: CaseOperands) -> Float64 | None:
            run = ExecutedCall(call := allocate(operands), self.backend.run(call))
            return run.output("grad_input").astype(np.float64) if run.outcome.status is Status.COMPLETED else None

        call = allocate(operands)
        rule = self.backend.forward_rule(call)
        if not rule.leaves_open:
            indices = forward_indices(operands.planes, self.case.axes, rule)
            last = replace(rule, ties=Ties.LAST)
            if rule.ties.takes_several and (forward_indices(operands.planes, self.case.axes, last) != indices).any():
                tied = f"tied maxima ({rule.ties} by the declared rule)"
                raise ProducerFailed(f"{tied} are not judged, and there are some")
            return operands.with_indices(indices)
        if not self.backend.is_deterministic(call):
            raise ProducerFailed("its choice among tied maxima is unknown: it may differ between calls")
        return operands.with_indices(inferred_indices(operands, rule, sums_of))

    @property
    def fmt(self) -> FloatFormat:
        return FORMATS[self.case.dtype]

    @cached_property
    def baseline(self) -> ExecutedCall:
        """The first run of the case, on memory filled with the first poison.

        If the inputs are small, the variations that checks need are called with it: a request to a host takes longer.
        """
        call = allocate(self.operands)
        is_small = all(len(call.tensors[name].buffer) <= SMALL for name in call.operator.inputs)
        foreseen = list(self._needed_variations()) if is_small else []
        varied = [self._varied(key) for key in foreseen]
        outcome, *outcomes = self.backend.run_all([call, *varied])
        self._made_ahead = dict(zip(foreseen, map(ExecutedCall, varied, outcomes), strict=False))
        return ExecutedCall(call, outcome)

    def _needed_variations(self) -> Iterator[_Variation]:
        """Yield the variations that the checks need if the call completes."""
        if "repeat" in self.checks and self.repeats:
            yield "repeat", 1
        if "layout_invariance" in self.checks and self.case.layouts:
            yield "layouts", ()
        if "index_dtype_invariance" in self.checks and self.other_index_dtype:
            yield "index_dtype", self.other_index_dtype
        if "scale_equivariance" in self.checks and self.case.api.is_backward:
            with np.errstate(invalid="ignore"):  # NaN in formats that are not numpy's own
                stays_finite = np.abs(self.operands.gradient).max(initial=0) < self.fmt.max / 2.0 ** (SCALE + 1)
            if stays_finite:
                yield "scale", SCALE

    @cached_property
    def other_index_dtype(self) -> str:
        """Another index dtype that the backend takes; empty if there is none."""
        case, other = self.case, {"int32": "int64", "int64": "int32"}.get(self.case.index_dtype, "")
        return other if other and unsupported(self.backend, case.api, case.dtype, other) is None else ""

    @cached_property
    def model(self) -> AccumulationModel:
        return self.backend.accumulation(self.baseline.call)

    @cached_property
    def forward_rule(self) -> ForwardRule:
        return self.backend.forward_rule(self.baseline.call)

    @cached_property
    def is_deterministic(self) -> bool:
        return self.backend.is_deterministic(self.baseline.call)

    @cached_property
    def summary(self) -> Summary:
        """The judgement of grad_input of the first run; only for backward operators."""
        chunks = self.operands.chunks(self.baseline.output("grad_input"))
        return summarise(chunks, self.case.plane_size, self.fmt, self.model)

    def deviations(self, ranges: Iterable[slice]) -> Iterator[Deviations]:
        """Yield the deviations of ranges of flat cells of the first run's grad_input from the exact sums.

        Some standards compare with a second implementation: float32 accumulation in memory order, rounded once at the
        end.
        """
        flat = self.baseline.output("grad_input").reshape(-1)
        for part in ranges:
            outputs, (cells, terms) = flat[part].astype(np.float64), self.operands.gradients_into(part)
            second = sequential_sums(cells, terms, outputs.size, self.fmt)
            yield Deviations(outputs, scatter_sums(cells, terms, outputs.size), self.fmt, second)

    @cached_property
    def gradient_input(self) -> Float64:
        return self.baseline.output("grad_input").astype(np.float64).ravel()

    @cached_property
    def output_indices(self) -> Int64:
        return self.indices_of(self.baseline)

    def indices_of(self, run: ExecutedCall) -> Int64:
        """Return the decoded indices of a run of a forward, in the pooled shape."""
        return self.case.api.indices.decode(run.output("indices"), self.case.pooled_shape)

    @cached_property
    def cells(self) -> CellChunks:
        """The cells of the first run's grad_input; only for backward operators."""
        return CellChunks(self.operands, self.baseline.output("grad_input"), self.model)

    @cached_property
    def faults(self) -> list[Fault]:
        """The misrouted windows, if the gradients are coded; only for backward operators."""
        return [] if self.case.has_empty_window else decode(self.operands, self.baseline.output("grad_input"))

    @property
    def fault_records(self) -> list[dict[str, Any]]:
        """The first 100 faults, as in rows and evidence."""
        return [fault.to_record(self.case) for fault in self.faults[:100]]

    def maximum_of(self, window: Sequence[int]) -> tuple[float, int]:
        """Return the expected (maximum, index) of a window, given its coordinates in the output."""
        plane, number = divmod(int(np.ravel_multi_index(window, self.case.pooled_shape)), self.case.plane_windows)
        maxima, indices = forward_maximum(self.operands.planes[plane : plane + 1], self.case.axes, self.forward_rule)
        return float(maxima.flat[number]), int(indices.flat[number])

    @cached_property
    def forward_flags(self) -> Flags:
        return self.forward_flags_of(self.baseline)

    @cached_property
    def guessed_rule(self) -> str:
        """The rule that would make all outputs right, as a guess in a finding; empty if there is none."""
        out, wrong = self.baseline.output("out"), int(np.argmax(self.forward_flags.any(axis=1)))
        return right_rule(self.operands.planes, self.case.axes, out, self.output_indices, self.forward_rule, wrong)

    def forward_flags_of(self, run: ExecutedCall) -> Flags:
        """Return the faults of each window's maximum and index, flat in each plane; only for forward operators.

        Flags of indices mean nothing if these are a mask of bits.
        """
        out = run.output("out")
        indices = np.broadcast_to(-1, out.shape) if self.case.has_bit_mask else self.indices_of(run)
        return judge_forward(self.operands.planes, self.case.axes, out, indices, self.forward_rule)

    def repetition(self, number: int = 1) -> ExecutedCall:
        """Repeat the call; for odd numbers with other poison, at other addresses and before tempting data."""
        return self.variation("repeat", number)

    def equals_baseline(self, run: ExecutedCall, name: str) -> bool:
        """Tell whether an output of another run has the bits of the first run's; cached for all checks."""
        key = run, name
        if key not in self._equals_baseline:
            own, other = (self.case.known(name, each.output(name)) for each in (self.baseline, run))
            self._equals_baseline[key] = are_same_bits(own, other)
            equal = (self._equals_baseline.get((run, each)) for each in self.case.api.outputs)
            if not run.outcome.strides and all(equal):
                run.call = self.baseline.call  # one copy of equal bits is enough
        return self._equals_baseline[key]

    @property
    def runs(self) -> list[ExecutedCall]:
        """The runs so far with kept outputs, the first one first."""
        return [self.baseline, *self._runs.values()]

    @property
    def repetitions(self) -> list[ExecutedCall]:
        return [run for (kind, _), run in self._runs.items() if kind == "repeat"]

    def forget_variations(self) -> None:
        """Free the memory of all runs except the first, after all checks."""
        for runs in (self._runs, self._made_ahead, self._equals_baseline):
            runs.clear()

    def in_mode(self, mode: str) -> ExecutedCall | None:
        """Make the call in another way (`Backend.modes`, `Backend.variants`); None if it is not available."""
        run = ExecutedCall(call := self.new_call(), self.backend.run(call, mode))
        return None if run.outcome.status is Status.UNAVAILABLE else self._completed(run, f"made with {mode}")

    def in_sequence(self, actions: Actions, other: Trial, context: str) -> list[tuple[Trial, ExecutedCall]]:
        """Make the call, and another trial's, among other actions; return the runs with results, with their trials."""
        trials = (self, other)[: calls_in(actions)]
        calls = [trial.new_call() for trial in trials]
        result = self.backend.run_sequence(actions, calls)
        if result.status:
            raise VariationFailed(f"the case runs, but {context} it ends as {Status.REFUSED}: {result.text}")
        outcome = replace(self.baseline.outcome, guard_violations=result.guard_violations, sanitizer=None)
        return [(trials[number], ExecutedCall(calls[number], outcome)) for number in result.computed]

    def after(self, cases: Sequence[Case]) -> ExecutedCall:
        """Repeat the call after calls of other cases; the results of those do not matter."""
        for case in cases:
            self.backend.run(allocate(make_operands(case)))
        run = ExecutedCall(call := self.new_call(), self.backend.run(call))
        return self._completed(run, "made after other calls", is_same=True)

    def with_indices(self, indices: Int64) -> tuple[ExecutedCall, CaseOperands]:
        """Run the backward on other indices, all inside the plane; return the run and its operands.

        The indices get the case's own layout, unless that repeats elements.
        """
        operands = replace(self.operands, indices=indices)
        layouts = {name: self.case.layout(name) for name in self.case.api.tensors}
        if layouts["indices"].repeats_elements:
            layouts["indices"] = CONTIGUOUS
        run = ExecutedCall(call := allocate(operands, layouts=layouts), self.backend.run(call))
        return self._completed(run, "given the indices of its own forward"), operands

    def producing(self, what: str) -> Trial:
        """Run the backend's own forward that makes ``what`` this case needs, the first with dtypes of the backend.

        `ProducerFailed` is raised if none makes it.
        """
        producer = next((each for each in producers(self.case) if has_call(self.backend, each)), None)
        if producer is None:
            raise ProducerFailed(f"{what} can only be made by the forward, which this backend does not have")
        if producer.id in self.excluded_ids:
            raise ProducerFailed(f"{what} can only be made by the forward, which deviates by itself")
        forward = Trial(producer, self.backend)
        call, outcome = forward.baseline.call, forward.baseline.outcome
        if outcome.status is Status.COMPLETED:
            return forward
        documented = refusal(self.backend, producer, call)
        is_refused = documented is not None and documented.allows(outcome)
        verdict = Verdict.REFUSED if is_refused else Verdict.NOT_RUN
        raise ProducerFailed(f"{NOT_MADE}{what}: {outcome.message}", verdict)

    def _completed(self, run: ExecutedCall, context: str, is_same: bool = False) -> ExecutedCall:
        """Return a completed run; raise `VariationFailed` otherwise. No document excuses a refusal of the same call."""
        status = run.outcome.status
        if status is not Status.COMPLETED:
            reason = f"the case runs, but {context} it ends as {status}: {run.outcome.message}"
            is_accused = is_same and status is Status.REFUSED
            raise VariationFailed(reason, None if is_accused else excuse(self.backend, run.outcome))
        return run

    def variation(self, kind: str, what: Any = ()) -> ExecutedCall:
        """Return the run of a ``kind``: layouts (contiguous), index_dtype, scale (a power of 2) or repeat."""
        key = kind, what
        if key not in self._runs:
            run = self._made_ahead.pop(key, None) or ExecutedCall(call := self._varied(key), self.backend.run(call))
            call = self._completed(run, f"varied by {key}", kind == "repeat").call
            outputs = {name: call.tensors[name] for name in self.case.api.outputs}
            self._runs[key] = ExecutedCall(replace(call, tensors=outputs), run.outcome)
        return self._runs[key]

    def _varied(self, key: _Variation) -> Call:
        match key:
            case "repeat", number:
                return allocate(self.operands, again=bool(number % 2))
            case "layouts", _:
                return allocate(self.operands, layouts={})
            case "index_dtype", index_dtype:
                return allocate(self.operands, index_dtype=index_dtype)
            case _, exponent:
                return allocate(self.operands.scaled(exponent))

    def calls_of_shapes(self, number: int) -> Iterator[Call]:
        """Yield the case in ``number`` shapes: its own and longer ones; a case of literal data only once."""
        for more in range(1 if self.case.literals else number):
            first, *middle, last = self.case.shape
            longer = replace(self.case, shape=(first + more % 4, *middle, last + more // 4))
            yield Trial(longer, self.backend).new_call()

    def new_call(self) -> Call:
        """Allocate the case's call in memory filled with the first poison."""
        return allocate(self.operands)
