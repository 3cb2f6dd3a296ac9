"""Work on streams around a call: every hazard is noticed by its name, and no correct implementation is accused."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_void_p
from pathlib import Path

import numpy as np
import pytest

from emulated_calls import API_3D, prepared
from emulator_driver import HOST_TO_DEVICE, Emulator, fresh
from holding import holding
from poolproof.backends.base import Call, Hazard, Outcome, Status
from poolproof.backends.emulator import library
from poolproof.backends.emulator.defects import VARIABLE
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.isolation.sandbox import Sandbox
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.faults import answer
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, blocks, subjects
from scatter import Scatter, SimulatedStreams
from scatter_backends import Disturbed

CASE = Case.from_json(
    '{"operator":"MaxPool2dWithIndicesBackward","shape":[2,3,9,9],"kernel_size":[3,3],"stride":[2,2],'
    '"index_dtype":"int32","deterministic":true}'
)
FORWARD = Case.from_json(
    '{"operator":"AdaptiveMaxPool3d","shape":[2,5,6,7],"output_size":[2,3,3],"index_dtype":"int32","dtype":"float16"}'
)
QUESTIONS = [CaseQuestion(case, holding("streams")) for case in (CASE, FORWARD)]


class Streamed(Scatter):
    def __init__(self) -> None:
        self.streams = self.made()

    def made(self) -> SimulatedStreams:
        return SimulatedStreams(self, ())


class Ending(SimulatedStreams):
    """A call among other work ends with ``outcome``."""

    outcome = Outcome(Status.REFUSED, 507053, "the card is lost")

    def run(self, call: Call, hazard: Hazard) -> Outcome:
        return self.outcome


class Skipping(Ending):
    outcome = Outcome(Status.UNAVAILABLE, 200006, "no such stream")

    def run_at_once(self, first: Call, second: Call) -> tuple[Outcome, Outcome]:
        return self.outcome, self.outcome


class Mixing(SimulatedStreams):
    """Of two calls at once the second gets the first one's data."""

    def run_at_once(self, first: Call, second: Call) -> tuple[Outcome, Outcome]:
        for name in first.operator.inputs:
            second.tensors[name].array[...] = first.tensors[name].array
        return super().run_at_once(first, second)


class Complaining(SimulatedStreams):
    def run(self, call: Call, hazard: Hazard) -> Outcome:
        super().run(call, hazard)
        return Outcome(Status.COMPLETED, guard_violations=("memory past the workspace of 64 bytes was written",))


class Raising(SimulatedStreams):
    def run(self, call: Call, hazard: Hazard) -> Outcome:
        raise ZeroDivisionError("in the adapter")


@pytest.mark.parametrize("question", QUESTIONS, ids=["backward", "forward"])
@pytest.mark.parametrize("hazard", Hazard)
def test_a_hazard_is_named(question: CaseQuestion, hazard: Hazard) -> None:
    row = question.judge(Disturbed(hazard))
    assert row["verdict"] == Verdict.VIOLATES
    assert row["checks_violated"] == ["streams"]
    assert f"made with {hazard}: got " in row["reason"]


@pytest.mark.parametrize(
    ("streams", "violated", "said"),
    [
        (Mixing, ["streams"], "made at the same time as another call on another stream"),
        (Complaining, ["streams"], "memory past the workspace of 64 bytes was written"),
        (Ending, ["refusal"], "the card is lost"),
        (Skipping, [], ""),  # what cannot be made accuses nobody
    ],
)
def test_calls_among_other_work(streams: type[SimulatedStreams], violated: list[str], said: str) -> None:
    backend = Streamed()
    backend.streams = streams(backend, ())
    row = QUESTIONS[0].judge(backend)
    assert (row["verdict"] == Verdict.VIOLATES, row["checks_violated"]) == (bool(violated), violated)
    assert said in row["reason"]


def test_who_keeps_order_or_has_no_streams_is_not_accused_nor_for_an_exception_of_the_adapter() -> None:
    assert [question.judge(Streamed())["verdict"] for question in QUESTIONS] == [Verdict.CONFORMS] * 2
    backend = Streamed()
    backend.streams = Raising(backend, ())
    assert answer(QUESTIONS[0], backend)["verdict"] == Verdict.ADAPTER_ERROR
    assert answer(QUESTIONS[0], Scatter())["verdict"] == Verdict.CONFORMS
    for backend, asked in ((Scatter(), False), (Streamed(), True)):
        chosen = subjects("scatter", backend)
        assert bool(list(blocks(chosen, [CASE_ASPECTS["streams"]], PLANS["smoke"], seed=0))) is asked


@pytest.mark.parametrize("defect", ["", "default_stream_used"])
def test_the_default_stream_in_place_of_the_callers_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: str
) -> None:
    monkeypatch.setenv(VARIABLE, defect)
    sandbox = Sandbox("emulator-a2", tmp_path, "streams", timeout=60.0)
    try:
        rows = list(sandbox.judge([QUESTIONS[0]] * 10))
    finally:
        sandbox.close()
    assert ({row["verdict"] for row in rows} == {Verdict.CONFORMS}) is not bool(defect)
    found = any(f"made with {hazard}" in row["reason"] for hazard in Hazard for row in rows)
    assert found is bool(defect)


# The emulator's streams among each other, and what its phase two does when it is given less than it needs.


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


def test_nobody_waits_for_a_stream_that_was_abandoned_or_an_event_that_was_not_recorded(a2: Emulator) -> None:
    event, stream = c_void_p(), c_void_p()
    a2.call("aclrtCreateEvent", byref(event))
    a2.call("aclrtStreamWaitEvent", a2.stream, event)
    assert a2.aclrtSynchronizeStreamWithTimeout(a2.stream, 60_000) == 0
    a2.call("aclrtCreateStream", byref(stream))
    busy(a2, stream, copies=2)
    a2.call("aclrtRecordEvent", event, stream)
    a2.call("aclrtStreamWaitEvent", a2.stream, event)
    a2.call("aclrtDestroyStreamForce", stream)
    assert a2.aclrtSynchronizeStreamWithTimeout(a2.stream, 60_000) == 0
    a2.call("aclrtDestroyEvent", event)
    assert a2.aclrtStreamWaitEvent(a2.stream, event) == a2.aclrtStreamWaitEvent(c_void_p(1), event) == 107017


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


def test_a_workspace_is_needed_but_a_size_that_is_understated_changes_nothing(a2: Emulator) -> None:
    for dtype in ("float32", "float16"):
        call, living = prepared(a2, dtype), a2.living("executors")
        _, _, executor = call.plan()
        assert a2.phase_two(API_3D, None, 64, executor, a2.stream) == 161001, "whatever is needed"
        assert a2.living("executors") == living
        call.destroy()
    right, call = prepared(a2, "float16"), prepared(a2, "float16")
    assert right.launch().ok
    _, size, executor = call.plan()
    workspace = a2.malloc(size)
    assert a2.phase_two(API_3D, workspace, 1, executor, a2.stream) == 0
    a2.call("aclrtSynchronizeStream", a2.stream)
    call.fetch()
    assert call.views["gradInput"].storage.tobytes() == right.views["gradInput"].storage.tobytes()
    a2.call("aclrtFree", workspace)
