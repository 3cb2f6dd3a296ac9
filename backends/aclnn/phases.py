"""Scenarios of the two phases of a call (`poolproof.references.contract.scenarios`), as callers run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from poolproof.backends.aclnn.calls import uncached
from poolproof.backends.aclnn.device import Device
from poolproof.backends.aclnn.execution import TwoPhase, execute, guarded_workspace, workspace_for
from poolproof.backends.aclnn.status import SUCCESS, AclError
from poolproof.backends.aclnn.streams import AclnnStreams, Queue
from poolproof.backends.base import Call, Outcome, ScenarioResult, Status
from poolproof.references.contract.scenarios import ExecutorScenario

_POISON = 0xFF
"""Fills outputs between two runs of one executor: what the second leaves unwritten shows."""

_RUNS = 3
"""How often a repeatable executor runs."""

T = TypeVar("T")


@dataclass(frozen=True)
class ScenarioContext:
    """The operator, two calls of it, and the queue of the device's stream, of one scenario."""

    device: Device
    operator: TwoPhase
    queue: Queue
    call: Call
    other: Call

    @contextmanager
    def prepared(self, call: Call) -> Iterator[tuple[int, int]]:
        """Run phase one of a call: (workspace size, executor); bring the tensors back at the end of the block."""
        with self.operator.operands(call) as operands:
            yield self.operator.prepare(operands)
            operands.download(self.device)

    def run(self, size: int, executor: int, stream: int) -> None:
        """Phase two with a workspace of its own, to its end."""
        with workspace_for(self.device, executor, size) as workspace:
            self.operator.run(workspace.address, size, executor, stream)
            self.device.synchronise(stream)

    def second(self, workspace: int, size: int, executor: int) -> ScenarioResult | None:
        """Run phase two, to its end after success; else report the library's text."""
        status = self.operator.second(workspace, size, executor, self.device.stream)
        if status != SUCCESS:
            return ScenarioResult(status, self.device.recent_error())
        self.device.synchronise(self.device.stream)
        return None

    def in_other_thread(self, work: Callable[[], T]) -> T:
        """Return what ``work`` returns in another thread with the same context."""
        context = self.device.pointer("aclrtGetCurrentContext")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.device.call, "aclrtSetCurrentContext", context).result()
            return pool.submit(work).result()

    def not_applicable(self, executor: int, reason: str) -> ScenarioResult:
        self.device.call("aclDestroyAclOpExecutor", executor)
        return ScenarioResult(None, reason, applicable=False)


def _workspace_null(context: ScenarioContext) -> ScenarioResult | None:
    with context.prepared(context.call) as (size, executor):
        if not size:
            return context.not_applicable(executor, "phase one asks for no workspace")
        return context.second(0, size, executor)


def _workspace_null_unasked(context: ScenarioContext) -> ScenarioResult | None:
    with context.prepared(context.call) as (size, executor):
        if size:
            return context.not_applicable(executor, "phase one asks for a workspace")
        return context.second(0, 0, executor)


def _workspace_understated(context: ScenarioContext) -> ScenarioResult | None:
    with context.prepared(context.call) as (size, executor):
        if not size:
            return context.not_applicable(executor, "phase one asks for no workspace")
        with workspace_for(context.device, executor, size) as workspace:
            return context.second(workspace.address, 1, executor)


def _executor_null(context: ScenarioContext) -> ScenarioResult:
    return ScenarioResult(context.operator.second(0, 0, 0, context.device.stream), context.device.recent_error())


def _null_passed_to(function: str) -> Callable[[ScenarioContext], ScenarioResult]:
    return lambda context: ScenarioResult(context.device.status(function, None), context.device.recent_error())


def _repeatable_run_again(context: ScenarioContext) -> ScenarioResult | None:
    device = context.device
    with context.operator.operands(context.call, uncached) as operands:
        size, executor = context.operator.prepare(operands)
        try:
            status = device.status("aclSetAclOpExecutorRepeatable", executor)
            if status != SUCCESS:
                return ScenarioResult(None, f"not repeatable: {device.recent_error()}", applicable=False)
            with guarded_workspace(device, size) as workspace:
                for _ in range(_RUNS):
                    for name in context.call.operator.outputs:
                        device.fill(operands.allocations[name], len(context.call.tensors[name].buffer), _POISON)
                    context.operator.run(workspace.address, size, executor, device.stream)
                    device.synchronise(device.stream)
        finally:
            device.call("aclDestroyAclOpExecutor", executor)
        operands.download(device)
    return None


def _repeatable_from_cache(context: ScenarioContext) -> ScenarioResult:
    device = context.device
    execute(device, context.operator, context.call, device.stream)
    with context.prepared(context.call) as (size, executor):
        status = device.status("aclSetAclOpExecutorRepeatable", executor)
        text = device.recent_error()
        context.run(size, executor, device.stream)
        if status == SUCCESS:
            device.call("aclDestroyAclOpExecutor", executor)
    return ScenarioResult(status, text, ran=1)


