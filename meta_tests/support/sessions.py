"""Sessions as people start them, in processes of their own: `forked` ones, where nothing hangs on a fresh one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import forked
from forked import Command
from places import ROOT, SUPPORT

ASKED = ["--operator", "MaxPool2dWithIndicesBackward", "--aspect", "values", "--cases", "12"]


@dataclass
class Ended:
    """A session that has ended."""

    status: int
    output: str
    folder: Path

    @property
    def page(self) -> str:
        return (self.folder / "index.html").read_text(encoding="utf-8")


def command(
    folder: Path, backend: str, *options: str, asked: Sequence[str] = ASKED, suite: Sequence[str] = ("suites",)
) -> list[str]:
    """The words of a session; further cases are asked where ``options`` say so."""
    begin = [sys.executable, "-m", "pytest", *suite, "-q", "-p", "no:cacheprovider", "--diagnose", "0", *asked]
    return [*begin, "--backend", backend, "--report", str(folder), *options]


def surroundings() -> dict[str, str]:
    """The environment of a session outside any CI service, where the backends of this folder can be imported."""
    ci_of_ours = ("GITHUB_ACTIONS", "GITLAB_CI")
    environment = {name: value for name, value in os.environ.items() if name not in ci_of_ours}
    return environment | {"PYTHONPATH": str(SUPPORT)}


def run_session(
    folder: Path,
    backend: str,
    *options: str,
    asked: Sequence[str] = ASKED,
    suite: Sequence[str] = ("suites",),
    variables: Mapping[str, str] | None = None,
    fresh: bool = False,
) -> Ended:
    """A session as a fork, or as a ``fresh`` interpreter, where it matters what a backend brings into its process."""
    whole, environment = command(folder, backend, *options, asked=asked, suite=suite), surroundings()
    environment |= dict(variables or {})
    if fresh:
        ended = subprocess.run(whole, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    else:
        ended = forked.run(Command("pytest", whole[3:], ROOT, environment))
    return Ended(ended.returncode, ended.stdout + ended.stderr, folder)
