"""Commands as forks of one process that has imported everything: an interpreter of its own takes seconds for each.

What a sandbox would launch is forked as well, without a guardian. Tests of processes and of what is loaded into them
start real ones.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

import pytest
from _pytest.config import default_plugins

from poolproof.references.core.compiled import compile_all
from poolproof.reports.pages.render import _environment as page_environment
from poolproof.suites.cli import main
from poolproof.suites.running import processes

PROGRAMS: dict[str, Callable[[], object]] = {"pytest": pytest.console_main, "poolproof": main}

_LATE = (
    *("scatter_backends", "hypothesis.internal.observability", "rich.progress", "rich.markdown"),
    *("email.parser", "pdb", "pandas", "pyarrow.dataset", "pyarrow.parquet"),
)


def prepare() -> None:
    """Have what commands import and compile late, and let sandboxes be forked from this process."""
    for name in default_plugins:
        import_module(f"_pytest.{name}")
    for point in entry_points(group="pytest11"):
        point.load()
    if find_spec("torch"):
        import_module("torch")
    for name in _LATE:
        import_module(name)
    compile_all()
    pages = page_environment()
    for template in pages.list_templates(extensions=["j2"]):
        pages.get_template(template)
    assert "launched" in vars(processes.Guarded), "what sandboxes launch has moved, and would not be forked"
    processes.Guarded.launched = classmethod(launched)  # type: ignore[assignment]


def become(
    program: str,
    arguments: Sequence[str],
    here: Path,
    environment: Mapping[str, str],
    output: Path,
    errors: Path | None = None,
    before: Callable[[], object] = lambda: None,
) -> NoReturn:
    """Turn a fork of this process into a command that writes to files; ``before`` is called last before it begins."""
    os.setsid()
    os.chdir(here)
    os.environ.clear()
    os.environ.update(environment)
    speak_into(output, errors or output)
    before()
    tempfile.tempdir = None
    sys.path.insert(0, "")
    end_like_an_interpreter([program, *arguments], lambda: sys.exit(PROGRAMS[program]()))


def launched(cls: type[processes.Guarded], program: str, arguments: Sequence[str], errors: Path) -> processes.Process:
    """In place of `Guarded.launched`."""
    ours, theirs = socket.socketpair()
    errors.touch()
    pid = os.fork()
    if not pid:
        os.setsid()
        os.environ["OMP_NUM_THREADS"] = "1"
        speak_into(errors, errors)
        _close_all_but(theirs.fileno())
        end_like_an_interpreter(["-c", str(theirs.fileno()), *arguments], lambda: exec(program, {}))
    theirs.close()
    return processes.Process(pid, Connection(ours.detach()))


def speak_into(output: Path, errors: Path) -> None:
    """Let all that is printed go to files, and nothing come in."""
    targets = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for path in (output, errors)]
    for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), *targets)):
        os.dup2(descriptor, number)
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115
    encoding, _, handler = os.environ.get("PYTHONIOENCODING", "utf-8").partition(":")
    sys.stdout = sys.__stdout__ = _stream(1, encoding, handler or "strict")
    sys.stderr = sys.__stderr__ = _stream(2, encoding, "backslashreplace")


def _stream(descriptor: int, encoding: str, errors: str) -> io.TextIOWrapper:
    raw = open(descriptor, "wb", buffering=0, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=True)


def _close_all_but(descriptor: int) -> None:
    open_ones = [int(path.name) for path in Path("/proc/self/fd").iterdir()]
    for number in open_ones:
        if number > 2 and number != descriptor:
            with suppress(OSError):
                os.close(number)


def end_like_an_interpreter(arguments: Sequence[str], work: Callable[[], object]) -> NoReturn:
    sys.argv = list(arguments)
    status = 0
    try:
        work()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(bool(end.code))
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:
        traceback.print_exc()
        status = 1
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(status)


@dataclass(frozen=True)
class Command:
    """One of `PROGRAMS`, the folder and environment that it runs in, and how many seconds it may take."""

    program: str
    arguments: Sequence[str]
    here: Path
    environment: Mapping[str, str]
    seconds: float = 300.0


def run(command: Command) -> subprocess.CompletedProcess[str]:
    """How a command ends that is forked from the process of all such commands of this one, and what it printed."""
    with tempfile.TemporaryDirectory() as scratch:
        output, errors = Path(scratch, "output"), Path(scratch, "errors")
        _starter().send((command, output, errors))
        status = _starter().recv()
        if status is None:
            raise subprocess.TimeoutExpired([command.program, *command.arguments], command.seconds, output.read_text())
        texts = (path.read_text(encoding="utf-8", errors="replace") for path in (output, errors))
        return subprocess.CompletedProcess([command.program, *command.arguments], status, *texts)


@cache
def _starter() -> Connection:
    """The connection to a process that has imported everything, and starts a command for each that it is sent."""
    ours, theirs = socket.socketpair()
    program = f"import forked; forked.serve({theirs.fileno()})"
    folder = str(Path(__file__).parent)
    with theirs:
        environment = os.environ | {"PYTHONPATH": folder}
        subprocess.Popen([sys.executable, "-c", program], pass_fds=[theirs.fileno()], env=environment)
    return Connection(ours.detach())


def serve(descriptor: int) -> None:
    """Start what comes over a connection, one command after the other, until it is closed."""
    prepare()
    gc.collect()
    gc.freeze()
    with Connection(descriptor) as connection, suppress(EOFError):
        while True:
            command, output, errors = connection.recv()
            pid = os.fork()
            if not pid:
                connection.close()
                become(command.program, command.arguments, command.here, command.environment, output, errors)
            connection.send(_status(pid, command.seconds))


def _status(pid: int, seconds: float) -> int | None:
    """The exit status of a process; none if it has to be killed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None