def _destroyed_unused(context: ScenarioContext) -> ScenarioResult:
    with context.prepared(context.call) as (_, executor):
        status = context.device.status("aclDestroyAclOpExecutor", executor)
    text = context.device.recent_error()
    execute(context.device, context.operator, context.call, context.device.stream)
    return ScenarioResult(status, text, ran=1)


def _default_stream(context: ScenarioContext) -> None:
    execute(context.device, context.operator, context.call, 0)


def _stream_made_between(context: ScenarioContext) -> None:
    with context.prepared(context.call) as (size, executor), context.device.another_stream() as stream:
        context.run(size, executor, stream)


def _other_thread(context: ScenarioContext) -> None:
    with context.prepared(context.call) as (size, executor):
        context.in_other_thread(lambda: context.run(size, executor, context.device.stream))


def _phase_one_in_other_thread(context: ScenarioContext) -> None:
    with context.operator.operands(context.call) as operands:
        size, executor = context.in_other_thread(lambda: context.operator.prepare(operands))
        context.run(size, executor, context.device.stream)
        operands.download(context.device)


def _data_after_phase_one(context: ScenarioContext) -> None:
    device, tensors = context.device, context.call.tensors
    with context.operator.operands(context.call) as operands:
        for name in context.call.operator.inputs:
            device.fill(operands.allocations[name], len(tensors[name].buffer), 0)
        size, executor = context.operator.prepare(operands)
        for name in context.call.operator.inputs:
            device.upload(operands.allocations[name], tensors[name].buffer)
        context.run(size, executor, device.stream)
        operands.download(device)


def _destroyed_behind(context: ScenarioContext) -> None:
    device, stream = context.device, context.device.stream
    with context.operator.uploaded(context.call) as allocations, ExitStack() as cleanup:
        with context.operator.wrapped(context.call, allocations) as operands:
            size, executor = context.operator.prepare(operands)
            workspace = cleanup.enter_context(workspace_for(device, executor, size))
            context.queue.hold_up()
            context.operator.run(workspace.address, size, executor, stream)
        device.synchronise(stream)
        operands.download(device)


def _interleaved(context: ScenarioContext) -> ScenarioResult:
    with context.prepared(context.call) as first, context.prepared(context.other) as second:
        context.run(*second, context.device.stream)
        context.run(*first, context.device.stream)
    return ScenarioResult(SUCCESS, ran=2)


RUNNERS: Mapping[str, Callable[[ScenarioContext], ScenarioResult | None]] = {
    "phase_two.workspace_null": _workspace_null,
    "phase_two.workspace_unasked": _workspace_null_unasked,
    "phase_two.workspace_understated": _workspace_understated,
    "phase_two.executor_null": _executor_null,
    "executor.repeatable_null": _null_passed_to("aclSetAclOpExecutorRepeatable"),
    "executor.destroy_null": _null_passed_to("aclDestroyAclOpExecutor"),
    "executor.repeatable_run_again": _repeatable_run_again,
    "executor.repeatable_from_cache": _repeatable_from_cache,
    "executor.destroyed_unused": _destroyed_unused,
    "phase_two.default_stream": _default_stream,
    "phase_two.stream_made_between": _stream_made_between,
    "phase_two.other_thread": _other_thread,
    "phase_two.first_thread_gone": _phase_one_in_other_thread,
    "phase_two.data_after_phase_one": _data_after_phase_one,
    "phase_two.descriptors_destroyed_behind": _destroyed_behind,
    "phase_two.interleaved": _interleaved,
}
"""What runs a scenario; it returns None where what was called succeeded, and the first call's tensors hold what phase
two computed. No name for the type of it: Python 3.9, which hosts may run, cannot evaluate one.
"""


@dataclass(frozen=True)
class AclnnPhases:
    """`poolproof.backends.base.Phases` of one device. ``outcome_of`` gives the outcome of a status that is not 0."""

    device: Device
    operators: Mapping[str, TwoPhase]
    streams: AclnnStreams
    outcome_of: Callable[[AclError], Outcome]

    def run_scenario(self, scenario: ExecutorScenario, call: Call, other: Call) -> ScenarioResult:
        try:
            self.device.set_deterministic(call.deterministic)
            self.device.recent_error()  # forget what earlier calls left: reading it clears it
            operator = self.operators[call.operator.name]
            context = ScenarioContext(self.device, operator, self.streams.queue, call, other)
            return RUNNERS[scenario.id](context) or ScenarioResult(SUCCESS, ran=1)
        except AclError as error:
            is_answer = error.code != SUCCESS and self.outcome_of(error).status is Status.REFUSED
            return ScenarioResult(error.code if is_answer else None, str(error))
