"""Processes that answer over a connection and are heard to their end, whatever that is; none outlives who started it.

Hunts for defects are made of a `Process` each, a fork; a sandbox has a `Guarded` one, a fresh interpreter.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Self

from poolproof.reports.rows.io_errors import CannotWrite
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.running import guardian
from poolproof.suites.running.guardian import die_with


class OwnFault(Exception):
    """The suite itself failed in another process; the text is the traceback there."""


@dataclass(frozen=True)
class Ended:
    """In place of an answer: the process that owes it has ended, with that status as `subprocess` counts it."""

    status: int
    verdict = Verdict.CRASHED

    @property
    def reason(self) -> str:
        how = f"signal {signal.Signals(-self.status).name}" if self.status < 0 else f"exit status {self.status}"
        return f"ended by {how}"


@dataclass(frozen=True)
class Overdue:
    """In place of an answer: it did not come in that many seconds."""

    seconds: float
    verdict = Verdict.TIMED_OUT

    @property
    def reason(self) -> str:
        return f"gave no answer within {self.seconds:.3g} s"


KILLED = Ended(-signal.SIGKILL)
"""How a process ends that was killed from outside: no fault of memory or arithmetic raises that signal."""


def fork(work: Callable[[], int | None]) -> int:
    """The id of a process that does ``work`` and ends with the status it returns, 1 where it raises.

    It dies with this one.
    """
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        die_with(parent)
        status = work() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


_LONGEST_WAIT = 1e6
"""Seconds that the system can be asked to wait at once, about."""


class Process:
    """A process of its own group, heard over a connection until it ends."""

    def __init__(self, pid: int, connection: Connection) -> None:
        self.pid = pid
        self.connection = connection
        self.cpu_seconds = 0.0
        self.ended: Ended | None = None
        self._arrivals = select.poll()  # `Connection.poll` makes one for each message
        self._arrivals.register(connection.fileno(), select.POLLIN)

    @classmethod
    def forked(cls, work: Callable[[Callable[[object], None]], None]) -> Self:
        """A fork of this process; ``work`` is given what takes its messages."""
        ours, theirs = Pipe(duplex=False)
        pid = fork(partial(_say, theirs, work))
        theirs.close()
        with suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)
        return cls(pid, ours)

    def receive(self, seconds: float | None = None) -> object:
        """The next message; `Overdue` if none comes in time, `Ended` if none ever will.

        `OwnFault` and `CannotWrite` of the other side are raised here.
        """
        if seconds is not None and not self._arrivals.poll(1000.0 * min(seconds, _LONGEST_WAIT)):
            return Overdue(seconds)
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            return self.end(patience=1.0)
        if isinstance(message, OwnFault | CannotWrite):
            raise message
        return message

    def let_work(self, seconds: float) -> None:
        """Wait so long, unless it has said something already: what it says meanwhile is then heard at one go.

        Nothing is lost by its death: what it has sent lies with the system.
        """
        if not self._arrivals.poll(0):
            time.sleep(seconds)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def end(self, patience: float = 0.0) -> Ended:
        """Make sure that the whole group is gone, at the latest after ``patience`` seconds."""
        if self.ended is None:
            self.connection.close()
            self._wait(patience)
            self.kill()
            _, status, usage = os.wait4(self.pid, 0)
            self.cpu_seconds = usage.ru_utime + usage.ru_stime
            self.ended = Ended(os.waitstatus_to_exitcode(status))
        return self.ended

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._has_ended() and time.monotonic() < deadline:
            time.sleep(0.002)

    def _has_ended(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


class Guarded(Process):
    """A fresh interpreter, and all that descends from it, which is gone soon after this process however that ends.

    ``pid`` is that of its `guardian`, which ends as it does.
    """

    @classmethod
    def launched(cls, program: str, arguments: Sequence[str], errors: Path) -> Self:
        """An interpreter that runs ``program``; the descriptor of its connection comes before its arguments."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-c", program, str(theirs.fileno()), *arguments]
        with theirs, errors.open("wb") as output:
            popen = Popen(
                [sys.executable, "-I", "-S", guardian.__file__, str(os.getpid()), *command],
                pass_fds=[theirs.fileno()],
                stdin=DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | {"OMP_NUM_THREADS": "1"},  # a process that has threads cannot be forked
                start_new_session=True,
            )
        popen.returncode = 0  # waited for by `end`
        return cls(popen.pid, Connection(ours.detach()))

    def kill(self) -> None:
        """Ask the guardian to kill all that it guards; itself only where it does not end."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        self._wait(guardian.KILL_SECONDS + 1.0)
        super().kill()


def _say(connection: Connection, work: Callable[[Callable[[object], None]], None]) -> None:
    """What a forked process does: ``work``, and tell of a fault of ours, unless nobody listens any more."""
    with suppress(ProcessLookupError, PermissionError):
        os.setpgid(0, 0)
    try:
        work(connection.send)
    except (BrokenPipeError, KeyboardInterrupt):
        pass
    except Exception:
        connection.send(OwnFault(traceback.format_exc()))
