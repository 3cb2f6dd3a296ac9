"""A host answers requests about calls in shared memory, and so do its forks; what calls leave behind is named."""

import ast
import importlib
import json
import mmap
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from places import ROOT, SUPPORT
from poolproof import backends, references
from poolproof.backends.base import Attempt, Call, SequenceResult, Status, Tensor
from poolproof.backends.host import program
from poolproof.backends.host.protocol import (
    Channel,
    Description,
    Raised,
    to_frame,
    write_call,
    write_flat,
)
from poolproof.backends.host.server import mapped_libraries
from poolproof.backends.registry import is_python_variable, python_of
from poolproof.references.accumulation import ACC32
from poolproof.references.contract.examples import legal_calls
from poolproof.references.formats import FORMATS
from poolproof.references.forward_rule import FAMILY_RULE
from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS
from poolproof.references.sequences import HAZARDS, VERBS
from poolproof.references.windows import Windowed, Windows
from poolproof.suites.isolation.replies import read, read_changes, read_declarations, read_description, read_outcome

FORWARD, BACKWARD = "MaxPool2dWithIndices", "MaxPool2dWithIndicesBackward"

PACKAGES = {package.__name__: package.__path__[0] for package in (backends, references)}

ARENA_SIZE = 1 << 24

_BETWEEN = 1 << 14
"""Bytes from one tensor to the next, which leaves room for fences."""


