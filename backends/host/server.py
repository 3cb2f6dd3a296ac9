"""The loop of a host: it answers requests about one backend in order; its forks answer the same requests."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from sysconfig import get_path
from typing import Any, NoReturn

import numpy as np

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import Attempt, Backend, BackendUnavailable, Call, SequenceResult, Status, UnknownBackend
from poolproof.backends.host import protocol
from poolproof.backends.host.process_state import ProcessState, allocated_bytes, child_processes
from poolproof.backends.host.protocol import Channel, Description, Raised
from poolproof.backends.registry import ATTRIBUTES, create
from poolproof.references.contract.call import ContractCall
from poolproof.references.formats import FORMATS
from poolproof.references.operators import OPERATORS
from poolproof.references.sequences import Action

Record = dict[str, Any]

_GARBAGE = 5000
"""New objects between searches for garbage cycles: a call makes dozens, and hardly any cycles."""

_MOST_COUNTED = 255
"""Most begun calls that a byte can count: the next one is 1 again."""

_PR_SET_PDEATHSIG, _WALL = 1, 0x40000000
_PROT_NONE, _PROT_READ_WRITE = 0, mmap.PROT_READ | mmap.PROT_WRITE
_LIBC = ctypes.CDLL(None, use_errno=True)


def serve(control: int, arena: int, size: int) -> None:
    """Answer requests on a socket about tensors in shared memory until the judge hangs up."""
    RequestServer(Channel(socket.socket(fileno=control)), mmap.mmap(arena, size)).answer_all()


class RequestServer:
    """One backend, created by `describe`, and the state of its process."""

    backend: Backend
    state: ProcessState

    def __init__(self, channel: Channel, arena: mmap.mmap) -> None:
        self.channel = channel
        self.kept: set[int] = set()
        self.memory = np.frombuffer(arena, np.uint8)
        self.start = self.memory.ctypes.data
        self.requests: dict[str, Callable[[Record], Record]] = {
            "describe": self.describe,
            "open": self.open,
            "run": self.run,
            "declare": lambda request: {"declared": self.declared(protocol.read_call(request["call"], self.memory)[0])},
            "attempt": self.attempt,
            "sequence": self.sequence,
            "memory": self.memory_in_use,
            "fork": self.fork,
            "end": self.end,
        }

    def answer_all(self) -> None:
        while True:
            try:
                request = self.channel.receive()
            except (EOFError, ConnectionError):
                return
            try:
                frame = protocol.to_frame(self.answer(request))
            except Exception as error:  # an adapter returned something that is not JSON, or too much of it
                frame = protocol.to_frame({"raised": protocol.write_flat(Raised.of(error))})
            self.channel.connection.sendall(frame)

    def answer(self, request: Record) -> Record:
        try:
            return {"done": self.requests[request["do"]](request)}
        except BackendUnavailable as error:
            return {"unavailable": protocol.write_text(str(error))}
        except UnknownBackend as error:
            return {"unknown": protocol.write_text(str(error))}
        except Exception as error:
            return {"raised": protocol.write_flat(Raised.of(error))}

    def describe(self, request: Record) -> Record:
        """Load the backend and describe it. If it must be opened in a fork, `open` describes it there."""
        self.name, self.libraries = request["backend"], mapped_libraries()
        self.backend = create(self.name)
        gc.set_threshold(_GARBAGE)
        if not (self.backend.survives_fork and self.backend.opens_late):
            record = self.open(request)
        else:
            record = protocol.write_flat(Description(survives_fork=True, opens_late=True))
        gc.freeze()  # the garbage collector then does not touch pages that forks share
        return record

    def open(self, _: Record) -> Record:
        self.backend.open()
        record = protocol.write_flat(describe(self.name, self.backend, mapped_libraries() - self.libraries))
        self.state = ProcessState()
        return record

    def run(self, request: Record) -> Record:
        calls, mode = [protocol.read_call(record, self.memory) for record in request["calls"]], request.get("mode", "")
        outcomes: list[Record] = []
        done: Record = {"outcomes": outcomes}
        for number, (call, fences) in enumerate(calls, 1):
            self.memory[request["begun"]] = number
            outcome = self.fenced(fences, partial(self.backend.run, call, mode))
            outcomes.append(protocol.write_outcome(outcome, call))
            if number == 1 and request.get("declare"):
                done["declared"] = self.declared(call)  # the route is that of the last call
            if outcome.status is not Status.COMPLETED or self.state.computes_otherwise():
                break
        return self.with_state(done)

    def declared(self, call: Call) -> Record:
        """Return each declaration for ``call``, or the error that it raised."""
        declared: Record = {}
        for name, kind in protocol.DECLARATIONS.items():
            try:
                value = protocol.checked(getattr(self.backend, name)(call), kind, name)
                declared[name] = value if kind is bool else protocol.write_text(str(value))
            except Exception as error:
                declared[name] = {"raised": protocol.write_flat(Raised.of(error))}
        return declared

    def attempt(self, request: Record) -> Record:
        call = ContractCall.from_record(request["call"])
        attempt = self.backend.attempt(call, runs=request.get("runs", True))
        return self.with_state({"attempt": protocol.write_flat(protocol.checked(attempt, Attempt, "attempt"))})

    def sequence(self, request: Record) -> Record:
        placed = [protocol.read_call(record, self.memory) for record in request["calls"]]
        calls, fences = [call for call, _ in placed], [fence for _, more in placed for fence in more]
        actions = tuple(Action(**action) for action in request["actions"])
        result = self.fenced(fences, lambda: self.backend.run_sequence(actions, calls))
        checked = protocol.checked(result, SequenceResult, "run_sequence")
        return self.with_state({"sequence": protocol.write_flat(checked)})

    def memory_in_use(self, request: Record) -> Record:
        """Return the memory in use, after making a call, or having it refused, ``count`` times."""
        if "call" in request:
            call, fences = protocol.read_call(request["call"], self.memory)
            self.fenced(fences, partial(self.run_often, call, request))
        return self.with_state({"bytes": self.backend.device_memory_in_use(), "host": allocated_bytes()})

    def run_often(self, call: Call, request: Record) -> None:
        """Make the calls one by one, and count them; refusals, which compute nothing, are one sequence."""
        if request["refused"]:
            self.backend.run_often(call, request["count"], True)
        for number in range(0 if request["refused"] else request["count"]):
            self.memory[request["begun"]] = number % _MOST_COUNTED + 1
            self.backend.run_often(call, 1, False)

    def fork(self, _: Record) -> Record:
        descriptor = self.channel.descriptors.pop()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if not self.kept:
            self.kept = child_processes()
        zygote, pid = os.getpid(), os.fork()
        if pid == 0:
            self.work(descriptor, zygote)
        os.close(descriptor)
        self.kept.add(pid)
        return {"pid": pid}

    def work(self, descriptor: int, zygote: int) -> NoReturn:
        """Serve as a worker until the judge hangs up; die with the zygote."""
        status = 1
        try:
            os.setpgid(0, 0)
            _LIBC.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
            if os.getppid() != zygote:
                os._exit(status)
            self.channel.close()
            self.channel = Channel(socket.socket(fileno=descriptor))
            self.state = ProcessState()
            self.answer_all()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def end(self, request: Record) -> Record:
        """Return the exit status of a fork; kill its group if it does not end within ``seconds``.

        Also kill children of this process that it did not fork itself: a fork made them by CLONE_PARENT.
        """
        pid, deadline = request["pid"], time.monotonic() + request["seconds"]
        ended, status = os.waitpid(pid, os.WNOHANG)
        while not ended and time.monotonic() < deadline:
            time.sleep(0.001)
            ended, status = os.waitpid(pid, os.WNOHANG)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        if not ended:
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
        self.kept.discard(pid)
        for stray in child_processes() - self.kept:
            os.kill(stray, signal.SIGKILL)
            os.waitpid(stray, _WALL)
        return {"status": os.waitstatus_to_exitcode(status)}

    def fenced(self, fences: list[tuple[int, int]], work: Callable[[], Any]) -> Any:
        """Run ``work`` while the pages behind some buffers can be neither read nor written."""
        if not fences:
            return work()
        try:
            self.protect(fences, _PROT_NONE)
            return work()
        finally:
            self.protect(fences, _PROT_READ_WRITE)

    def protect(self, fences: list[tuple[int, int]], access: int) -> None:
        for first, size in fences:
            start, length = _whole_pages(first), _whole_pages(size)
            if _LIBC.mprotect(ctypes.c_void_p(self.start + start), ctypes.c_size_t(length), access):
                raise OSError(ctypes.get_errno(), "mprotect cannot fence the memory")

    def with_state(self, done: Record) -> Record:
        """Add the changes that calls made to this process, if any, to ``done``."""
        changes = self.state.changes()
        if changes:
            done["changed"] = list(map(protocol.write_flat, changes))
        if not self.backend.is_usable():
            done["usable"] = False
        return done


def _whole_pages(size: int) -> int:
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def describe(name: str, backend: Backend, libraries: frozenset[str]) -> Description:
    """Describe a backend; raise `UnknownBackend` for an invalid declaration."""
    unsupported = {}
    for operator in OPERATORS.values():
        for key in ((operator.name, dtype, stored) for stored in operator.indices.dtypes for dtype in FORMATS):
            unsupported[key] = reason = backend.unsupported(operator, *key[1:])
            if not (reason is None or isinstance(reason, str)):
                problem = f"gives {reason!r:.80} from unsupported: it must be a reason, or None"
                raise UnknownBackend(f"backend {name!r} {problem}")
    abilities = {operator.name: backend.abilities(operator) for operator in OPERATORS.values()}
    for given in abilities.values():
        if not isinstance(given, Abilities):
            raise UnknownBackend(f"backend {name!r} gives {given!r:.80} from abilities: it must be Abilities")
    return Description(
        **{attribute: getattr(backend, attribute) for attribute in ATTRIBUTES},
        environment={str(name): str(value) for name, value in backend.environment().items()},
        unsupported=unsupported,
        abilities=abilities,
        libraries=tuple(sorted(libraries)),
        import_folders=tuple(import_folders()) if ":" in name else (),
        path=tuple(sys.path),
        python=sys.version.split()[0],
        numpy=np.__version__,
    )


def mapped_libraries() -> frozenset[str]:
    r"""Return the real paths of this process's shared libraries, without Python's; none if the system has no maps.

    Paths are as in proc_pid_maps(5): a newline is written "\012", and the path of a file that was removed or replaced
    after it was mapped ends in " (deleted)".
    """
    pythons = get_path("stdlib")  # in a virtual environment, "platstdlib" may be its folder
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return frozenset()
    paths = {parts[5] for parts in (line.split(maxsplit=5) for line in lines) if len(parts) == 6}
    own = {path for path in paths if path.startswith(pythons) and "site-packages" not in path}
    return frozenset(path for path in paths - own if ".so" in Path(path).name)


def import_folders() -> list[str]:
    """Return the folders that only this session imports from: its own and those of PYTHONPATH, if they hold a module.

    poolproof's own modules are left out: they are available wherever poolproof is installed.
    """
    named = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    ours = list(dict.fromkeys(str(Path(folder).absolute()) for folder in (".", *named)))
    places = sorted({*(str(Path(entry).absolute()) for entry in sys.path), *ours}, key=len, reverse=True)
    ours_or_main = ("poolproof", "__main__")
    foreign = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] not in ours_or_main]
    files = [module.__file__ for module in foreign if getattr(module, "__file__", None)]
    used = {next((place for place in places if str(file).startswith(place + os.sep)), "") for file in files}
    return [folder for folder in ours if folder in used]
