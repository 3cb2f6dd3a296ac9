"""Supervision of a backend's host: its processes are started, given time limits, replaced and ended.

A `Host` returns the reply to a request, or raises how its process died; it does not know what requests mean. Processes
and all their descendants end soon after this one (`poolproof.suites.isolation.guardian`).
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any, NamedTuple

import msgspec

from poolproof import backends, references
from poolproof.backends.building import cache_folder
from poolproof.backends.host.protocol import Channel, ProtocolError, to_frame
from poolproof.backends.registry import KERNELS, python_of
from poolproof.reports.rows.text import visible
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.isolation import guardian, landlock
from poolproof.suites.isolation.arena import Arena
from poolproof.suites.judging.faults import HostDied

Message = dict[str, Any]

START_SECONDS = 300.0
"""Time limit for loading a backend, in seconds: importing a framework from a cold disk is slow."""

FORK_SECONDS = 20.0
"""Time limit for a fork, in seconds."""

_END_SECONDS = 1.0
"""Time limit for a process that closed its connection to end by itself, in seconds."""


_SEND_SECONDS = 60
"""Time limit for a process to take a request, in seconds."""

_LOOK_SECONDS = 0.05
"""Time between two looks at the number of begun calls, in seconds."""

_MOST_OUTPUT = 1 << 16
"""Last bytes of the output that are kept."""

_MOST_READS = 64
"""Most reads of `_MOST_OUTPUT` bytes at a time."""

_VARIABLES = {"OMP_NUM_THREADS": "1"}
"""Variables of every host: a process with threads cannot be forked."""

_WRITABLE = ("~/ascend", "~/atc_data", "~/.nv")
"""Folders in which drivers keep logs and caches, if they exist."""

PROGRAM = Path(backends.__path__[0], "host", "program.py")
_FOLDERS = json.dumps({package.__name__: package.__path__[0] for package in (references, backends)})
"""Folders of the packages that a host imports: its interpreter need not have them."""


class _Output:
    """The last output of a host's processes, read while the judge waits for them."""

    def __init__(self) -> None:
        self.descriptor, self.end = os.pipe()
        os.set_blocking(self.descriptor, False)
        self._kept = b""

    def read(self) -> None:
        """Read the available output, but not endlessly."""
        with suppress(BlockingIOError):
            for _ in range(_MOST_READS if self.descriptor >= 0 else 0):
                self._kept = (self._kept + os.read(self.descriptor, _MOST_OUTPUT))[-_MOST_OUTPUT:]

    def last_words(self) -> str:
        """Return the last line, as the end of a sentence."""
        self.read()
        lines = self._kept.decode(errors="replace").strip().splitlines()
        return f": {visible(lines[-1][:300])}" if lines else ""

    def forget(self) -> None:
        self._kept = b""

    def close(self) -> None:
        self.read()
        os.close(self.descriptor)
        os.close(self.end)
        self.descriptor = -1