class HostClient(AbstractContextManager):
    """Ends the host when a test leaves it."""

    def __init__(self, command: Sequence[str] = (sys.executable, program.__file__), **environment: str) -> None:
        ours, theirs = socket.socketpair()
        arena = os.memfd_create("arena", os.MFD_ALLOW_SEALING)
        os.ftruncate(arena, ARENA_SIZE)
        self.memory: NDArray[np.uint8] = np.frombuffer(mmap.mmap(arena, ARENA_SIZE), np.uint8)
        self._taken = 0
        self.process = subprocess.Popen(
            [*command, str(theirs.fileno()), str(arena), str(ARENA_SIZE), json.dumps(PACKAGES)],
            pass_fds=[theirs.fileno(), arena],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        )
        theirs.close()
        os.close(arena)
        self.channel = Channel(ours)

    def __exit__(self, *_: object) -> None:
        self.channel.close()
        self.process.kill()
        self.process.wait()

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        self.channel.send({"do": do, **request})
        return self.channel.receive()

    def done(self, do: str, **request: Any) -> dict[str, Any]:
        reply = self.ask(do, **request)
        assert "done" in reply, reply
        return reply["done"]

    def describe(self, backend: str) -> Description:
        return read_description(self.done("describe", backend=backend))

    def fork(self) -> tuple[int, Channel]:
        ours, theirs = socket.socketpair()
        frame = to_frame({"do": "fork"})
        socket.send_fds(self.channel.connection, [frame], [theirs.fileno()])
        theirs.close()
        return self.channel.receive()["done"]["pid"], Channel(ours)

    def call(self, operator: str, windows: Windows, arrays: Mapping[str, NDArray]) -> Call:
        """A call on contiguous copies of arrays, each between guard bands of 64 bytes; a tensor has at most 4 KiB."""
        tensors = {}
        for name, array in arrays.items():
            buffer = self.memory[self._taken :][: array.nbytes + 128]
            self._taken += _BETWEEN
            view: NDArray = np.ndarray(array.shape, array.dtype, buffer, 64)
            view[...] = array
            tensors[name] = Tensor(buffer, 64, view, tuple(step // array.itemsize for step in array.strides))
        return Call(OPERATORS[operator], windows, tensors)

    def to_run(self, *calls: Call, fence: int = 0, **more: Any) -> dict[str, Any]:
        return {"do": "run", "calls": [self.record(call, fence) for call in calls], "begun": ARENA_SIZE - 1, **more}

    def record(self, call: Call, fence: int = 0) -> dict[str, Any]:
        base = self.memory.ctypes.data
        return write_call(call, lambda buffer: (buffer.ctypes.data - base, fence))


def described(backend: str) -> Iterator[HostClient]:
    with HostClient(PYTHONPATH=str(SUPPORT)) as client:
        client.describe(f"host_backends:{backend}")
        yield client


@pytest.fixture(scope="module")
def host() -> Iterator[HostClient]:
    yield from described("Misbehaving")


@pytest.fixture(scope="module")
def leaving() -> Iterator[HostClient]:
    yield from described("Leaving")


@contextmanager
def forked(host: HostClient) -> Iterator[Channel]:
    pid, channel = host.fork()
    yield channel
    channel.close()
    host.done("end", pid=pid, seconds=0)


@pytest.fixture
def worker(host: HostClient) -> Iterator[Channel]:
    with forked(host) as channel:
        yield channel


def forward(host: HostClient, index_dtype: str = "int64") -> Call:
    """Four windows over a plane of 1 to 16."""
    values = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    outputs = {"out": np.zeros((1, 1, 2, 2), np.float32), "indices": np.zeros((1, 1, 2, 2), index_dtype)}
    return host.call(FORWARD, Windowed((2, 2)), {"self": values, **outputs})


def backward(host: HostClient) -> Call:
    gradient, indices = np.array([[[[1, 2]]]], np.float32), np.array([[[[0, 3]]]])
    values = np.zeros((1, 1, 2, 4), np.float32)
    inputs = {"grad_output": gradient, "self": values, "indices": indices}
    return host.call(BACKWARD, Windowed((2, 2)), {**inputs, "grad_input": values + 7})


def replied(worker: Channel, host: HostClient, mode: str, *calls: Call, **more: object) -> dict[str, Any]:
    """What comes of calls in a mode; of a forward where none is given."""
    worker.send(host.to_run(*(calls or [forward(host)]), mode=mode, **more))
    return worker.receive()


def test_a_backend_describes_itself(host: HostClient) -> None:
    said = host.describe("host_backends:Misbehaving")
    assert said.survives_fork
    assert said.modes[0] == "raises"
    assert said.environment == {"numpy": np.__version__}
    assert said.unsupported[FORWARD, "float16", "int32"] is None
    assert said.unsupported["MaxPool2dWithMask", "float16", "int8"] == "windows of two by two alone"
    keys = {(name, dtype, kept) for name, op in OPERATORS.items() for kept in op.indices.dtypes for dtype in FORMATS}
    assert said.unsupported.keys() == keys
    assert said.abilities.keys() == OPERATORS.keys()
    assert said.import_folders == (str(SUPPORT),)
    assert said.python == sys.version.split()[0]
    assert (said.product, said.actions) == (None, ("prepare", "run"))


def test_libraries_are_a_backends_and_not_pythons_own() -> None:
    mapped = mapped_libraries()
    assert np._core._multiarray_umath.__file__ in mapped
    assert importlib.import_module("_ctypes").__file__ not in mapped, "it is part of Python, in an environment, too"


def test_a_call_writes_its_outputs_in_shared_memory(host: HostClient, worker: Channel) -> None:
    call = forward(host)
    done = replied(worker, host, "", call, declare=True)["done"]
    assert completed(done, call)
    assert done["outcomes"][0].keys() <= {"status", "seconds"}
    assert call.tensors["indices"].array.tolist() == [[[[5, 7], [13, 15]]]]
    declared = read_declarations(done["declared"])
    own = {"is_deterministic": True, "may_refuse": "", "route": ""}
    assert declared == {"accumulation": ACC32, "forward_rule": FAMILY_RULE, **own}
    assert done.keys() == {"outcomes", "declared"}
    call = backward(host)
    assert replied(worker, host, "", call)["done"].keys() == {"outcomes"}
    assert call.tensors["grad_input"].array.tolist() == [[[[1, 0, 0, 2], [0, 0, 0, 0]]]]


@pytest.mark.parametrize(
    ("mode", "type_", "text"),
    [
        ("raises", "ValueError", "no stream"),
        ("no outcome", "", "returned 'fine' from run, not an Outcome"),
        ("no text", "TypeError", "'int' object"),
        ("no number", "ValueError", "could not convert string to float"),
        ("not json", "ValueError", "limit"),
        ("huge", "ProtocolError", "longer than"),
    ],
)
def test_what_an_adapter_may_not_is_told(host: HostClient, worker: Channel, mode: str, type_: str, text: str) -> None:
    raised = read(Raised, replied(worker, host, mode)["raised"])
    assert (raised.type, text in raised.text) == (type_, True), raised
    if mode == "raises":
        assert (raised.file, raised.function) == ("host_backends.py", "run")
        assert "ValueError: no stream" in raised.traceback
    assert "done" in replied(worker, host, "")
    for request in ({}, {"do": "nothing"}, {"do": "run"}, {"do": "run", "calls": [{"operator": "Conv"}]}):
        worker.send(request)
        assert worker.receive()["raised"]["type"] == "KeyError"


def test_declarations_that_cannot_be_had_are_told_one_by_one() -> None:
    with HostClient(PYTHONPATH=str(SUPPORT), ASCEND_HOME_PATH="\udcff") as host:
        for backend, key, text in (
            ("nobody", "unknown", "unknown backend 'nobody'"),
            ("aclnn", "unavailable", "sought in ?"),
            ("reports_backends:nothing", "unknown", "cannot be loaded"),
            ("host_backends:LEAVES", "raised", "not callable"),
        ):
            assert text in str(host.ask("describe", backend=backend)[key])
        host.describe("host_backends:Declaring")
        for declared in (
            host.done(**host.to_run(forward(host), declare=True))["declared"],
            host.done("declare", call=host.record(forward(host)))["declared"],
        ):
            found = read_declarations(declared)
            assert (found["accumulation"].type, found["accumulation"].text) == ("RuntimeError", "nobody knows")
            assert found["forward_rule"] == Raised("", "returned 'first' from forward_rule, not a ForwardRule")
            assert (found["is_deterministic"], found["route"]) == (True, "")


def completed(done: dict[str, Any], call: Call) -> bool:
    """Whether calls completed, of which the last is a forward that gave what is right."""
    statuses = {read_outcome(record, call).status for record in done["outcomes"]}
    return statuses == {Status.COMPLETED} and call.tensors["out"].array.tolist() == [[[[6, 8], [14, 16]]]]


def test_the_emulator_answers_every_request() -> None:
    with HostClient() as host:
        said = host.describe("emulator-a2")
        assert said.product == PRODUCTS["A2"]
        assert {*VERBS} < {*said.actions}
        assert any("libpoolproof_emulator" in path for path in said.libraries)
        call, other = forward(host, "int32"), forward(host, "int32")
        records = [host.record(call), host.record(other)]
        done = host.done(**host.to_run(call))
        assert completed(done, call)
        assert "changed" not in done
        for actions in HAZARDS.values():
            done = host.done("sequence", calls=records, actions=list(map(write_flat, actions)))
            assert read(SequenceResult, done["sequence"]).statuses == (0,) * len(actions)
        assert completed({"outcomes": [{"status": "completed"}]}, other)
        legal = next(iter(legal_calls(PRODUCTS["A2"], f"aclnn{FORWARD}").values()))
        attempt = read(Attempt, host.done("attempt", call=legal.to_record(), runs=True)["attempt"])
        assert (attempt.phase_one, attempt.phase_two) == (0, 0)
        assert isinstance(host.done("memory")["bytes"], int)


def test_a_host_knows_nothing_of_judging() -> None:
    program = "import sys; import poolproof.backends.host.server; print(*sys.modules)"
    printed = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    loaded = set(printed.split())
    assert not {"numba", "pandas", "hypothesis", "pytest", "pyarrow"} & loaded
    assert not [name for name in loaded if name.startswith(("poolproof.suites", "poolproof.reports"))]
    judging = {"kernels", "criterion", "forward", "summary", "specification", "standards", "deviations"}
    assert not {name.split(".")[2] for name in loaded if name.startswith("poolproof.references.")} & judging
    contract = {name for name in loaded if name.startswith("poolproof.references.contract.")}
    assert contract == {f"poolproof.references.contract.{name}" for name in ("call", "vocabulary")}


def old_python() -> str | None:
    """A Python 3.9 that has a numpy."""
    named = os.environ.get("POOLPROOF_TEST_PYTHON39") or shutil.which("python3.9")
    command = [named or "false", "-c", "import ml_dtypes, numpy"]
    return named if subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0 else None


OLD_PYTHON = old_python()


@pytest.mark.skipif(OLD_PYTHON is None, reason="name a Python 3.9 with numpy 1.22 in POOLPROOF_TEST_PYTHON39")
@pytest.mark.parametrize("backend", ["emulator-a2", "host_backends:Plain"])
def test_an_old_python_with_an_old_numpy_is_host(backend: str) -> None:
    assert OLD_PYTHON is not None
    with HostClient((OLD_PYTHON, program.__file__), PYTHONPATH=str(SUPPORT)) as host:
        said = host.describe(backend)
        assert said.python.startswith("3.9.")
        call = forward(host, "int32" if said.product else "int64")
        assert completed(host.done(**host.to_run(call)), call)


def test_a_host_needs_no_installed_suite(tmp_path: Path) -> None:
    """An interpreter that finds numpy and ml_dtypes alone."""
    for package in ("numpy", "ml_dtypes"):
        (tmp_path / package).symlink_to(Path(sys.modules[package].__file__ or "").parent)
    libraries = Path(np.__file__).parents[1] / "numpy.libs"
    if libraries.exists():
        (tmp_path / "numpy.libs").symlink_to(libraries)
    with HostClient((sys.executable, "-S", program.__file__), PYTHONPATH=f"{tmp_path}") as host:
        said = host.describe("emulator-a2")
        assert said.product == PRODUCTS["A2"]
        assert not any("site-packages" in folder for folder in said.path)


EXAMPLE = ROOT / "examples" / "host" / "host.cpp"


@pytest.fixture(scope="module")
def compiled_host(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    program = str(tmp_path_factory.mktemp("host") / "host")
    warnings = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, "-O1", "-std=c++17", *warnings, str(EXAMPLE), "-o", program], check=True)
    return program


def test_a_host_may_be_written_in_another_language(compiled_host: str) -> None:
    with HostClient((compiled_host, "program.py")) as host:
        said = host.describe("board:loops")
        assert said.unsupported == {(BACKWARD, "float32", stored): None for stored in ("int32", "int64")}
        call = backward(host)
        done = host.done(**host.to_run(call, mode="", declare=True))
        assert read_outcome(done["outcomes"][0], call).status is Status.COMPLETED
        assert read_declarations(done["declared"])["accumulation"] == ACC32
        assert call.tensors["grad_input"].array.tolist() == [[[[1, 0, 0, 2], [0, 0, 0, 0]]]]
        assert read(Raised, host.ask(**host.to_run(forward(host)))["raised"]).text
        assert read(Raised, host.ask("fork")["raised"]).text
        assert host.done("memory") == {"bytes": None}
        host.channel.connection.shutdown(socket.SHUT_WR)
        assert host.process.wait() == 0


def test_a_variable_names_the_python_of_each_backend() -> None:
    environment = {"POOLPROOF_TORCH_CPU_PYTHON": "/a", "POOLPROOF_BOARD_LOOPS_PYTHON": "/b"}
    assert python_of("torch:cpu", environment) == python_of("torch-cpu", environment) == "/a"
    assert python_of("board:loops", environment) == "/b"
    assert python_of("torch-npu", environment) is None
    assert all(map(is_python_variable, environment))
    assert not is_python_variable("OTHER_PYTHON")


# What a call leaves behind in its process is named, and put right where it can be.

Changed = Callable[..., list[tuple[str, str, str, bool]]]


@pytest.fixture
def changed(leaving: HostClient) -> Iterator[Changed]:
    with forked(leaving) as worker:

        def ask(mode: str = "") -> list[tuple[str, str, str, bool]]:
            done = replied(worker, leaving, mode)["done"]
            return [astuple(change) for change in read_changes(done.get("changed", []))]

        yield ask


on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="MXCSR is a register of x86")


