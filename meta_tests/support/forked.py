"""Commands in children of a fork server that has imported everything: an interpreter of its own takes seconds for each.

What a sandbox would launch is forked as well, without a guardian. Tests of processes and of what is loaded into them
start real ones, and so does xdist.
"""

import faulthandler
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from runpy import run_path
from typing import Any
from unittest.mock import patch

import pytest

from places import ROOT, SUPPORT
from poolproof.backends.host import server
from poolproof.suites.cli import main
from poolproof.suites.isolation.arena import Arena

FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["preloaded"])

PROGRAMS: dict[str, Callable[[], Any]] = {
    "pytest": pytest.console_main,
    "poolproof": main,
    "speed": lambda: run_path(str(ROOT / "benchmarks" / "speed.py"), run_name="__main__"),
    "without the project": lambda: _without_the_project(),
    "python": lambda: exec(sys.argv[1], {"__name__": "__main__"}),
}


@dataclass(frozen=True)
class Command:
    """One of `PROGRAMS`, the folder and environment that it runs in, and how many seconds it may take.

    ``before`` is a function of a module that children can import; it is called last before the program begins.
    """

    program: str
    arguments: Sequence[str]
    here: Path
    environment: Mapping[str, str]
    seconds: float = 300.0
    before: Callable[[], object] | None = None


def start(command: Command, output: Path, errors: Path) -> BaseProcess:
    """A child that becomes the command, in a process group of its own."""
    process = FORKSERVER.Process(
        target=_become, args=(replace(command, environment=dict(command.environment)), output, errors)
    )
    with patch.dict(os.environ, PYTHONPATH=str(SUPPORT)):  # where the server, if this starts it, finds its preload
        process.start()
    return process


def run(command: Command) -> subprocess.CompletedProcess[str]:
    """How a command ends, and what it printed."""
    words = [command.program, *command.arguments]
    with tempfile.TemporaryDirectory() as scratch:
        files = Path(scratch, "output"), Path(scratch, "errors")
        process = start(command, *files)
        process.join(command.seconds)
        output, errors = (path.read_text(encoding="utf-8", errors="replace") if path.exists() else "" for path in files)
        if process.exitcode is None:
            process.kill()  # also one that has no group yet
            with suppress(ProcessLookupError):
                os.killpg(process.pid or 0, signal.SIGKILL)
            process.join()
            raise subprocess.TimeoutExpired(words, command.seconds, output)
        return subprocess.CompletedProcess(words, process.exitcode, output, errors)


def _become(command: Command, output: Path, errors: Path) -> None:
    os.setsid()
    os.chdir(command.here)
    os.environ.clear()
    os.environ.update(command.environment)
    tempfile.tempdir = None
    speak_into(output, errors)
    encoding, _, handler = os.environ.get("PYTHONIOENCODING", "utf-8").partition(":")
    sys.stdout.reconfigure(encoding=encoding, errors=handler or "strict")  # type: ignore[union-attr]
    sys.path[:0] = ["", *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    if command.before:
        command.before()
    sys.argv = [command.program, *command.arguments]
    sys.exit(PROGRAMS[command.program]())


def _without_the_project() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "poolproof"]:
        sys.modules[name] = None  # type: ignore[assignment]
    del sys.argv[0]
    run_path(sys.argv[0], run_name="__main__")


def speak_into(output: Path, errors: Path) -> None:
    """Let all that is printed go to files, and nothing come in."""
    for number, path in enumerate((Path(os.devnull), output, errors)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), number)


def launched(_backend: str, control: int, arena: Arena, output: int) -> int:
    """In place of `supervision.launched`: the host is a fork of this process, without a guardian."""

    def become() -> None:
        os.setsid()
        os.environ["OMP_NUM_THREADS"] = "1"
        faulthandler.disable()  # pytest's, for which no signal would be seen to get a handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for number in (1, 2):
            os.dup2(output, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
            if number > 2 and number not in (control, arena.descriptor):
                with suppress(OSError):
                    os.close(number)
        server.serve(control, arena.descriptor, arena.size)

    return fork(become)


def fork(work: Callable[[], int | None]) -> int:
    """The id of a process that does ``work`` and ends with the status it returns, 1 where it raises."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        status = work() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
