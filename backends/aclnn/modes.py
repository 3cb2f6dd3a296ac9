"""Modes of execution, none of which may change a call's result."""

from __future__ import annotations

from collections.abc import Callable

from poolproof.backends.aclnn.calls import uncached
from poolproof.backends.aclnn.device import Device
from poolproof.backends.aclnn.execution import TwoPhase, completed, execute, guarded_workspace
from poolproof.backends.aclnn.status import AclError
from poolproof.backends.base import Call, Outcome, Status
from poolproof.references.contract.vocabulary import SIGNATURES, Role

_BUSY_CALLS = 8
"""Calls that are enqueued on the other stream."""


def plain(device: Device, operator: TwoPhase, call: Call) -> Outcome:
    return execute(device, operator, call, device.stream)


def other_stream(device: Device, operator: TwoPhase, call: Call) -> Outcome:
    """Execute on a stream of its own."""
    with device.another_stream() as stream:
        return execute(device, operator, call, stream)


def repeated_executor(device: Device, operator: TwoPhase, call: Call) -> Outcome:
    """Execute by an executor that has run before, on other addresses and in another workspace.

    ``unavailable`` where the library does not let this executor repeat, because it copies. Neither may one from its
    cache: storages are described so that the cache does not know the call.
    """
    stream = device.stream
    with operator.operands(call, uncached) as first, operator.operands(call, uncached) as second:
        size, executor = operator.prepare(first)
        try:
            try:
                device.call("aclSetAclOpExecutorRepeatable", executor)
            except AclError as error:
                return Outcome(Status.UNAVAILABLE, error.code, f"executor not repeatable: {error}")
            with guarded_workspace(device, size) as earlier, guarded_workspace(device, size) as workspace:
                operator.run(earlier.address, size, executor, stream)
                device.synchronise(stream)
                earlier.poison()
                signature = SIGNATURES[f"aclnn{call.operator.name}"]
                for setter, role in (("aclSetInputTensorAddr", Role.INPUT), ("aclSetOutputTensorAddr", Role.OUTPUT)):
                    for index, name in enumerate(signature.of_role(role)):
                        device.call(setter, executor, index, first.objects[name], second.addresses[name])
                seconds = device.timed(stream, lambda: operator.run(workspace.address, size, executor, stream))
                guard_violations = (*workspace.guard_violations(), *earlier.disuse_violations())
        finally:
            device.call("aclDestroyAclOpExecutor", executor)
        second.download(device)
    return completed(call, seconds, guard_violations)


def under_load(device: Device, operator: TwoPhase, call: Call) -> Outcome:
    """Execute while the same operator keeps another stream busy."""
    with device.another_stream() as busy, operator.operands(call) as load:
        launches = [operator.prepare(load) for _ in range(_BUSY_CALLS)]
        with device.memory(max(size for size, _ in launches)) as workspace:
            for size, executor in launches:
                operator.run(workspace if size else 0, size, executor, busy)
            outcome = execute(device, operator, call, device.stream)
            device.synchronise(busy)
    return outcome


MODES: dict[str, Callable[[Device, TwoPhase, Call], Outcome]] = {
    "": plain,
    "other stream": other_stream,
    "repeated executor": repeated_executor,
    "under load": under_load,
}