@pytest.mark.parametrize(
    ("mode", "what", "before", "after"),
    [
        pytest.param("rounding up", "rounding mode", "to nearest", "up", marks=on_x86),
        pytest.param("rounding to zero", "rounding mode", "to nearest", "toward zero", marks=on_x86),
        pytest.param("flush-to-zero", "flush-to-zero", "off", "on", marks=on_x86),
        pytest.param("denormals-are-zero", "denormals-are-zero", "off", "on", marks=on_x86),
        ("folder", "working folder", None, "/"),
        ("mask", "signal mask", "none", "SIGUSR1"),
        ("handler", "ignored signals", None, "SIGUSR1"),
        ("python handler", "signal handlers", None, "SIGUSR2"),
        ("umask", "umask", None, "0777"),
        ("locale", "locale", None, "C.UTF-8"),
        ("limit", "limit of open files", None, None),
    ],
)
def test_what_a_call_leaves_is_named_and_put_right(
    changed: Changed, mode: str, what: str, before: str | None, after: str | None
) -> None:
    changes = changed(mode)
    (told,) = [change for change in changes if change[0] == what]
    assert before in (None, told[1])
    assert after is None or after in told[2]
    assert told[1] != told[2]
    assert changed() == []
    assert all(restored for *_, restored in changes)
    assert changed(mode) == changes


