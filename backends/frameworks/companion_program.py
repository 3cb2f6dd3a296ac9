"""The program of a companion: it makes a framework's calls in the environment in which that framework lives.

Started by `poolproof.backends.frameworks.companion` as ``python companion_program.py PARENT CALLS.py``. It needs Python
3.8, numpy of any version and what CALLS.py imports, and nothing of poolproof. CALLS.py defines

    versions() -> dict of texts
    forward(ask, values, index_dtype, **windows) -> (maxima, indices)
    backward(ask, values, gradient, indices, **windows) -> grad_input

in numpy arrays, as `poolproof.backends.frameworks.copying.ArrayCall` has them; ``windows`` are its lists and its
``ceil_mode``. ``ask(function, *arguments)`` calls the framework: its time counts, and what it raises is a refusal. What
is raised elsewhere is the fault of CALLS.py.

A message is a line of JSON, and behind it the bytes of its arrays in C order, as ``arrays`` names them in the line:
[[name, dtype, shape], ...]. The companion begins with ``versions``, or with ``unavailable`` and why. It is then asked
``call`` (forward or backward) with ``given``, and answers with ``seconds`` and arrays, with ``refused`` and the
framework's text, or with ``fault`` and a traceback. It ends when its standard input does. What the framework prints
goes to the standard error output.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np

with suppress(ImportError):  # a framework without it is asked no bfloat16
    import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)

PR_SET_PDEATHSIG = 1


def send(stream: IO[bytes], said: dict[str, Any], **arrays: np.ndarray) -> None:
    """Write a message; ``said`` is what its line says besides its arrays."""
    named = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    listed = [[name, array.dtype.name, list(array.shape)] for name, array in named.items()]
    stream.write(json.dumps({**said, "arrays": listed}).encode() + b"\n")
    for array in named.values():
        stream.write(_bytes(array).data)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(what a message says, its arrays by name); EOFError where there is none, or not all of it."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    said, arrays = json.loads(line), {}
    for name, dtype, shape in said.pop("arrays"):
        arrays[name] = np.empty(shape, np.dtype(dtype))
        if stream.readinto(_bytes(arrays[name])) != arrays[name].nbytes:  # type: ignore[attr-defined]
            raise EOFError
    return said, arrays


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


class Refusal(Exception):
    """What the framework raised, as text."""


class Stopwatch:
    """``ask`` of one call, and the time that the framework took for it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def ask(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*arguments, **named)
        except Exception as error:
            raise Refusal(f"{type(error).__name__}: {error}") from error
        finally:
            self.seconds += time.perf_counter() - started


def answer(
    calls: ModuleType, said: dict[str, Any], given: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(what is said, arrays) in answer to a question."""
    watch = Stopwatch()
    windows = {name: tuple(value) if isinstance(value, list) else value for name, value in said["given"].items()}
    try:
        made = getattr(calls, said["call"])(watch.ask, **given, **windows)
    except Refusal as refusal:
        return {"refused": str(refusal), "seconds": watch.seconds}, {}
    except Exception:
        return {"fault": traceback.format_exc()}, {}
    names = ("out", "indices") if said["call"] == "forward" else ("grad_input",)
    arrays = dict(zip(names, made if isinstance(made, tuple) else (made,)))
    return {"seconds": watch.seconds}, arrays


def load(path: str) -> ModuleType:
    """The module in a file, whose folder is not imported from: a file there may be named as the framework is."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != here]
    spec = importlib.util.spec_from_file_location("calls", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def own_channels() -> tuple[IO[bytes], IO[bytes]]:
    """(questions, answers): what standard input and output were, which nothing else in this process has any more."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return questions, answers


def end_with(parent: int) -> None:
    """Let this process be killed when its parent ends, however it hangs."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def main() -> None:
    end_with(int(sys.argv[1]))
    questions, answers = own_channels()
    try:
        calls = load(sys.argv[2])
        versions = {str(name): str(version) for name, version in calls.versions().items()}
    except Exception as error:
        last = traceback.format_exception_only(type(error), error)[-1]
        send(answers, {"unavailable": " ".join(last.split())})
        return
    send(answers, {"versions": versions})
    while True:
        try:
            said, given = receive(questions)
        except EOFError:
            return
        told, arrays = answer(calls, said, given)
        send(answers, told, **arrays)


if __name__ == "__main__":
    main()
