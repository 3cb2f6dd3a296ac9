"""The guardian process between a session and a host: it ends all processes of a backend after the session ends.

Run as a program, ``guardian.py SESSION COMMAND...``, it needs only the standard library. It starts the command with its
own temporary folder (TMPDIR), and exits with the command's status. It kills all its descendants when the command ends,
on SIGTERM, or when SESSION, its parent process, is gone for any reason. As a subreaper it adopts all forks of a
backend, in any session and group, whatever signals they block.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

LOOK_SECONDS = 0.25
"""Time between two checks that the session is alive."""

KILL_SECONDS = 1.0
"""Time limit for killed processes to end: in a driver's call, a process ends when the call returns."""

_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def die_with(parent: int) -> None:
    """Have this process killed when the parent's thread that started it ends; at once if it is gone."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    session, command = int(sys.argv[1]), sys.argv[2:]
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    with TemporaryDirectory(prefix="host-", ignore_cleanup_errors=True) as os.environ["TMPDIR"]:
        server = _start(command, before)
        status = _watch(session, server)
        _kill_descendants()
    _end_as(status)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def _start(command: list[str], mask: Iterable[int]) -> int:
    """Start a command with all descriptors, and close all but the standard three here; return its id."""
    guardian = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        die_with(guardian)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execv(command[0], command)
    for descriptor in list(Path("/proc/self/fd").iterdir()):  # the limit may be 2**30
        with suppress(OSError):  # the descriptor of the listing itself
            if int(descriptor.name) > 2:
                os.close(int(descriptor.name))
    return pid


def _watch(session: int, server: int) -> int:
    """Wait for the server's end; return its status as `subprocess` does, or that of SIGKILL if it must be killed."""
    while os.getppid() == session:
        received = signal.sigtimedwait(_SIGNALS, LOOK_SECONDS)
        ended = _reap()
        if server in ended:
            return ended[server]
        for pid in _children():
            if pid != server:  # an orphan of a replaced worker
                _kill(pid)
        if received is not None and received.si_signo == signal.SIGTERM:
            break
    return -signal.SIGKILL


def _reap() -> dict[int, int]:
    """Wait for ended children, also adopted ones; return their statuses."""
    ended = {}
    with suppress(ChildProcessError):
        while (waited := os.waitpid(-1, os.WNOHANG))[0]:
            ended[waited[0]] = os.waitstatus_to_exitcode(waited[1])
    return ended


def _children() -> list[int]:
    """Return the ids of the children; empty if the system does not list them."""
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _kill_descendants() -> None:
    deadline = time.monotonic() + KILL_SECONDS
    while (left := _descendants()) and time.monotonic() < deadline:
        for pid in left:
            _kill(pid)
        time.sleep(0.005)
        _reap()


def _descendants() -> list[int]:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            parents[int(stat.parent.name)] = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
    found: set[int] = set()
    last = {os.getpid()}
    while last := {pid for pid, parent in parents.items() if parent in last} - found:
        found |= last
    return sorted(found)


def _end_as(status: int) -> None:
    if status >= 0:
        os._exit(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [-status])
    os.kill(os.getpid(), -status)


if __name__ == "__main__":
    main()