@pytest.mark.parametrize("mode", ["", pytest.param("floating-point flags", marks=on_x86)])
def test_what_a_right_call_leaves_is_nothing(changed: Changed, mode: str) -> None:
    assert [changed(mode) for _ in range(3)] == [[]] * 3


def test_what_cannot_be_put_right_is_told_once(changed: Changed) -> None:
    ((what, _, _, restored),) = changed("hard limit")
    capabilities = Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0]
    assert (what, restored) == ("limit of open files", bool(int(capabilities, 16) >> 24 & 1)), "CAP_SYS_RESOURCE"
    assert changed() == []


@pytest.mark.parametrize(("mode", "what"), [("thread", "threads"), ("child", "children")])
def test_what_grows_is_told_each_time(changed: Changed, mode: str, what: str) -> None:
    for _ in range(2):
        ((told, before, after, restored),) = changed(mode)
        assert (told, int(after) - int(before), restored) == (what, 1, False)
        assert changed() == []


def test_no_process_outlives_the_worker_that_made_it(leaving: HostClient) -> None:
    def children() -> list[str]:
        return Path(f"/proc/{leaving.process.pid}/task/{leaving.process.pid}/children").read_text().split()

    with forked(leaving) as worker:
        before = children()
        replied(worker, leaving, "sibling")
        assert len(children()) == len(before) + 1
    assert not {*children()} - {*before}


@on_x86
def test_no_call_is_made_in_the_rounding_mode_that_another_left(leaving: HostClient) -> None:
    calls = forward(leaving), forward(leaving)
    with forked(leaving) as worker:
        for mode, made in (("", 2), ("rounding up", 1), ("", 2)):
            assert len(replied(worker, leaving, mode, *calls)["done"]["outcomes"]) == made


def test_no_alias_of_a_type_is_more_than_an_old_python_can_evaluate() -> None:
    """Where none is there to run a host: `A | B` inside of brackets, outside of annotations, is beyond Python 3.9."""
    for path in (*ROOT.glob("references/**/*.py"), *ROOT.glob("backends/**/*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            inside = [node.value] if isinstance(node, ast.Assign) else []
            brackets = [part for value in inside for part in ast.walk(value) if isinstance(part, ast.Subscript)]
            unions = [part for each in brackets for part in ast.walk(each) if isinstance(part, ast.BitOr)]
            assert not unions, f"{path}:{node.lineno}"
