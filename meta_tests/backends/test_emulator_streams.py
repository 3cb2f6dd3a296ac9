"""The emulator's streams among each other, and what its phase two does when it is given less than it needs."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_void_p

import numpy as np
import pytest

from emulated_calls import API_3D, prepared
from emulator_driver import HOST_TO_DEVICE, Emulator, fresh
from poolproof.backends.emulator import library

LENGTH = 1 << 24
TIMED_OUT = 507046


@pytest.fixture(scope="module")
def a2() -> Iterator[Emulator]:
    with fresh(library(), "A2", DISABLE_L2_CACHE="1") as emulator:
        yield emulator


@contextmanager
def another_stream(emulator: Emulator) -> Iterator[c_void_p]:
    stream = c_void_p()
    emulator.call("aclrtCreateStream", byref(stream))
    yield stream
    emulator.call("aclrtDestroyStream", stream)


SOURCE = np.zeros(LENGTH, np.uint8)
"""Lives as long as any stream, an abandoned one as well."""


def busy(emulator: Emulator, stream: c_void_p, copies: int = 20) -> None:
    """Keeps the stream busy for some ten milliseconds."""
    block = emulator.malloc(LENGTH)
    for _ in range(copies):
        emulator.call("aclrtMemcpyAsync", block, LENGTH, SOURCE.ctypes.data, LENGTH, HOST_TO_DEVICE, stream)


def test_a_stream_waits_for_what_an_event_has_captured(a2: Emulator) -> None:
    block, seen, event = a2.upload(np.zeros(64, np.uint8)), np.zeros(64, np.uint8), c_void_p()
    a2.call("aclrtCreateEvent", byref(event))
    with another_stream(a2) as producer, another_stream(a2) as consumer:
        busy(a2, producer)
        a2.call("aclrtMemsetAsync", block, 64, 7, 64, producer)
        a2.call("aclrtRecordEvent", event, producer)
        a2.call("aclrtStreamWaitEvent", consumer, event)
        assert a2.aclrtSynchronizeStreamWithTimeout(consumer, 0) == TIMED_OUT
        assert a2.aclrtSynchronizeStreamWithTimeout(consumer, 60_000) == 0
        a2.download(seen, block)
        a2.call("aclrtSynchronizeStream", producer)
    assert (seen == 7).all()
    a2.call("aclrtDestroyEvent", event)


def test_an_event_that_nobody_recorded_holds_nothing_up(a2: Emulator) -> None:
    event = c_void_p()
    a2.call("aclrtCreateEvent", byref(event))
    a2.call("aclrtStreamWaitEvent", a2.stream, event)
    assert a2.aclrtSynchronizeStreamWithTimeout(a2.stream, 60_000) == 0
    a2.call("aclrtDestroyEvent", event)
    assert a2.aclrtStreamWaitEvent(a2.stream, event) == 107017
    assert a2.aclrtStreamWaitEvent(c_void_p(1), event) == 107017


def test_nobody_waits_for_a_stream_that_was_abandoned(a2: Emulator) -> None:
    event, stream = c_void_p(), c_void_p()
    a2.call("aclrtCreateEvent", byref(event))
    a2.call("aclrtCreateStream", byref(stream))
    busy(a2, stream, copies=2)
    a2.call("aclrtRecordEvent", event, stream)
    a2.call("aclrtStreamWaitEvent", a2.stream, event)
    a2.call("aclrtDestroyStreamForce", stream)
    assert a2.aclrtSynchronizeStreamWithTimeout(a2.stream, 60_000) == 0
    a2.call("aclrtDestroyEvent", event)


def test_an_exception_lets_those_go_who_wait_for_it() -> None:
    with fresh(library(), "A2") as emulator:
        event = c_void_p()
        emulator.call("aclrtCreateEvent", byref(event))
        with another_stream(emulator) as failing:
            busy(emulator, failing)
            _, size, executor = prepared(emulator, "float16").plan()
            host = ctypes.create_string_buffer(size)
            assert emulator.phase_two(API_3D, ctypes.cast(host, c_void_p), size, executor, failing) == 0
            emulator.call("aclrtRecordEvent", event, failing)
            emulator.call("aclrtStreamWaitEvent", emulator.stream, event)
            assert emulator.aclrtSynchronizeStreamWithTimeout(emulator.stream, 60_000) == 507053


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_no_workspace_of_some_size_is_refused_whatever_is_needed(a2: Emulator, dtype: str) -> None:
    call, living = prepared(a2, dtype), a2.living("executors")
    _, _, executor = call.plan()
    assert a2.phase_two(API_3D, None, 64, executor, a2.stream) == 161001
    assert a2.living("executors") == living
    call.destroy()


def test_a_size_that_is_understated_changes_nothing(a2: Emulator) -> None:
    right = prepared(a2, "float16")
    assert right.launch().ok
    call = prepared(a2, "float16")
    _, size, executor = call.plan()
    workspace = a2.malloc(size)
    assert a2.phase_two(API_3D, workspace, 1, executor, a2.stream) == 0
    a2.call("aclrtSynchronizeStream", a2.stream)
    call.fetch()
    assert call.views["gradInput"].storage.tobytes() == right.views["gradInput"].storage.tobytes()
    a2.call("aclrtFree", workspace)
