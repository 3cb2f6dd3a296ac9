"""Commands as forks of one process that has imported everything: an interpreter of its own takes seconds for each.

What a sandbox would launch is forked as well, without a guardian, and so are the workers of xdist. Tests of processes
and of what is loaded into them start real ones.
"""

from __future__ import annotations

import errno
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
from runpy import run_module, run_path
from typing import Any, NoReturn

import pytest
from _pytest.config import default_plugins
from execnet import gateway_io
from execnet.gateway_base import ExecModel, Popen2IO
from rich.cells import cell_len

import limited_sessions
from places import ROOT, SUPPORT
from poolproof.backends.host import server
from poolproof.references.contract.vocabulary import SIGNATURES
from poolproof.references.kernels.compiled import compile_all
from poolproof.references.products import PRODUCTS, Product
from poolproof.reports.pages.render import _environment as page_environment
from poolproof.reports.rows.environment import suite_identity
from poolproof.suites.cases.calls import call_parts
from poolproof.suites.cli import main
from poolproof.suites.isolation import supervision
from poolproof.suites.isolation.arena import Arena

_BENCHMARKS = ROOT / "benchmarks"

PROGRAMS: dict[str, Callable[[], object]] = {
    "pytest": pytest.console_main,
    "poolproof": main,
    "limited_sessions": limited_sessions.main,
    "bad_inputs": lambda: run_module("bad_inputs", run_name="__main__"),
    "speed": lambda: run_path(str(_BENCHMARKS / "speed.py"), run_name="__main__"),
    "python": lambda: exec(sys.argv[1], {"__name__": "__main__"}),
}

PATIENCE = 5.0
"""Seconds after which the process that starts commands looks whether anybody is left that may ask for more."""

