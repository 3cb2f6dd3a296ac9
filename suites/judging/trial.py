"""A trial: one case on one backend, with the runs that checks need, and the exact truth they are held against.

Runs are made on demand and cached, so that two checks that need the same variation share it.
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
"""The power of two by which gradients are multiplied to see grad_input multiplied by it."""


@dataclass(eq=False)
class ExecutedCall:
    """One executed call."""

    call: Call
    outcome: Outcome

    def output(self, name: str) -> NDArray:
        """Return the output as its caller reads it after the call, in logical order."""
        return self.call.tensors[name].restrided(self.strides(name)).array

    def strides(self, name: str) -> tuple[int, ...]:
        return self.outcome.strides.get(name, self.call.tensors[name].strides)


_Variation = tuple[str, Any]
"""What is other in a run than in the first: its kind, and the number, dtype or exponent."""

NOT_MADE = "the forward does not make "
"""How the reason begins of a case whose forward was not made; what, and why, follow."""


class VariationFailed(Exception):
    """A variation of a case that completed did not complete itself; ``excuse`` is that of who is not accused of it."""

    def __init__(self, reason: str, excuse: Verdict | None = None) -> None:
        super().__init__(reason)
        self.excuse = excuse


class ProducerFailed(Exception):
    """The backend's own forward did not make the mask, or the indices, that a case needs; the text says why.

    ``verdict`` is that of the case: refused, where the forward was as its documents say that it may, or not run.
    """

    def __init__(self, reason: str, verdict: Verdict = Verdict.NOT_RUN) -> None:
        super().__init__(reason)
        self.verdict = verdict


@dataclass(eq=False)
class Trial:
    """``case`` on ``backend``. ``repeats`` is how many further runs the determinism check may spend.

    ``excluded_ids`` are ids of cases that are not to be called before it; ``checks`` are those that will judge it.
    For the check `state`: the call is made again after ``neighbours``, and the calls of each of the ``pairs`` in turn.
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
        """The operands; `ProducerFailed` where they need a mask, or indices, that the backend does not make."""
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
        """Take the indices of an implementation that takes none: those of its own rule, or of its own choice."""

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
            raise ProducerFailed("which of tied maxima it takes cannot be told, for it may be others in each call")
        return operands.with_indices(inferred_indices(operands, rule, sums_of))

    @property
    def fmt(self) -> FloatFormat:
        return FORMATS[self.case.dtype]

    @cached_property
    def baseline(self) -> ExecutedCall:
        """The case as it is, on memory filled with the first poison.

        Variations of it that checks need anyway are called along with it if the inputs are small: to ask a host takes
        longer than they do.
        """
        call = allocate(self.operands)
        is_small = all(len(call.tensors[name].buffer) <= SMALL for name in call.operator.inputs)
        foreseen = list(self._needed_variations()) if is_small else []
        varied = [self._varied(key) for key in foreseen]
        outcome, *others = self.backend.run_all([call, *varied])
        self._made_ahead = dict(zip(foreseen, map(ExecutedCall, varied, others), strict=False))
        return ExecutedCall(call, outcome)

    def _needed_variations(self) -> Iterator[_Variation]:
        """Yield the variations that the checks need of a call that completes."""
        if "repeat" in self.checks and self.repeats:
            yield "repeat", 1
        if "layout_invariance" in self.checks and self.case.layouts:
            yield "layouts", ()
        if "index_dtype_invariance" in self.checks and self.other_index_dtype:
            yield "index_dtype", self.other_index_dtype
        if "scale_equivariance" in self.checks and self.case.api.is_backward:
            with np.errstate(invalid="ignore"):  # NaN in formats that numpy has not by itself
                stays_finite = np.abs(self.operands.gradient).max(initial=0) < self.fmt.max / 2.0 ** (SCALE + 1)
            if stays_finite:
                yield "scale", SCALE

    @cached_property
    def other_index_dtype(self) -> str:
        """Another dtype of indices that the backend takes; empty if there is none."""
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
        """What the judgement of grad_input of the first run comes to; backward operators only."""
        chunks = self.operands.chunks(self.baseline.output("grad_input"))
        return summarise(chunks, self.case.plane_size, self.fmt, self.model)

    def deviations(self, ranges: Iterable[slice]) -> Iterator[Deviations]:
        """Set ranges of flat cells of grad_input of the first run beside the exact sums.

        The second implementation that some standards compare with is float32 accumulation in memory order, narrowed
        once.
        """
        came_out = self.baseline.output("grad_input").reshape(-1)
        for part in ranges:
            outputs, (cells, terms) = came_out[part].astype(np.float64), self.operands.gradients_into(part)
            second = sequential_sums(cells, terms, outputs.size, self.fmt)
            yield Deviations(outputs, scatter_sums(cells, terms, outputs.size), self.fmt, second)

    @cached_property
    def gradient_input(self) -> Float64:
        return self.baseline.output("grad_input").astype(np.float64).ravel()

    @cached_property
    def output_indices(self) -> Int64:
        return self.indices_of(self.baseline)

    def indices_of(self, run: ExecutedCall) -> Int64:
        """Decode the indices that a run of a forward put out, of the pooled shape."""
        return self.case.api.indices.decode(run.output("indices"), self.case.pooled_shape)

    @cached_property
    def cells(self) -> CellChunks:
        """grad_input of the first run cell by cell; backward operators only."""
        return CellChunks(self.operands, self.baseline.output("grad_input"), self.model)

    @cached_property
    def faults(self) -> list[Fault]:
        """The windows that went astray, where the gradients are coded; backward operators only."""
        return [] if self.case.has_empty_window else decode(self.operands, self.baseline.output("grad_input"))

    @property
    def fault_records(self) -> list[dict[str, Any]]:
        """The first 100 faults, as rows and evidence have them."""
        return [fault.to_record(self.case) for fault in self.faults[:100]]

    def maximum_of(self, window: Sequence[int]) -> tuple[float, int]:
        """Return (maximum, index) expected of one window, by its coordinates in the output."""
        plane, number = divmod(int(np.ravel_multi_index(window, self.case.pooled_shape)), self.case.plane_windows)
        maxima, indices = forward_maximum(self.operands.planes[plane : plane + 1], self.case.axes, self.forward_rule)
        return float(maxima.flat[number]), int(indices.flat[number])

    @cached_property
    def forward_flags(self) -> Flags:
        return self.forward_flags_of(self.baseline)

    def forward_flags_of(self, run: ExecutedCall) -> Flags:
        """Mark what is wrong with each window's maximum and index, flat in each plane; forward operators only.

        Flags about indices mean nothing where those are bits, which nobody can read.
        """
        out = run.output("out")
        indices = np.broadcast_to(-1, out.shape) if self.case.has_bit_mask else self.indices_of(run)
        return judge_forward(self.operands.planes, self.case.axes, out, indices, self.forward_rule)

    def repetition(self, number: int = 1) -> ExecutedCall:
        """Make the call once more; for odd numbers on other poison, at other addresses and before tempting data."""
        return self.variation("repeat", number)

    def equals_baseline(self, run: ExecutedCall, name: str) -> bool:
        """Tell whether an output of another run holds the bits of the first run's; compared once for all checks."""
        key = run, name
        if key not in self._equals_baseline:
            own, other = (self.case.known(name, each.output(name)) for each in (self.baseline, run))
            self._equals_baseline[key] = are_same_bits(own, other)
            equal = (self._equals_baseline.get((run, each)) for each in self.case.api.outputs)
            if not run.outcome.strides and all(equal):
                run.call = self.baseline.call  # of equal bits one copy is enough
        return self._equals_baseline[key]

    @property
    def runs(self) -> list[ExecutedCall]:
        """Those made so far whose outputs are kept, the first before all others."""
        return [self.baseline, *self._runs.values()]

    @property
    def repetitions(self) -> list[ExecutedCall]:
        return [run for (kind, _), run in self._runs.items() if kind == "repeat"]

    def forget_variations(self) -> None:
        """Give the memory back of all runs but the first, once every check has looked at them."""
        for runs in (self._runs, self._made_ahead, self._equals_baseline):
            runs.clear()

    def in_mode(self, mode: str) -> ExecutedCall | None:
        """Make the call in another way (`Backend.modes`, `Backend.variants`); None where there is none such."""
        run = ExecutedCall(call := self.new_call(), self.backend.run(call, mode))
        return None if run.outcome.status is Status.UNAVAILABLE else self._completed(run, f"made with {mode}")

    def in_sequence(self, actions: Actions, other: Trial, context: str) -> list[tuple[Trial, ExecutedCall]]:
        """Make the call, and another trial's, among other actions; those that have results, with their trials."""
        trials = (self, other)[: calls_in(actions)]
        calls = [trial.new_call() for trial in trials]
        result = self.backend.run_sequence(actions, calls)
        if result.status:
            raise VariationFailed(f"the case runs, but {context} it ends as {Status.REFUSED}: {result.text}")
        outcome = replace(self.baseline.outcome, guard_violations=result.guard_violations, sanitizer=None)
        return [(trials[number], ExecutedCall(calls[number], outcome)) for number in result.computed]

    def after(self, cases: Sequence[Case]) -> ExecutedCall:
        """Make the call once more, after calls of other cases, whatever comes of those."""
        for case in cases:
            self.backend.run(allocate(make_operands(case)))
        run = ExecutedCall(call := self.new_call(), self.backend.run(call))
        return self._completed(run, "made after other calls", is_same=True)

    def with_indices(self, indices: Int64) -> tuple[ExecutedCall, CaseOperands]:
        """Run the backward on other indices, all inside the plane; return what is then expected, too.

        They are laid out as the case's own, unless those share memory, which these may not.
        """
        operands = replace(self.operands, indices=indices)
        layouts = {name: self.case.layout(name) for name in self.case.api.tensors}
        if layouts["indices"].repeats_elements:
            layouts["indices"] = CONTIGUOUS
        run = ExecutedCall(call := allocate(operands, layouts=layouts), self.backend.run(call))
        return self._completed(run, "given the indices of its own forward"), operands

    def producing(self, what: str) -> Trial:
        """Run the backend's own forward that makes ``what`` this case needs: the first whose dtypes the backend has.

        `ProducerFailed` where it makes none.
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
        """Return a run that completed; the `VariationFailed` of the same call again is no matter of documents."""
        status = run.outcome.status
        if status is not Status.COMPLETED:
            reason = f"the case runs, but {context} it ends as {status}: {run.outcome.message}"
            is_accused = is_same and status is Status.REFUSED
            raise VariationFailed(reason, None if is_accused else excuse(self.backend, run.outcome))
        return run

    def variation(self, kind: str, what: Any = ()) -> ExecutedCall:
        """Run it on contiguous ``layouts``, with another ``index_dtype``, or on gradients times 2 to a ``scale``."""
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
        """Place the case in ``number`` shapes: its own and longer ones; literal data only once."""
        for more in range(1 if self.case.literals else number):
            first, *middle, last = self.case.shape
            longer = replace(self.case, shape=(first + more % 4, *middle, last + more // 4))
            yield Trial(longer, self.backend).new_call()

    def new_call(self) -> Call:
        """Place the case as it is in memory filled with the first poison."""
        return allocate(self.operands)
