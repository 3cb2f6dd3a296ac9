"""Servers that are forks of one that has loaded a backend answer as fresh ones do, and end with who borrowed them."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from holding import holding
from poolproof.backends.base import WORKER_VARIABLE
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.judge import Question
from poolproof.suites.running.lending import Lender, Lent, Surroundings
from poolproof.suites.running.processes import KILLED, Process
from poolproof.suites.running.sandbox import Sandbox, surveyed

ASPECT = holding("interval", "unreached")

QUESTIONS = [
    Question(
        Case.of(
            operator="MaxPool2dWithIndicesBackward",
            shape=(1, 2, 5, 5),
            kernel_size=(2,),
            ceil_mode=seed == 2,
            seed=seed,
        ),
        ASPECT,
        "block",
    )
    for seed in range(5)
]

pytestmark = pytest.mark.usefixtures("forked_sandboxes")


@dataclass
class Lending:
    """A sandbox whose server lends, and where."""

    backend: str
    owner: Sandbox
    address: str

    @property
    def lender(self) -> Process:
        assert self.owner._server is not None
        return self.owner._server

    def sandbox(self, scratch: Path) -> Sandbox:
        return Sandbox(self.backend, scratch, "sandbox", 20.0, lent_at=self.address)


def lending(backend: str) -> Lending:
    said, owner = surveyed(backend, lends=True)
    return Lending(backend, owner, said.lent_at)


@pytest.fixture
def crashing() -> Iterator[Lending]:
    made = lending("dying_backends:crashing")
    yield made
    made.owner.close()


def is_lent(sandbox: Sandbox) -> bool:
    return isinstance(sandbox._server, Lent)


def verdicts(rows: list[Row]) -> list[str]:
    return [row["verdict"] for row in rows]


ONE_CRASHED = [Verdict.CRASHED if question.case.attributes.rounds_up else Verdict.CONFORMS for question in QUESTIONS]


def test_a_lent_server_loses_the_case_that_kills_and_no_other(tmp_path: Path, crashing: Lending) -> None:
    sandbox = crashing.sandbox(tmp_path)
    rows = list(sandbox.judge(QUESTIONS))
    assert is_lent(sandbox)
    assert verdicts(rows) == ONE_CRASHED
    assert "signal SIGSEGV" in rows[2]["reason"]
    sandbox.close()


def test_a_sandbox_that_was_closed_borrows_again(tmp_path: Path, crashing: Lending) -> None:
    sandbox = crashing.sandbox(tmp_path)
    for _ in range(2):
        assert verdicts(list(sandbox.judge(QUESTIONS[:1]))) == [Verdict.CONFORMS]
        assert is_lent(sandbox)
        server, worker = sandbox._server.pid, sandbox._worker  # type: ignore[union-attr]
        sandbox.close()
        assert all_gone_within(1.0, server, worker)


def test_without_its_lender_a_sandbox_goes_on_with_a_server_of_its_own(tmp_path: Path, crashing: Lending) -> None:
    sandbox = crashing.sandbox(tmp_path)
    rows = sandbox.judge(QUESTIONS)
    first = next(rows)
    assert is_lent(sandbox)
    lent = sandbox._server.pid, sandbox._worker  # type: ignore[union-attr]
    os.kill(crashing.lender.pid, signal.SIGKILL)
    crashing.owner.close()
    assert all_gone_within(2.0, *lent)
    assert verdicts([first, *rows]) == ONE_CRASHED
    assert not is_lent(sandbox)
    sandbox.close()


@pytest.mark.parametrize(("variable", "lent"), [("SOME_LIBRARY", False), ("PYTEST_XDIST_WORKER", True)])
def test_nothing_is_borrowed_in_another_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crashing: Lending, variable: str, lent: bool
) -> None:
    monkeypatch.setenv(variable, "another")
    sandbox = crashing.sandbox(tmp_path)
    assert verdicts(list(sandbox.judge(QUESTIONS[:1]))) == [Verdict.CONFORMS]
    assert is_lent(sandbox) is lent
    sandbox.close()


def test_a_backend_sees_the_number_of_its_own_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = lending("plugged_backends:RefusesByWorker")
    monkeypatch.setenv(WORKER_VARIABLE, "5")
    sandbox = made.sandbox(tmp_path)
    (row,) = sandbox.judge(QUESTIONS[:1])
    assert is_lent(sandbox)
    assert "created for worker 5, called in worker 5" in row["reason"]
    sandbox.close()
    made.owner.close()


def test_what_does_not_survive_a_fork_is_not_lent() -> None:
    made = lending("dying_backends:unforkable")
    made.owner.close()
    assert not made.address


def test_whoever_hangs_up_takes_the_lent_server_along(tmp_path: Path, crashing: Lending) -> None:
    """As the system does for a borrower that is killed."""
    sandbox = crashing.sandbox(tmp_path)
    list(sandbox.judge(QUESTIONS[:1]))
    lent = sandbox._server
    assert isinstance(lent, Lent)
    lent._guardian.close()
    assert all_gone_within(2.0, lent.pid, sandbox._worker)


def test_the_death_of_a_guardian_takes_its_server_along(tmp_path: Path, crashing: Lending) -> None:
    sandbox = crashing.sandbox(tmp_path)
    list(sandbox.judge(QUESTIONS[:1]))
    assert sandbox._server is not None
    server = sandbox._server
    os.kill(server.pid, signal.SIGKILL)
    assert server.receive(5.0) == KILLED
    assert all_gone_within(2.0, sandbox._worker)
    sandbox.close()


def test_a_borrower_that_goes_before_it_has_asked_costs_nothing(tmp_path: Path, crashing: Lending) -> None:
    with socket.socket(socket.AF_UNIX) as passing:
        passing.connect(f"\0{crashing.address}")
    sandbox = crashing.sandbox(tmp_path)
    assert verdicts(list(sandbox.judge(QUESTIONS[:1]))) == [Verdict.CONFORMS]
    assert is_lent(sandbox)
    sandbox.close()


def test_nobody_else_is_lent_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lender = Lender(Surroundings.here())
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    pid = os.fork()
    if not pid:
        ours.close()
        lender.lend(Connection(theirs.detach()), lambda connection: connection.send("served"))
        os._exit(0)
    theirs.close()
    assert Lent.borrowed(lender.address, tmp_path / "errors") is None
    ours.close()
    os.waitpid(pid, 0)


def all_gone_within(seconds: float, *pids: int) -> bool:
    deadline = time.monotonic() + seconds
    while (left := [pid for pid in pids if _is_there(pid)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not left


def _is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
