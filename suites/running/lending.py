"""A process that has loaded a backend lends forks of itself, so that the workers of a session need not load it again.

A `Lender` listens at an address of this machine. Who connects, as the same user, in the same folder and with the same
environment, gets a server as `Lent`: behind a `guardian` of its own, which kills all that it guards when whoever
borrowed the server hangs up, however that went, or the lender is gone.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self
from uuid import uuid4

from poolproof.backends.base import WORKER_VARIABLE
from poolproof.suites.judging import budget
from poolproof.suites.running import guardian
from poolproof.suites.running.processes import KILLED, SERVER_VARIABLES, Process, fork, fork_guardian

_OWN = ("PYTEST_", WORKER_VARIABLE, budget.VARIABLE, "COLUMNS", "LINES")
"""How the variables begin in which the processes of one session differ, and which a fork is told. GNU readline sets the
last two for all that the controlling process starts once that has imported it."""

PATIENCE = 120.0
"""Seconds that a lender may take, which first compiles and makes its first calls, until it is done without."""

_REAP_SECONDS = 1.0


@dataclass(frozen=True)
class Surroundings:
    """What decides how a backend loads: a working folder, and variables of the environment but the workers' own."""

    folder: str
    environment: Mapping[str, str]

    @classmethod
    def here(cls) -> Self:
        common = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
        return cls(str(Path.cwd()), common | SERVER_VARIABLES)


@dataclass(frozen=True)
class _Wanted:
    """Who wants a server says where it is, and which variables are its own."""

    surroundings: Surroundings
    own: Mapping[str, str]


class Lender:
    """Where forks of this process are to be had, by whoever is in the ``surroundings`` in which it began."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.address = f"poolproof-{uuid4().hex}"
        self._surroundings = surroundings
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(_abstract(self.address))
        self._listener.listen()

    def lend(self, owner: Connection, serve: Callable[[Connection], None]) -> None:
        """Let a fork ``serve`` the connection of each who comes, until the owner hangs up."""
        sys.stdout.flush()
        sys.stderr.flush()
        arrivals = select.poll()
        arrivals.register(owner.fileno(), select.POLLIN)
        arrivals.register(self._listener.fileno(), select.POLLIN)
        guardians: set[int] = set()
        while owner.fileno() not in (ready := [descriptor for descriptor, _ in arrivals.poll(1000 * _REAP_SECONDS)]):
            if ready:
                guardians.add(self._lend_one(owner, serve))
            guardians = {pid for pid in guardians if not os.waitpid(pid, os.WNOHANG)[0]}

    def _lend_one(self, owner: Connection, serve: Callable[[Connection], None]) -> int:
        """The id of the guardian of a server."""
        control, _ = self._listener.accept()
        with control:
            return fork_guardian(partial(self._guard, os.getpid(), owner, control, serve))

    def _guard(
        self, lender: int, owner: Connection, control: socket.socket, serve: Callable[[Connection], None]
    ) -> None:
        """What a guardian does: have the server forked that is wanted, and say who guards it and how it ended."""
        os.setsid()
        owner.close()
        self._listener.close()
        borrower, user, _ = struct.unpack("3i", control.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if user != os.getuid():
            return
        _, (descriptor, errors), _, _ = socket.recv_fds(control, 1, 2)
        with Connection(control.detach()) as talk, suppress(EOFError, ConnectionError):
            wanted = talk.recv()
            if wanted.surroundings != self._surroundings:
                return
            guardian.name_this_process(f"guards {borrower}")
            talk.send(os.getpid())
            start = partial(_start, borrower, descriptor, errors, wanted.own, talk, serve)
            talk.send(guardian.guard(start, lambda: os.getppid() == lender and not talk.poll()))


def _start(
    borrower: int,
    descriptor: int,
    errors: int,
    own: Mapping[str, str],
    talk: Connection,
    serve: Callable[[Connection], None],
    mask: Iterable[int],
) -> int:
    """The id of a server, with a connection that it alone holds."""

    def work() -> None:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        guardian.name_this_process(f"serves {borrower}")
        talk.close()
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        os.close(errors)
        _have(own)
        serve(Connection(descriptor))
        sys.stdout.flush()
        sys.stderr.flush()

    pid = fork(work)
    os.close(descriptor)
    os.close(errors)
    return pid


def _have(own: Mapping[str, str]) -> None:
    """Let the variables that are a worker's own be those."""
    for name in [name for name in os.environ if name.startswith(_OWN)]:
        del os.environ[name]
    os.environ.update(own)


class Lent(Process):
    """A server that was forked by a `Lender`, and all that descends from it.

    ``pid`` is that of its guardian, which is no child of this process, and says itself how the server ended.
    """

    def __init__(self, pid: int, connection: Connection, guardian: Connection) -> None:
        super().__init__(pid, connection)
        self._guardian = guardian

    @classmethod
    def borrowed(cls, address: str, errors: Path) -> Self | None:
        """A server of the lender at ``address``; None where it is gone, is on another machine or in other surroundings.

        What the server prints goes to ``errors``.
        """
        control = socket.socket(socket.AF_UNIX)
        ours, theirs = socket.socketpair()
        with control, ours, theirs, errors.open("wb") as output, suppress(EOFError, OSError):
            control.connect(_abstract(address))
            socket.send_fds(control, [b"-"], [theirs.fileno(), output.fileno()])
            theirs.close()
            talk = Connection(control.detach())
            own = {name: value for name, value in os.environ.items() if name.startswith(_OWN)}
            talk.send(_Wanted(Surroundings.here(), own))
            if talk.poll(PATIENCE):
                return cls(talk.recv(), Connection(ours.detach()), talk)
        return None

    def kill(self) -> None:
        """Ask the guardian to kill all that it guards; itself only where it does not end."""
        if self._has_ended():
            return
        with suppress(OSError):
            self._guardian.send(None)
        self._wait(guardian.LOOK_SECONDS + guardian.KILL_SECONDS + 1.0)
        if not self._has_ended():  # its number is still its own
            os.kill(self.pid, signal.SIGKILL)

    def _has_ended(self) -> bool:
        return self._guardian.poll()

    def _status(self) -> int:
        with self._guardian, suppress(EOFError, OSError):
            return self._guardian.recv()
        return KILLED.status


def _abstract(address: str) -> str:
    """In no folder: it is gone with the process that listens there."""
    return f"\0{address}"
