"""Torch's calls among other work: a device without streams stands in for one that has them.

It runs everything at once, in the order of the program, and writes down what was queued where. So it shows that every
hazard queues its work as its name says and gives what the plain call gives; what it cannot show is a race.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from holding import holding
from poolproof.backends import torch_streams
from poolproof.backends.base import Hazard
from poolproof.backends.torch_eager import TorchEager
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion

BACKWARD = Case.from_json('{"operator":"MaxPool2dWithIndicesBackward","shape":[2,3,9,9],"kernel_size":[3,3]}')
FORWARD = Case.from_json('{"operator":"AdaptiveMaxPool3d","shape":[2,5,6,7],"output_size":[2,3,3]}')


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

    def Event(self) -> Module.Mark:  # noqa: N802
        return Module.Mark(self)

    @contextmanager
    def stream(self, stream: int) -> Iterator[None]:
        before, self.current = self.current, stream
        yield
        self.current = before

    def synchronize(self) -> None:
        self.note("synchronized")

    class Mark:
        def __init__(self, module: Module) -> None:
            self._module = module

        def record(self) -> None:
            self._module.note("recorded")

        def wait(self) -> None:
            self._module.note("waited")


class Simulated(TorchEager):
    """Torch on the CPU, which says that it has streams; ``log`` also tells of calls."""

    def __init__(self) -> None:
        super().__init__("cpu")
        self.module = Module()
        self.streams = torch_streams.TorchStreams(self, self.module)

    def compute(self, call, views):  # type: ignore[no-untyped-def]
        self.module.note("called")
        super().compute(call, views)


class ReadsNothing(Simulated):
    """Computes from zeros while any stream but the default one is current."""

    def compute(self, call, views):  # type: ignore[no-untyped-def]
        if self.module.current:
            views = {name: view * 0 if name in call.operator.inputs else view for name, view in views.items()}
        super().compute(call, views)


@pytest.fixture(autouse=True)
def small_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_streams, "BLOCK", 64)


@pytest.mark.parametrize("case", [BACKWARD, FORWARD], ids=lambda case: case.operator)
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
    assert TorchEager("cpu").streams is None


def test_a_call_that_is_not_at_its_place_is_found() -> None:
    row = CaseQuestion(BACKWARD, holding("streams")).judge(ReadsNothing())
    assert row["checks_violated"] == ["streams"]
    assert f"made with {Hazard.INPUTS_BEING_MADE}" in row["reason"]
