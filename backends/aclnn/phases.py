"""The ways of `poolproof.references.contract.phase_two` through the two phases of a call, as callers go them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from poolproof.backends.aclnn.device import Device
from poolproof.backends.aclnn.execution import Operands, TwoPhase, execute, guarded_workspace, workspace_for
from poolproof.backends.aclnn.modes import uncached
from poolproof.backends.aclnn.status import SUCCESS, AclError
from poolproof.backends.aclnn.streams import AclnnStreams, Queue
from poolproof.backends.base import Call, Outcome, Passage, Status
from poolproof.references.contract import phase_two as ways
from poolproof.references.contract.phase_two import Way

_POISON = 0xFF
"""Fills outputs between two runs of one executor: what the second leaves unwritten shows."""

_UNDERSTATED = 1
"""Bytes that a caller claims of a workspace that is larger."""

_RUNS = 3
"""How often a repeatable executor runs."""

T = TypeVar("T")


@dataclass(frozen=True)
class Traveller:
    """Who goes a way: with one operator, two calls of it, and the stream of the device."""

    device: Device
    operator: TwoPhase
    queue: Queue
    call: Call
    other: Call

    def run(self, size: int, executor: int, stream: int) -> None:
        """Phase two with a workspace of its own, to its end."""
        with workspace_for(self.device, executor, size) as workspace:
            self.operator.run(workspace.address, size, executor, stream)
            self.device.synchronise(stream)

    def passed(self, status: int, operands: Operands) -> Passage:
        """The stream's work is waited for and brought back where there is any; else the library says why not."""
        if status != SUCCESS:
            return Passage(status, self.device.recent_error())
        self.device.synchronise(self.device.stream)
        operands.download(self.device)
        return Passage(status, ran=1)

    def elsewhere(self, work: Callable[[], T]) -> T:
        """What ``work`` gives in another thread with the same context."""
        context = self.device.context()

        def in_context() -> T:
            self.device.call("aclrtSetCurrentContext", context)
            return work()

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(in_context).result()

    @contextmanager
    def prepared(self) -> Iterator[tuple[Operands, int, int]]:
        """(operands, workspace size, executor) of the call after phase one."""
        with self.operator.operands(self.call) as operands:
            yield operands, *self.operator.prepare(operands)


def _workspace_null(at: Traveller) -> Passage:
    with at.prepared() as (operands, size, executor):
        if not size:
            return _no_occasion(at, executor, "phase one asks for no workspace")
        return at.passed(at.operator.second(0, size, executor, at.device.stream), operands)


def _workspace_null_unasked(at: Traveller) -> Passage:
    with at.prepared() as (operands, size, executor):
        if size:
            return _no_occasion(at, executor, "phase one asks for a workspace")
        return at.passed(at.operator.second(0, 0, executor, at.device.stream), operands)


def _workspace_understated(at: Traveller) -> Passage:
    with at.prepared() as (operands, size, executor):
        if not size:
            return _no_occasion(at, executor, "phase one asks for no workspace")
        with workspace_for(at.device, executor, size) as workspace:
            status = at.operator.second(workspace.address, _UNDERSTATED, executor, at.device.stream)
            return at.passed(status, operands)


def _no_occasion(at: Traveller, executor: int, why: str) -> Passage:
    at.device.call("aclDestroyAclOpExecutor", executor)
    return Passage(None, why, occasion=False)


def _executor_null(at: Traveller) -> Passage:
    return Passage(at.operator.second(0, 0, 0, at.device.stream), at.device.recent_error())


def _repeatable_null(at: Traveller) -> Passage:
    return Passage(at.device.status("aclSetAclOpExecutorRepeatable", None), at.device.recent_error())


def _destroy_null(at: Traveller) -> Passage:
    return Passage(at.device.status("aclDestroyAclOpExecutor", None), at.device.recent_error())


def _repeatable_run_again(at: Traveller) -> Passage:
    device = at.device
    with at.operator.operands(at.call, uncached) as operands:
        size, executor = at.operator.prepare(operands)
        try:
            status = device.status("aclSetAclOpExecutorRepeatable", executor)
            if status != SUCCESS:
                return Passage(None, f"not repeatable: {device.recent_error()}", occasion=False)
            with guarded_workspace(device, size) as workspace:
                for _ in range(_RUNS):
                    for name in at.call.operator.outputs:
                        device.fill(operands.allocations[name], len(at.call.tensors[name].buffer), _POISON)
                    at.operator.run(workspace.address, size, executor, device.stream)
                    device.synchronise(device.stream)
        finally:
            device.call("aclDestroyAclOpExecutor", executor)
        operands.download(device)
    return Passage(SUCCESS, ran=1)


def _repeatable_from_cache(at: Traveller) -> Passage:
    device = at.device
    execute(device, at.operator, at.call, device.stream)
    with at.prepared() as (operands, size, executor):
        status = device.status("aclSetAclOpExecutorRepeatable", executor)
        text = device.recent_error()
        at.run(size, executor, device.stream)
        if status == SUCCESS:
            device.call("aclDestroyAclOpExecutor", executor)
        operands.download(device)
    return Passage(status, text, ran=1)


