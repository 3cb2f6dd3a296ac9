"""A base for frameworks that live in another environment: their calls are made by a companion, a process of there.

A framework may need another numpy, or another Python, than this suite. Its calls stand in a file of their own, which
the companion runs with the interpreter that the variable ``POOLPROOF_<NAME>_PYTHON`` names, this one if none is named;
`companion_program` says what that file defines and what is said between the two. A companion that dies takes its judge
along, in the same way, and one that hangs keeps it waiting: both are seen as if the framework lived here.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from numpy.typing import NDArray

from poolproof.backends.base import BackendUnavailable
from poolproof.backends.frameworks import companion_program
from poolproof.backends.frameworks.copying import ArrayCall, CopyingBackend, Refused

_MOST_PRINTED = 1 << 16
"""Bytes that are kept of what a framework prints."""


def python_variable(framework: str) -> str:
    """The variable that names the interpreter of a framework."""
    return f"POOLPROOF_{framework.upper()}_PYTHON"


def is_python_variable(name: str) -> bool:
    return name.startswith("POOLPROOF_") and name.endswith("_PYTHON")


class CompanionFault(Exception):
    """The file with the framework's calls raised: the text is its traceback."""


class CompanionBackend(CopyingBackend):
    """Override `unsupported`, and name the ``framework`` and the file of its ``calls``."""

    framework: str
    calls: Path
    survives_fork = False  # two processes cannot share one companion

    def __init__(self) -> None:
        super().__init__()
        self._companion = Companion(self.framework, self.calls)

    def forward(self, question: ArrayCall) -> tuple[NDArray, NDArray]:
        made = self._put("forward", question, {"index_dtype": question.index_dtype}, values=question.values)
        return made["out"], made["indices"]

    def backward(self, question: ArrayCall) -> NDArray:
        assert question.gradient is not None
        assert question.indices is not None
        given = {"values": question.values, "gradient": question.gradient, "indices": question.indices}
        return self._put("backward", question, {}, **given)["grad_input"]

    def environment(self) -> Mapping[str, str]:
        return self._companion.versions

    def _put(self, call: str, question: ArrayCall, named: dict[str, str], **arrays: NDArray) -> Mapping[str, NDArray]:
        given = {name: getattr(question, name) for name in _WINDOWS} | named
        said, made = self._companion.ask({"call": call, "given": given}, **arrays)
        if "fault" in said:
            raise CompanionFault(said["fault"])
        self._seconds += said["seconds"]
        if "refused" in said:
            raise Refused(said["refused"])
        return made


_WINDOWS = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "output_size")


class Companion:
    """A process that makes a framework's calls; `BackendUnavailable` where it cannot begin to."""

    def __init__(self, framework: str, calls: Path) -> None:
        self._printed = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  (open as long as the companion lives)
        variable = python_variable(framework)
        python = os.environ.get(variable) or sys.executable
        command = [python, companion_program.__file__, str(os.getpid()), str(calls)]
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._printed)
        except OSError as error:
            raise BackendUnavailable(
                f"{variable} names {python!r}, which cannot be started: {error.strerror}"
            ) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout
        self.versions = self._hello(framework, python)

    def _hello(self, framework: str, python: str) -> Mapping[str, str]:
        try:
            said, _ = companion_program.receive(self._answers)
        except EOFError:
            how = f"ended with status {self._process.wait()}{self._last_line()}"
            raise BackendUnavailable(f"the companion of {framework}, run by {python}, {how}") from None
        if "unavailable" in said:
            where = f"name the Python that has it in {python_variable(framework)}"
            raise BackendUnavailable(f"{framework} cannot be used by {python}: {said['unavailable']}; {where}")
        return {**said["versions"], f"{framework} run by": python}

    def ask(self, said: dict[str, Any], **arrays: NDArray) -> tuple[Mapping[str, Any], Mapping[str, NDArray]]:
        """The answer to a question; where the companion dies of it, this process does."""
        self._printed.truncate(0)
        try:
            companion_program.send(self._questions, said, **arrays)
            return companion_program.receive(self._answers)
        except (EOFError, ConnectionError):
            self._die_alike()

    def _die_alike(self) -> NoReturn:
        """End this process as the companion ended, with its last words: whoever watches sees what happened to it."""
        status = self._process.wait()
        os.write(2, self._last_words())
        if status >= 0:
            os._exit(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
        os._exit(1)  # a signal that ends no process by itself

    def _last_words(self) -> bytes:
        size = self._printed.seek(0, os.SEEK_END)
        self._printed.seek(max(0, size - _MOST_PRINTED))
        return self._printed.read()

    def _last_line(self) -> str:
        lines = self._last_words().decode(errors="replace").strip().splitlines()
        return f": {lines[-1][:300]}" if lines else ""
