"""For each seeded defect of phase two and of streams a launch that shows it: whether it went as it should."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_void_p

import numpy as np

from emulated_calls import API_3D, OVERLAPPING, backward_case, poison, prepared
from emulator_driver import HOST_TO_DEVICE, Emulator, PreparedCall, View

DEVICE_TO_DEVICE = 3
NULL_POINTER = 161001
BUSY_BYTES, BUSY_COPIES = 1 << 24, 20
"""Copies that keep a stream at work for some ten milliseconds."""


@contextmanager
def busy(emulator: Emulator, stream: c_void_p) -> Iterator[None]:
    """The stream has work to do when the block begins, and nothing left when it has ended."""
    source, block = np.zeros(BUSY_BYTES, np.uint8), emulator.malloc(BUSY_BYTES)
    arguments = (block, BUSY_BYTES, source.ctypes.data, BUSY_BYTES, HOST_TO_DEVICE, stream)
    for _ in range(BUSY_COPIES):
        emulator.call("aclrtMemcpyAsync", *arguments)
    yield
    emulator.call("aclrtSynchronizeStream", stream)
    emulator.call("aclrtFree", block)


@contextmanager
def another_stream(emulator: Emulator) -> Iterator[c_void_p]:
    stream = c_void_p()
    emulator.call("aclrtCreateStream", byref(stream))
    yield stream
    emulator.call("aclrtDestroyStream", stream)


def enqueued(call: PreparedCall, stream: c_void_p | None) -> int:
    """What phase two returns."""
    _, size, executor = call.plan()
    workspace = call.emulator.malloc(size) if size else None
    return call.emulator.phase_two(call.api, workspace, size, executor, stream)


def is_right(call: PreparedCall, right: bytes) -> bool:
    call.fetch()
    return call.views["gradInput"].storage.tobytes() == right


def result_of(emulator: Emulator, dtype: str = "float32") -> bytes:
    """The result of `prepared`, which is the same call each time."""
    call = prepared(emulator, dtype)
    assert call.launch().ok
    return call.views["gradInput"].storage.tobytes()


def clear_gradients(call: PreparedCall, stream: c_void_p) -> None:
    """Have the stream produce gradients that are all zero: so is then the result."""
    size = call.views["gradOutput"].storage.nbytes
    call.emulator.call("aclrtMemsetAsync", call.buffers["gradOutput"], size, 0, size, stream)


def all_zero(call: PreparedCall) -> bool:
    call.fetch()
    return not call.views["gradInput"].array.any()


def strided(emulator: Emulator) -> PreparedCall:
    """`prepared`, its gradients two elements apart."""
    case, _ = backward_case(
        np.random.default_rng(0), API_3D.removeprefix("aclnn"), OVERLAPPING, "float32", "int32", spreads=False
    )
    dense = case.gradients
    storage = np.zeros(2 * dense.size, np.float32)
    view = View(storage, dense.shape, tuple(2 * stride // dense.itemsize for stride in dense.strides))
    view.array[...] = dense
    return PreparedCall(emulator, API_3D, {**case.views, "gradOutput": view}, OVERLAPPING.lists, False)


def null_executor(emulator: Emulator) -> bool:
    return emulator.phase_two(API_3D, None, 0, None, emulator.stream) == NULL_POINTER


def null_workspace(emulator: Emulator) -> bool:
    _, size, executor = prepared(emulator, "float16").plan()
    assert size
    return emulator.phase_two(API_3D, None, size, executor, emulator.stream) == NULL_POINTER


def is_right_after(call: PreparedCall, stream: c_void_p | None) -> bool:
    call.emulator.call("aclrtSynchronizeStream", stream)
    return is_right(call, result_of(call.emulator))


def sums_in_scratch(emulator: Emulator) -> bool:
    return prepared(emulator, "float16").launch().ok


def default_stream(emulator: Emulator) -> bool:
    call = prepared(emulator)
    return enqueued(call, None) == 0 and is_right_after(call, None)


def other_thread(emulator: Emulator) -> bool:
    call, statuses = prepared(emulator), []
    _, size, executor = call.plan()
    workspace = emulator.malloc(size) if size else None

    def launch() -> None:
        emulator.call("aclrtSetDevice", 0)
        statuses.append(emulator.phase_two(API_3D, workspace, size, executor, emulator.stream))

    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
    return statuses == [0] and is_right_after(call, emulator.stream)


def phase_one_between(emulator: Emulator) -> bool:
    call, other = prepared(emulator), prepared(emulator)
    (_, size, executor), (_, _, unused) = call.plan(), other.plan()
    workspace = emulator.malloc(size) if size else None
    assert emulator.phase_two(API_3D, workspace, size, executor, emulator.stream) == 0
    emulator.call("aclrtSynchronizeStream", emulator.stream)
    emulator.call("aclDestroyAclOpExecutor", unused)
    return is_right_after(call, emulator.stream)


def second_run(emulator: Emulator) -> bool:
    call = prepared(emulator)
    _, size, executor = call.plan()
    workspace = emulator.malloc(size) if size else None
    emulator.call("aclSetAclOpExecutorRepeatable", executor)
    for _ in range(2):
        poison(call)
        assert emulator.phase_two(API_3D, workspace, size, executor, emulator.stream) == 0
        emulator.call("aclrtSynchronizeStream", emulator.stream)
    emulator.call("aclDestroyAclOpExecutor", executor)
    return is_right_after(call, emulator.stream)


def produced(call: PreparedCall, stream: c_void_p) -> bool:
    """Gradients are produced on the stream of the call, right before it."""
    with busy(call.emulator, stream):
        clear_gradients(call, stream)
        assert enqueued(call, stream) == 0
    return all_zero(call)


def produced_on_second_stream(emulator: Emulator) -> bool:
    assert prepared(emulator).launch().ok
    with another_stream(emulator) as second:
        return produced(prepared(emulator), second)


def consumed(emulator: Emulator) -> bool:
    """The result is copied on the stream of the call, right after it."""
    call, right = prepared(emulator), result_of(emulator)
    size, copied = len(right), np.zeros(len(right), np.uint8)
    block = emulator.malloc(size)
    with busy(emulator, emulator.stream):
        assert enqueued(call, emulator.stream) == 0
        source = call.buffers["gradInput"]
        emulator.call("aclrtMemcpyAsync", block, size, source, size, DEVICE_TO_DEVICE, emulator.stream)
    emulator.download(copied, block)
    return copied.tobytes() == right


def destroyed_descriptors(emulator: Emulator) -> bool:
    call, right = prepared(emulator), result_of(emulator)
    with busy(emulator, emulator.stream):
        assert enqueued(call, emulator.stream) == 0
        for tensor in call.tensors.values():
            emulator.call("aclDestroyTensor", tensor)
    return is_right(call, right)


def waited_for(emulator: Emulator) -> bool:
    """Gradients are produced on another stream, and an event says when."""
    call, event = prepared(emulator), c_void_p()
    emulator.call("aclrtCreateEvent", byref(event))
    with another_stream(emulator) as producer, busy(emulator, producer):
        clear_gradients(call, producer)
        emulator.call("aclrtRecordEvent", event, producer)
        emulator.call("aclrtStreamWaitEvent", emulator.stream, event)
        assert enqueued(call, emulator.stream) == 0
        emulator.call("aclrtSynchronizeStream", emulator.stream)
    emulator.call("aclrtDestroyEvent", event)
    return all_zero(call)


SEEDED_LAUNCHES: dict[str, Callable[[Emulator], bool]] = {
    "null_executor_accepted": null_executor,
    "null_workspace_accepted": null_workspace,
    "scratch_not_reported": sums_in_scratch,
    "default_stream_refused": default_stream,
    "executor_bound_to_thread": other_thread,
    "newest_executor_runs": phase_one_between,
    "repeat_skipped": second_run,
    "first_stream_kept": produced_on_second_stream,
    "inputs_read_at_the_call": lambda emulator: produced(prepared(emulator), emulator.stream),
    "strided_inputs_copied_at_once": lambda emulator: produced(strided(emulator), emulator.stream),
    "result_written_late": consumed,
    "descriptors_read_late": destroyed_descriptors,
    "event_wait_ignored": waited_for,
}
"""Says whether the launch went as it should; with its defect it does not."""