def _destroyed_unused(at: Traveller) -> Passage:
    with at.prepared() as (_, _, executor):
        status = at.device.status("aclDestroyAclOpExecutor", executor)
    text = at.device.recent_error()
    execute(at.device, at.operator, at.call, at.device.stream)
    return Passage(status, text, ran=1)


def _default_stream(at: Traveller) -> Passage:
    execute(at.device, at.operator, at.call, 0)
    return Passage(SUCCESS, ran=1)


def _stream_made_between(at: Traveller) -> Passage:
    with at.prepared() as (operands, size, executor), at.device.another_stream() as stream:
        at.run(size, executor, stream)
        operands.download(at.device)
    return Passage(SUCCESS, ran=1)


def _other_thread(at: Traveller) -> Passage:
    with at.prepared() as (operands, size, executor):
        at.elsewhere(lambda: at.run(size, executor, at.device.stream))
        operands.download(at.device)
    return Passage(SUCCESS, ran=1)


def _phase_one_in_other_thread(at: Traveller) -> Passage:
    with at.operator.operands(at.call) as operands:
        size, executor = at.elsewhere(lambda: at.operator.prepare(operands))
        at.run(size, executor, at.device.stream)
        operands.download(at.device)
    return Passage(SUCCESS, ran=1)


def _data_after_phase_one(at: Traveller) -> Passage:
    device, tensors = at.device, at.call.tensors
    with at.operator.operands(at.call) as operands:
        for name in at.call.operator.inputs:
            device.fill(operands.allocations[name], len(tensors[name].buffer), 0)
        size, executor = at.operator.prepare(operands)
        for name in at.call.operator.inputs:
            device.upload(operands.allocations[name], tensors[name].buffer)
        at.run(size, executor, device.stream)
        operands.download(device)
    return Passage(SUCCESS, ran=1)


def _destroyed_behind(at: Traveller) -> Passage:
    device, stream = at.device, at.device.stream
    with at.operator.uploaded(at.call) as allocations, ExitStack() as kept:
        with at.operator.wrapped(at.call, allocations) as operands:
            size, executor = at.operator.prepare(operands)
            workspace = kept.enter_context(workspace_for(device, executor, size))
            at.queue.hold_up()
            at.operator.run(workspace.address, size, executor, stream)
        device.synchronise(stream)
        operands.download(device)
    return Passage(SUCCESS, ran=1)


def _interleaved(at: Traveller) -> Passage:
    device, operator = at.device, at.operator
    with operator.operands(at.call) as operands, operator.operands(at.other) as others:
        first, second = operator.prepare(operands), operator.prepare(others)
        at.run(*second, device.stream)
        at.run(*first, device.stream)
        for each in (operands, others):
            each.download(device)
    return Passage(SUCCESS, ran=2)


TAKEN: Mapping[Way, Callable[[Traveller], Passage]] = {
    ways.WORKSPACE_NULL: _workspace_null,
    ways.WORKSPACE_NULL_UNASKED: _workspace_null_unasked,
    ways.WORKSPACE_UNDERSTATED: _workspace_understated,
    ways.EXECUTOR_NULL: _executor_null,
    ways.REPEATABLE_NULL: _repeatable_null,
    ways.DESTROY_NULL: _destroy_null,
    ways.REPEATABLE_RUN_AGAIN: _repeatable_run_again,
    ways.REPEATABLE_FROM_CACHE: _repeatable_from_cache,
    ways.DESTROYED_UNUSED: _destroyed_unused,
    ways.DEFAULT_STREAM: _default_stream,
    ways.STREAM_MADE_BETWEEN: _stream_made_between,
    ways.OTHER_THREAD: _other_thread,
    ways.PHASE_ONE_IN_OTHER_THREAD: _phase_one_in_other_thread,
    ways.DATA_AFTER_PHASE_ONE: _data_after_phase_one,
    ways.DESTROYED_BEHIND: _destroyed_behind,
    ways.INTERLEAVED: _interleaved,
}


class AclnnPhases:
    """`poolproof.backends.base.Phases` of one device. ``failed`` says what a status that is not 0 comes to."""

    def __init__(
        self,
        device: Device,
        operators: Mapping[str, TwoPhase],
        streams: AclnnStreams,
        failed: Callable[[AclError], Outcome],
    ) -> None:
        self._device = device
        self._operators = operators
        self._streams = streams
        self._failed = failed

    def take(self, way: Way, call: Call, other: Call) -> Passage:
        try:
            self._device.set_deterministic(call.deterministic)
            self._device.recent_error()  # forget what earlier calls left: reading it clears it
            operator = self._operators[call.operator.name]
            return TAKEN[way](Traveller(self._device, operator, self._streams.queue, call, other))
        except AclError as error:
            is_answer = error.code != SUCCESS and self._failed(error).status is Status.REFUSED
            return Passage(error.code if is_answer else None, str(error))
