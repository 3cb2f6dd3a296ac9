"""The programs of docs/findings: what each should print, and whether it does.

A program that prints something else was fixed upstream; its finding, and its waiver, are then to be removed.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from places import ROOT
from sessions import surroundings

PAGES = ROOT / "docs" / "findings"

EndedProcess = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Program:
    """The program of one finding."""

    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def said(self) -> list[str]:
        """What it should print, line by line; the last may be the exception that ends it."""
        return re.findall(r"# got (.*)", self.text)

    @property
    def dies(self) -> bool:
        """Whether a signal should end it."""
        return "# dies" in self.text

    def still_shows(self, ended: EndedProcess) -> bool:
        traceback = ended.stderr.splitlines()[-1:] if ended.returncode > 0 else []
        return [*ended.stdout.splitlines(), *traceback] == self.said and (ended.returncode < 0) == self.dies


def programs(package: str) -> list[Program]:
    """Those of a page, in its order."""
    page = (PAGES / f"{package}.md").read_text(encoding="utf-8")
    return [Program(PAGES / path) for path in re.findall(r"^- Program: \[.*\]\((.*)\)$", page, re.MULTILINE)]


def run_afresh(program: Program) -> EndedProcess:
    command = [sys.executable, str(program.path)]
    return subprocess.run(command, cwd=ROOT, env=surroundings(), capture_output=True, text=True, timeout=120)