_LATE = (
    *("scatter_backends", "dying_backends", "hypothesis.internal.observability", "rich.progress", "rich.markdown"),
    *("email.parser", "pdb", "pandas", "pyarrow.acero", "pyarrow.dataset", "pyarrow.parquet"),
    *("encodings.ascii", "encodings.cp437", "faulthandler", "packaging.version", "readline", "termios"),
    *("pandas.io.formats.csvs", "rich._emoji_codes", "tomli_w", "_pytest._argcomplete"),
    *("xdist.dsession", "xdist.newhooks", "xdist.remote", "xdist.scheduler", "xdist.workermanage"),
    *("poolproof.reports.ci.junit", "poolproof.reports.ci.services"),
    *("poolproof.reports.pages.publishing", "poolproof.reports.terminal.run"),
    *("poolproof.reports.commands", "poolproof.reports.rows.arrow", "poolproof.suites.verify"),
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
    suite_identity()
    cell_len("\N{EM DASH}")
    pages = page_environment()
    for template in pages.list_templates(extensions=["j2"]):
        pages.get_template(template)
    assert "launched" in vars(supervision), "what sandboxes launch has moved, and would not be forked"
    supervision.launched = launched
    assert "__init__" in vars(gateway_io.Popen2IOMaster), "what xdist starts has moved, and would not be forked"
    gateway_io.Popen2IOMaster.__init__ = _gateway_forked  # type: ignore[method-assign]


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
    asked_for = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = ["", *(folder for folder in asked_for if folder and folder not in sys.path)]
    end_like_an_interpreter([program, *arguments], lambda: sys.exit(PROGRAMS[program]()))


def launched(_backend: str, control: int, arena: Arena, output: int) -> int:
    """In place of `supervision.launched`: the host is a fork of this process, without a guardian."""
    pid = os.fork()
    if not pid:
        os.setsid()
        os.environ["OMP_NUM_THREADS"] = "1"
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for number in (1, 2):
            os.dup2(output, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _close_all_but(control, arena.descriptor)
        _renew_streams()
        end_like_an_interpreter(["program.py"], lambda: server.serve(control, arena.descriptor, arena.size))
    return pid


class _Worker:
    """What execnet, and a session that is interrupted, ask of a process that was started."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def wait(self) -> int:
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status

    def poll(self) -> int | None:
        if self._status is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if ended else None
        return self._status

    def terminate(self) -> None:
        self._signalled(signal.SIGTERM)

    def kill(self) -> None:
        self._signalled(signal.SIGKILL)

    def _signalled(self, number: signal.Signals) -> None:
        if self._status is None:
            os.kill(self.pid, number)


def _gateway_forked(self: gateway_io.Popen2IOMaster, args: Sequence[str], execmodel: ExecModel) -> None:
    """In place of its ``__init__``: a fork of this process, which reads its program as a new interpreter would."""
    (read_there, write_here), (read_here, write_there) = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(read_there, 0)
        os.dup2(write_there, 1)
        _close_all_but(2)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _renew_streams()
        end_like_an_interpreter(["-c"], lambda: exec(eval(sys.stdin.readline()), {}))
    os.close(read_there)
    os.close(write_there)
    self.popen = _Worker(pid)  # type: ignore[assignment]
    Popen2IO.__init__(self, os.fdopen(write_here, "wb"), os.fdopen(read_here, "rb"), execmodel=execmodel)


def speak_into(output: Path, errors: Path) -> None:
    """Let all that is printed go to files, and nothing come in."""
    targets = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for path in (output, errors)]
    for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), *targets)):
        os.dup2(descriptor, number)
    _renew_streams()


def _renew_streams() -> None:
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115
    encoding, _, handler = os.environ.get("PYTHONIOENCODING", "utf-8").partition(":")
    sys.stdout = sys.__stdout__ = _stream(1, encoding, handler or "strict")
    sys.stderr = sys.__stderr__ = _stream(2, encoding, "backslashreplace")


def _stream(descriptor: int, encoding: str, errors: str) -> io.TextIOWrapper:
    raw = open(descriptor, "wb", buffering=0, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=True)


def _close_all_but(*descriptors: int) -> None:
    open_ones = [int(path.name) for path in Path("/proc/self/fd").iterdir()]
    for number in open_ones:
        if number > 2 and number not in descriptors:
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


class Started:
    """A command that runs as a fork of the process of all such commands of this one, in a process group of its own."""

    def __init__(self, command: Command, output: Path, errors: Path) -> None:
        self._seconds = command.seconds
        self.pid = _asked((command, output, errors))

    def wait(self) -> int | None:
        """How it ends; None if it has to be killed, for its seconds are over. To be asked once."""
        return _asked((self.pid, self._seconds))


def run(command: Command) -> subprocess.CompletedProcess[str]:
    """How a command ends, and what it printed."""
    with tempfile.TemporaryDirectory() as scratch:
        output, errors = Path(scratch, "output"), Path(scratch, "errors")
        status = Started(command, output, errors).wait()
        if status is None:
            raise subprocess.TimeoutExpired([command.program, *command.arguments], command.seconds, output.read_text())
        texts = (path.read_text(encoding="utf-8", errors="replace") for path in (output, errors))
        return subprocess.CompletedProcess([command.program, *command.arguments], status, *texts)


def _asked(request: tuple[Command, Path, Path] | tuple[int, float]) -> Any:
    _starter().send(request)
    return _starter().recv()


@cache
def _starter() -> Connection:
    """The connection to a process that has imported everything, and starts a command for each that it is sent.

    The workers of one test session share that process: whoever comes first starts it.
    """
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
    address = f"\0poolproof-{session}"  # of no file: it is gone with the process that listens there
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            listener.listen()
            _start_server(listener.fileno())
        ours = socket.socket(socket.AF_UNIX)
        ours.connect(address)
    return Connection(ours.detach())


def _start_server(listener: int) -> None:
    variables = {"PYTHONPATH": str(SUPPORT), "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    environment = os.environ | variables  # with large pages a fork takes about half of the time
    program = f"import forked; forked.serve({listener})"
    subprocess.Popen([sys.executable, "-c", program], pass_fds=[listener], env=environment)


def serve(descriptor: int) -> None:
    """Serve all that connect to a listening socket, each in a fork, until the last of them has gone."""
    prepare()
    _list_calls_of_the_contract(PRODUCTS["A2"])
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=descriptor) as listener:
        listener.settimeout(PATIENCE)
        clients = {_served_in_a_fork(listener)}
        while clients:
            with suppress(TimeoutError):
                clients.add(_served_in_a_fork(listener))
            clients = {pid for pid in clients if not os.waitpid(pid, os.WNOHANG)[0]}


def _served_in_a_fork(listener: socket.socket) -> int:
    """The id of a process that serves whoever connects; TimeoutError if nobody does."""
    accepted, _ = listener.accept()
    accepted.setblocking(True)
    with accepted:
        pid = os.fork()
        if not pid:
            listener.close()
            end_like_an_interpreter(["-c"], lambda: _serve(Connection(accepted.detach())))
    return pid


def _serve(connection: Connection) -> None:
    """Start what comes over a connection, or wait for what was started, one after the other, until it is closed."""
    with connection, suppress(EOFError, ConnectionResetError):
        while True:
            match connection.recv():
                case (Command() as command, Path() as output, Path() as errors):
                    pid = os.fork()
                    if not pid:
                        connection.close()
                        become(command.program, command.arguments, command.here, command.environment, output, errors)
                    connection.send(pid)
                case (int(pid), seconds):
                    connection.send(_status(pid, seconds))


def _list_calls_of_the_contract(product: Product) -> None:
    """Each session on that product counts them, which takes it a second where they are not listed yet."""
    for api in SIGNATURES:
        for part in call_parts(product, api, cases=1, seed=0):
            part.count(product, api)


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