def _channel_pair() -> tuple[Channel, socket.socket]:
    """Return the judge's end, with a time limit for sending, and a host's end."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_SECONDS, 0))
    return Channel(ours, msgspec.json.encode, msgspec.json.decode), theirs


def launched(backend: str, control: int, arena: Arena, output: int) -> int:
    """Start a zygote that prints to ``output``; return the id of its guardian."""
    python = python_of(backend, os.environ) or sys.executable
    program = [str(PROGRAM), str(control), str(arena.descriptor), str(arena.size), _FOLDERS]
    alone = [sys.executable, "-I", "-S"]
    landlock.hide_memory()
    popen = Popen(
        [*alone, guardian.__file__, str(os.getpid()), *alone, landlock.__file__, _writable(backend), python, *program],
        pass_fds=[control, arena.descriptor],
        stdin=DEVNULL,
        stdout=output,
        stderr=output,
        env={name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")} | _VARIABLES,
        start_new_session=True,
    )
    popen.returncode = 0  # the caller that ends it waits for it
    return popen.pid


def _writable(backend: str) -> str:
    """Return the folders that a host may write in; for kernels also the cache of builds."""
    folders = [os.environ.get(landlock.WRITABLE_VARIABLE, ""), *map(os.path.expanduser, _WRITABLE)]
    if backend.startswith(KERNELS):
        folders.append(str(cache_folder("ascendc")))
    return os.pathsep.join(folders)


class _OutOfTime(TimeoutError):
    """The time of all calls is over, not that of one."""


class _Limit(NamedTuple):
    """The time limit of a request.

    Attributes:
        seconds: Time limit of each of its calls.
        calls: Their number.
        begun: Returns another number when a call begins, and 0 if the host does not count. The calls of a host that
            counts are timed one by one. A host that lies gains nothing: the limit of all calls together holds anyway.
        until: Monotonic time that ends it in any case.
    """

    seconds: float
    calls: int = 1
    begun: Callable[[], int] = int
    until: float = inf


class Host:
    """The processes of a backend: a zygote with the loaded backend, behind a guardian, and the forked worker.

    If the backend does not survive forks, the zygote is also the worker. ``worker`` is the worker's process id, 0 if
    there is none; ``is_loaded`` says whether there is a zygote.
    """

    _guardian: int
    _zygote: Channel
    _channel: Channel
    """The worker's."""

    def __init__(self, backend: str, arena: Arena) -> None:
        self._backend = backend
        self._arena = arena
        self.worker, self.is_loaded = 0, False
        self._limit = _Limit(0.0)

    def start(self) -> None:
        """Start a zygote, which begins to load the backend."""
        self._zygote, theirs = _channel_pair()
        self._output = _Output()
        with theirs:
            self._guardian = launched(self._backend, theirs.fileno(), self._arena, self._output.end)
        self.is_loaded = True
        with suppress(OSError):  # it has died: `description` reports how
            self._zygote.send({"do": "describe", "backend": self._backend})

    def description(self) -> Message:
        """Wait for the started zygote; return its description of the backend."""
        self.allow(START_SECONDS)
        return self._exchange(self._zygote, None, self._limit)

    def fork(self) -> None:
        """Fork the zygote for a worker; raise `HostDied` on failure."""
        channel, theirs = _channel_pair()
        self.allow(FORK_SECONDS)
        with theirs:
            done = self._exchange(self._zygote, {"do": "fork"}, self._limit, theirs.fileno())
        self._channel, self.worker = channel, done["done"]["pid"]
        self._output.forget()

    def serve_unforked(self) -> None:
        """Make the zygote itself the worker."""
        self._channel, self.worker = self._zygote, self._guardian
        self._output.forget()

    def allow(self, seconds: float, until: float = inf) -> None:
        """Set the time limit of each call from now on, and the monotonic time that ends all of them."""
        self._limit = _Limit(seconds, until=until)

    def ask(self, request: Message, calls: int = 1, begun: Callable[[], int] = int) -> Message:
        """Send a request to the worker and return its reply; after `HostDied` there is no worker.

        ``calls`` and ``begun`` are those of its time limit.
        """
        return self._exchange(self._channel, request, self._limit._replace(calls=calls, begun=begun))

    def check_alive(self) -> None:
        """Raise `HostDied` if the worker is gone, or sent an unexpected message."""
        if self.worker and select.select([self._channel], [], [], 0.0)[0]:
            try:
                self._channel.advance()
                raise ProtocolError("an unexpected message")
            except (OSError, EOFError, ProtocolError) as error:
                raise self._died(self._channel, error) from None

    def end_worker(self) -> None:
        """End the worker; a separate zygote stays."""
        if self.worker and self._channel is self._zygote:
            self.close()
        elif self.worker:
            self._died(self._channel, TimeoutError())

    def close(self) -> None:
        """End all processes; the host may be started again."""
        if self.worker:
            self._channel.close()
        if self.is_loaded:
            self._zygote.close()
            self._end_all(_END_SECONDS)

    def _exchange(
        self, channel: Channel, request: Message | None, limit: _Limit, descriptor: int | None = None
    ) -> Message:
        """Send a request, if there is one, and return the reply."""
        try:
            if descriptor is not None:
                socket.send_fds(channel.connection, [to_frame(request or {})], [descriptor])
            elif request is not None:
                channel.send(request)
            return self._received(channel, limit)
        except (OSError, EOFError, ProtocolError) as error:
            raise self._died(channel, error) from None

    def _received(self, channel: Channel, limit: _Limit) -> Message:
        """Return the next message; read the output meanwhile."""
        seconds, calls, begun, until = limit
        number, last = 0, time.monotonic() + seconds * calls
        deadline = last
        arrivals = select.poll()
        arrivals.register(channel.fileno(), select.POLLIN)
        arrivals.register(self._output.descriptor, select.POLLIN)
        message = channel.take()
        while message is None:
            now = time.monotonic()
            if number != begun():
                number, deadline = begun(), min(now + seconds, last)
            if now >= until:
                raise _OutOfTime
            if now >= deadline:
                each = f", {calls} times the limit of a call" if calls > 1 and not number else ""
                raise TimeoutError(f"gave no answer within {seconds * (1 if number else calls):.3g} s{each}")
            left = min(deadline, until) - now
            events = arrivals.poll(1000 * min(left, 1e6 if calls == 1 else _LOOK_SECONDS))  # limit of poll(2)
            ready = {descriptor for descriptor, _ in events}
            if self._output.descriptor in ready:
                self._output.read()
            if channel.fileno() in ready:
                message = channel.advance()
        return message

    def _died(self, channel: Channel, error: Exception) -> HostDied:
        """End the process at the other end, if it still runs, and return how it died."""
        is_overdue = isinstance(error, TimeoutError | BlockingIOError)  # of a reply, or of room to send
        seconds = _END_SECONDS if isinstance(error, EOFError | OSError) and not is_overdue else 0.0
        status = self._end_all(seconds) if channel is self._zygote else self._end_fork(seconds)
        last_words = self._output.last_words()
        if isinstance(error, _OutOfTime):
            return HostDied(Verdict.NOT_RUN, "was cut off", last_words)
        if is_overdue:
            silent = f"took no request within {_SEND_SECONDS} s"
            return HostDied(Verdict.TIMED_OUT, str(error) if isinstance(error, TimeoutError) else silent, last_words)
        if status is None or not seconds:
            return HostDied(Verdict.CRASHED, "made its process send an invalid reply", last_words)
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        return HostDied(Verdict.CRASHED, f"ended by {how}", last_words, status == -signal.SIGKILL)

    def _end_fork(self, seconds: float) -> int | None:
        """End the worker; return its status, None if it did not end by itself."""
        self._channel.close()
        pid, self.worker = self.worker, 0
        began = time.monotonic()
        request = {"do": "end", "pid": pid, "seconds": seconds}
        try:
            self._zygote.send(request)
            status = self._received(self._zygote, _Limit(FORK_SECONDS))["done"]["status"]
        except (OSError, EOFError, ProtocolError, LookupError, TypeError):
            return self._end_all(_END_SECONDS)
        return None if status == -signal.SIGKILL and time.monotonic() - began > seconds else status

    def _end_all(self, seconds: float) -> int | None:
        """End all processes; return the zygote's status, None if it did not end by itself in that time."""
        by_itself = self._has_ended(seconds)
        for number in (signal.SIGTERM, signal.SIGKILL):  # SIGTERM has the guardian kill its descendants
            if not self._has_ended(0.0):
                os.kill(self._guardian, number)
                self._has_ended(guardian.KILL_SECONDS + 1.0)
        _, status, _ = os.wait4(self._guardian, 0)
        self._zygote.close()
        self._output.close()
        self.worker, self.is_loaded = 0, False
        return os.waitstatus_to_exitcode(status) if by_itself else None

    def _has_ended(self, seconds: float) -> bool:
        """Tell whether the guardian ends within that time."""
        deadline = time.monotonic() + seconds
        while os.waitid(os.P_PID, self._guardian, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() > deadline:
                return False
            self._output.read()
            time.sleep(0.002)
        return True
