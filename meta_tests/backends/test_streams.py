"""Work on streams around a call: every hazard is noticed by its name, and no correct implementation is accused."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holding import holding, judged_by
from poolproof.backends import torch_streams
from poolproof.backends.base import Call, SequenceResult
from poolproof.backends.emulator.defects import VARIABLE
from poolproof.backends.torch_eager import TorchEager
from poolproof.references.operators import OPERATORS
from poolproof.references.sequences import HAZARDS, Actions
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.faults import answer
from poolproof.suites.plan.aspects import CASE_ASPECTS, PHASES
from poolproof.suites.plan.plans import PLANS, Plan, Subject, blocks, subjects
from scatter import Scatter, Sequenced
from scatter_backends import Disturbed

CASE = Case.from_json(
    '{"operator":"MaxPool2dWithIndicesBackward","shape":[2,3,9,9],"kernel_size":[3,3],"stride":[2,2],'
    '"index_dtype":"int32","deterministic":true}'
)
FORWARD = Case.from_json(
    '{"operator":"AdaptiveMaxPool3d","shape":[2,5,6,7],"output_size":[2,3,3],"index_dtype":"int32","dtype":"float16"}'
)
QUESTIONS = [CaseQuestion(case, holding("streams")) for case in (CASE, FORWARD)]


def streamed(**steps: Callable[..., Any]) -> Scatter:
    """A backend without any device, whose streams take some steps otherwise."""
    return type("Otherwise", (Sequenced,), steps)()


REFUSED = SequenceResult((0, 507053), "the card is lost")
UNAVAILABLE = SequenceResult(text="no such stream")


def exchanged(self: Sequenced, actions: Actions, calls: Sequence[Call]) -> SequenceResult:
    """Of two calls at once the second gets the first one's data."""
    for call in calls:
        for name in call.operator.inputs:
            call.tensors[name].array[...] = calls[0].tensors[name].array
    return Sequenced.run_sequence(self, actions, calls)


def overrun(self: Sequenced, actions: Actions, calls: Sequence[Call]) -> SequenceResult:
    result = Sequenced.run_sequence(self, actions, calls)
    return replace(result, guard_violations=("memory past the workspace of 64 bytes was written",))


@pytest.mark.parametrize("question", QUESTIONS, ids=["backward", "forward"])
@pytest.mark.parametrize("hazard", HAZARDS)
def test_a_hazard_is_named(question: CaseQuestion, hazard: str) -> None:
    row = question.judge(Disturbed(hazard))
    assert row["verdict"] == Verdict.VIOLATES
    assert row["checks_violated"] == ["streams"]
    assert f"made {hazard}: got " in row["reason"]


@pytest.mark.parametrize(
    ("backend", "violated", "said"),
    [
        (streamed(run_sequence=exchanged), ["streams"], "made with the workspace of the call queued before it"),
        (streamed(run_sequence=overrun), ["streams"], "memory past the workspace of 64 bytes was written"),
        (streamed(run_sequence=lambda *_: REFUSED), ["refusal"], "the card is lost"),
        # what cannot be made, who keeps order and who has no streams: none is accused
        (streamed(run_sequence=lambda *_: UNAVAILABLE), [], ""),
        (streamed(), [], ""),
        (Scatter(), [], ""),
    ],
)
def test_calls_among_other_work(backend: Scatter, violated: list[str], said: str) -> None:
    for question in QUESTIONS:
        row = question.judge(backend)
        assert (row["verdict"] == Verdict.VIOLATES, row["checks_violated"]) == (bool(violated), violated)
        assert said in row["reason"]


def test_an_exception_is_the_adapters_and_who_has_no_streams_is_not_asked() -> None:
    raising = streamed(run_sequence=lambda self, *_: 1 / 0)
    assert answer(QUESTIONS[0], raising)["verdict"] == Verdict.ADAPTER_ERROR
    for backend, asked in ((Scatter(), False), (streamed(), True)):
        chosen = subjects("scatter", backend)
        assert bool(list(blocks(chosen, [CASE_ASPECTS["streams"]], PLANS["smoke"], seed=0))) is asked


@pytest.mark.parametrize("defect", ["", "default_stream_used"])
def test_a_default_stream_for_the_callers_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: str) -> None:
    monkeypatch.setenv(VARIABLE, defect)
    rows = judged_by("emulator-a2", [QUESTIONS[0]] * 10, tmp_path)
    assert ({row["verdict"] for row in rows} == {Verdict.CONFORMS}) is not bool(defect)
    found = any(f"made {hazard}" in row["reason"] for hazard in HAZARDS for row in rows)
    assert found is bool(defect)


# Torch's: a device without streams stands in for one that has them. It runs everything at once, in the order of the
# program, and writes down what was queued where. So it shows that every hazard queues its work as its name says and
# gives what the plain call gives; what it cannot show is a race.

TORCH_CASES = [replace(case, index_dtype="int64", dtype="float32", deterministic=False) for case in (CASE, FORWARD)]


class Module:
    """In place of `torch.cuda`; ``log`` says what happened on which stream, 0 being the default one."""

    def __init__(self) -> None:
        self.log: list[tuple[int, str]] = []
        self.current = 0
        self._numbers = count(1)

    def note(self, what: str) -> None:
        self.log.append((self.current, what))

    def Stream(self) -> int:  # noqa: N802  (torch's name)
        return next(self._numbers)

    def Event(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(record=partial(self.note, "recorded"), wait=partial(self.note, "waited"))

    @contextmanager
    def stream(self, stream: int) -> Iterator[None]:
        before, self.current = self.current, stream
        yield
        self.current = before

    def synchronize(self) -> None:
        self.note("synchronized")


class Simulated(TorchEager):
    """Torch on the CPU, which says that it has streams; ``log`` also tells of calls."""

    def __init__(self) -> None:
        super().__init__("cpu")
        self.module = Module()
        self.actions = torch_streams.ACTIONS

    def compute(self, call, views):  # type: ignore[no-untyped-def]
        self.module.note("called")
        super().compute(call, views)


@pytest.fixture
def small_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(torch_streams, "BLOCK", 64)


@pytest.mark.usefixtures("small_delays")
@pytest.mark.parametrize("case", TORCH_CASES, ids=lambda case: case.operator)
def test_work_around_a_call_is_queued_where_it_is_to_be_and_changes_nothing(case: Case) -> None:
    backend = Simulated()
    row = CaseQuestion(case, holding("streams")).judge(backend)
    assert (row["verdict"], "streams" in row["checks_judged"]) == (Verdict.CONFORMS, True), row["reason"]
    log = backend.module.log
    recorded, waited = ([what for _, what in log].index(what) for what in ("recorded", "waited"))
    assert log[recorded][0] != log[waited][0], "a call waits for the event of another stream"
    assert log[waited + 1] == (log[waited][0], "called")
    called = [stream for stream, what in log if what == "called"][-32:]
    assert len(set(called)) == 2 and called == called[:2] * 16, "two calls take turns on two streams"
    assert TorchEager("cpu").actions == ("prepare", "run")


@pytest.mark.usefixtures("small_delays")
def test_no_drawn_sequence_accuses_torch() -> None:
    backend, plan = Simulated(), Plan("meta", 400, "")
    subject = Subject("torch", OPERATORS[CASE.operator], "float32", "int64", actions=backend.actions)
    (block,) = blocks([subject], [PHASES], plan, 0)
    rows = [question.judge(backend) for question in block.questions()]
    accused = [(row["reason"], row["case"]) for row in rows if row["verdict"] != Verdict.CONFORMS]
    assert not accused
    assert sum(bool(row["checks_judged"]) for row in rows) > 40
