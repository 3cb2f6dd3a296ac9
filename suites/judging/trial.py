"""One case on one backend: the runs that checks ask for, and the exact truth they are held against.

Runs are made on demand and kept, so that two checks that need the same variation share it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Backend, Call, Hazard, Outcome, Status
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import Admissible, admissible
from poolproof.references.deviations import Deviations
from poolproof.references.formats import FORMATS, Float64, FloatFormat
from poolproof.references.forward import Flags, forward_indices, forward_maximum, judge_forward
from poolproof.references.forward_rule import ForwardRule
from poolproof.references.geometry import Int64
from poolproof.references.summary import Summary, summarise
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.layouts import CONTIGUOUS, Layout
from poolproof.suites.cases.memory import POISONS, allocate, kept_inputs
from poolproof.suites.cases.neighbours import needs_producer, producers
from poolproof.suites.cases.operands import Contents, contents
from poolproof.suites.judging.choices import chosen_indices
from poolproof.suites.judging.decoder import Fault, decode
from poolproof.suites.judging.owed import refusal, unsupported
from poolproof.suites.judging.parts import OWES_BITS, Parts
from poolproof.suites.judging.slabs import are_same_bits

_MOST_FAULTS = 100
"""Windows gone astray that are told of one case."""


@dataclass(frozen=True, eq=False)
class Run:
    """One executed call; ``before`` is what the memory of some of its inputs held before it, where that was kept."""

    call: Call
    outcome: Outcome
    before: Mapping[str, bytes] = field(default_factory=dict)

    def output(self, name: str) -> NDArray:
        """The output as its caller reads it after the call, in logical order."""
        tensor = self.call.tensors[name]
        strides = self.outcome.strides.get(name, tensor.strides)
        return tensor.array if strides == tensor.strides else tensor.restrided(strides).array

    def without_inputs(self) -> Run:
        """The same, with no memory but that of the outputs."""
        outputs = {name: self.call.tensors[name] for name in self.call.operator.outputs}
        call = Call(self.call.operator, self.call.attributes, outputs, self.call.deterministic)
        return Run(call, self.outcome)

    def strides(self, name: str) -> tuple[int, ...]:
        """The strides through which the caller reads an output: those of the call, or those it was left with."""
        return self.outcome.strides.get(name, self.call.tensors[name].strides)


class RunFailed(Exception):
    """A variation of a case that completed did not complete itself."""


class NotMade(Exception):
    """The backend's own forward did not make the mask, or the indices, that a case needs; the text says why.

    ``refused``: it refused the call, as its documents say that it may.
    """

    def __init__(self, reason: str, refused: bool = False) -> None:
        super().__init__(reason)
        self.refused = refused


class Trial:
    """``case`` on ``backend``. ``repeats`` is how many further runs the determinism check may spend.

    ``shunned`` are ids of cases that are not to be called before it.
    """

    def __init__(self, case: Case, backend: Backend, repeats: int = 1, shunned: Collection[str] = ()) -> None:
        self.case = case
        self.backend = backend
        self.repeats = repeats
        self.shunned = shunned
        self._runs: dict[object, Run] = {}
        self._has_bits_of_first: dict[tuple[Run, str], bool] = {}

    @cached_property
    def content(self) -> Contents:
        """`NotMade` where it takes a mask, or indices, that only the backend's own forward can make, and does not."""
        content, case = contents(self.case), self.case
        if case.api.is_backward and not self.backend.abilities(case.api).indices and not case.has_empty_window():
            return self._on_own_indices(content)
        if not needs_producer(case):
            return content
        if case.has_bit_mask:
            return replace(content, mask=np.ascontiguousarray(self._made("a mask of bits").first.output("indices")))
        indices = self._made("the indices of windows without a cell").output_indices
        return replace(content, indices=indices.reshape(case.planes, *(axis.windows for axis in case.axes)))

    def _on_own_indices(self, content: Contents) -> Contents:
        """What an implementation that takes no indices goes by: those of its own rule, or of its own choice."""
        call = allocate(content, POISONS[0])
        rule = self.backend.forward_rule(call)
        if rule.leaves_open:
            if not self.backend.is_deterministic(call):
                raise NotMade("which of tied maxima it takes cannot be told, for it may be others in each call")
            return content.on_indices(chosen_indices(content, rule, self._sums_of))
        planes = content.values.reshape(self.case.planes, *self.case.spatial_shape)
        return content.on_indices(forward_indices(planes, self.case.axes, rule))

    def _sums_of(self, content: Contents) -> Float64 | None:
        """What the backend makes of other gradients; None where it makes nothing."""
        run = self._execute(allocate(content, POISONS[0]))
        if run.outcome.status is not Status.COMPLETED:
            return None
        return run.output("grad_input").astype(np.float64)

    @property
    def fmt(self) -> FloatFormat:
        return FORMATS[self.case.dtype]

    @cached_property
    def first(self) -> Run:
        """The case as it is, on memory filled with the first poison."""
        call = self.fresh()
        before = kept_inputs(call)
        return Run(call, self.backend.run(call), before)

    @cached_property
    def model(self) -> AccumulationModel:
        return self.backend.accumulation(self.first.call)

    @cached_property
    def forward_rule(self) -> ForwardRule:
        return self.backend.forward_rule(self.first.call)

    @cached_property
    def is_deterministic(self) -> bool:
        return self.backend.is_deterministic(self.first.call)

    @cached_property
    def summary(self) -> Summary:
        """What the judgement of grad_input of the first run comes to; backward operators only."""
        slabs = self.content.slabs(self.first.output("grad_input"))
        return summarise(slabs, self.case.plane_size, self.fmt, self.model)

    @cached_property
    def admissible(self) -> Admissible:
        """What each cell of grad_input may hold, flat; backward operators only."""
        return admissible(self.content.sums, self.fmt, self.model)

    @cached_property
    def deviations(self) -> Deviations:
        """grad_input of the first run beside the exact sums; backward operators only."""
        return Deviations(self.gradient_input, self.content.sums, self.fmt)

    @cached_property
    def gradient_input(self) -> Float64:
        """grad_input of the first run as float64, flat."""
        return self.first.output("grad_input").astype(np.float64).ravel()

    @cached_property
    def output_indices(self) -> Int64:
        """The indices that the first run put out, of the pooled shape; forward operators only."""
        return self.indices_of(self.first)

    def indices_of(self, run: Run) -> Int64:
        """The same of another run."""
        return self.case.api.indices.decode(run.output("indices"), self.case.pooled_shape)

    @cached_property
    def parts(self) -> Parts:
        """grad_input of the first run cell by cell; backward operators only."""
        return Parts(self.content, self.first.output("grad_input"), self.model)

    @property
    def owes_bits(self) -> NDArray[np.bool_]:
        """Which cells of grad_input, flat, can hold one value only; backward operators only."""
        return self.parts.flags & OWES_BITS != 0

    @cached_property
    def faults(self) -> list[Fault]:
        """The windows that went astray, where the gradients are coded; backward operators only."""
        return [] if self.case.has_empty_window() else decode(self.content, self.first.output("grad_input"))

    @property
    def faults_told(self) -> list[dict[str, Any]]:
        """The first of them as rows and evidence tell them."""
        return [fault.to_record(self.case) for fault in self.faults[:_MOST_FAULTS]]

    @cached_property
    def maximum(self) -> tuple[NDArray, Int64]:
        """(maxima, indices) that a forward owes, of shape (planes, *windows)."""
        return forward_maximum(self._planes, self.case.axes, self.forward_rule)

    def maximum_of(self, window: Sequence[int]) -> tuple[float, int]:
        """The same of one window, by its coordinates in the output."""
        plane, number = divmod(int(np.ravel_multi_index(window, self.case.pooled_shape)), self.case.plane_windows)
        maxima, indices = forward_maximum(self._planes[plane : plane + 1], self.case.axes, self.forward_rule)
        return float(maxima.flat[number]), int(indices.flat[number])

    @cached_property
    def misses(self) -> Flags:
        """What is wrong with each window's maximum and index, flat in each plane; forward operators only.

        Nothing of the flags about indices where those are bits, which nobody can read.
        """
        out = self.first.output("out")
        return self.misses_of(out, np.broadcast_to(-1, out.shape) if self.case.has_bit_mask else self.output_indices)

    def misses_of(self, out: NDArray, indices: Int64) -> Flags:
        """The same of other outputs."""
        return judge_forward(self._planes, self.case.axes, out, indices, self.forward_rule)

    @cached_property
    def misses_of_any_kind(self) -> int:
        """The flags of all windows together."""
        return int(np.bitwise_or.reduce(self.misses.ravel()))

    @property
    def _planes(self) -> NDArray:
        return self.content.values.reshape(self.case.planes, *self.case.spatial_shape)

    def repetition(self, number: int = 1) -> Run:
        """The same call once more; for odd numbers on other poison and at other addresses."""
        odd = number % 2
        return self._kept(("repeat", number), lambda: allocate(self.content, POISONS[odd], shift=odd))

    def known_output(self, name: str, run: Run) -> NDArray:
        """Those elements of an output of one of the trial's runs whose meaning is published."""
        return self.case.known(name, run.output(name))

    def has_bits_of_first(self, run: Run, name: str) -> bool:
        """Whether an output of another run holds the bits of the first run's; looked at once for all checks."""
        asked = run, name
        if asked not in self._has_bits_of_first:
            own, other = self.known_output(name, self.first), self.known_output(name, run)
            self._has_bits_of_first[asked] = are_same_bits(own, other)
        return self._has_bits_of_first[asked]

    @property
    def runs(self) -> list[Run]:
        """Those made so far whose outputs are kept, the first before all others."""
        return [self.first, *self._runs.values()]

    @property
    def repetitions(self) -> list[Run]:
        """The repetitions made so far."""
        return [run for key, run in self._runs.items() if isinstance(key, tuple) and key[0] == "repeat"]

    def with_layouts(self, layouts: Mapping[str, Layout]) -> Run:
        """The same content in other layouts; tensors not named are contiguous."""
        key = ("layouts", tuple(sorted((name, str(layout)) for name, layout in layouts.items())))
        return self._kept(key, lambda: allocate(self.content, POISONS[0], layouts=layouts))

    def with_index_dtype(self, index_dtype: str) -> Run:
        return self._kept(
            ("index_dtype", index_dtype), lambda: allocate(self.content, POISONS[0], index_dtype=index_dtype)
        )

    def with_scale(self, exponent: int) -> Run:
        """Every gradient multiplied by 2**exponent."""
        return self._kept(("scale", exponent), lambda: allocate(self.content.scaled(exponent), POISONS[0]))

    def in_mode(self, mode: str) -> Run | None:
        """The same call made in another way (`Backend.modes`, `Backend.variants`).

        None where the implementation has no such way for it.
        """
        return self._possible(self._execute(self.fresh(), mode), f"made with {mode}")

    def among(self, hazard: Hazard) -> Run | None:
        """The same call with other work around it on streams; None where the implementation cannot have that."""
        assert self.backend.streams is not None
        call = self.fresh()
        return self._possible(Run(call, self.backend.streams.run(call, hazard)), f"made with {hazard}")

    def at_once_with(self, other: Trial) -> tuple[Run | None, Run | None]:
        """The same call and another trial's on two streams at the same time; None as above."""
        assert self.backend.streams is not None
        calls = self.fresh(), other.fresh()
        outcomes = self.backend.streams.run_at_once(*calls)
        runs = [Run(*parts) for parts in zip(calls, outcomes, strict=True)]
        how = "made at the same time as another call on another stream"
        return self._possible(runs[0], how), other._possible(runs[1], how)

    def after(self, others: Sequence[Case]) -> Run:
        """The same call once more, after calls of other cases, whatever comes of those."""
        for case in others:
            self._execute(allocate(contents(case), POISONS[0]))
        return self._completed(self._execute(allocate(self.content, POISONS[0])), "made after other calls")

    def call_often(self, times: int) -> None:
        """Make the same call ``times`` times, in the same memory."""
        call = allocate(self.content, POISONS[0])
        for _ in range(times):
            self.backend.run(call)

    def device_indices(self) -> Int64 | None:
        """The indices that the backend's own forward makes of self.

        None where it has no forward for these dtypes, or where that one is shunned.
        """
        producer = self._producer()
        if producer is None or producer.id in self.shunned:
            return None
        forward = Trial(producer, self.backend)
        if forward.first.outcome.status is not Status.COMPLETED:
            return None
        return forward.output_indices.reshape(self.case.planes, *(axis.windows for axis in self.case.axes))

    def with_indices(self, indices: Int64) -> tuple[Run, Contents]:
        """The backward on other indices, all inside the plane, and what it then owes.

        They are laid out as the case's own, unless those share memory, which these may not.
        """
        content = replace(self.content, indices=indices)
        own = {name: self.case.layout(name) for name in self.case.api.tensors}
        shared = {name: CONTIGUOUS for name in ("indices",) if own[name].repeats_elements}
        run = self._execute(allocate(content, POISONS[0], layouts=own | shared))
        return self._completed(run, "given the indices of its own forward"), content

    def _made(self, what: str) -> Trial:
        """The forward that made ``what`` this case needs."""
        producer = self._producer()
        if producer is None:
            raise NotMade(f"{what} can only be made by the forward, which this backend does not have")
        if producer.id in self.shunned:
            raise NotMade(f"{what} can only be made by the forward, which deviates by itself")
        forward = Trial(producer, self.backend)
        outcome = forward.first.outcome
        if outcome.status is Status.COMPLETED:
            return forward
        may = outcome.status is Status.REFUSED and refusal(self.backend, producer, forward.first.call) is not None
        raise NotMade(f"the forward does not make {what}: {outcome.message}", refused=may)

    def _producer(self) -> Case | None:
        """The first of the case's producers whose dtypes the backend has."""
        for case in producers(self.case):
            if unsupported(self.backend, case.api, case.dtype, case.index_dtype) is None:
                return case
        return None

    def _completed(self, run: Run, how: str, key: object = "") -> Run:
        if run.outcome.status is not Status.COMPLETED:
            made = f"{how}{key} it ends as {run.outcome.status}"
            raise RunFailed(f"the case runs, but {made}: {run.outcome.message}")
        return run

    def _kept(self, key: object, build: Callable[[], Call]) -> Run:
        kept = self._runs.get(key)
        if kept is None:
            run = self._completed(self._execute(build()), "varied by ", key)
            kept = self._runs[key] = run.without_inputs()
        return kept

    def _possible(self, run: Run, how: str) -> Run | None:
        return None if run.outcome.status is Status.UNAVAILABLE else self._completed(run, how)

    def fresh(self) -> Call:
        """The case as it is, on memory filled with the first poison."""
        return allocate(self.content, POISONS[0])

    def _execute(self, call: Call, mode: str = "") -> Run:
        return Run(call, self.backend.run(call, mode))
