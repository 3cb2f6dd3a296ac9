"""The plain programs of FINDINGS.md: what each is said to print, and whether that is what it printed.

A program whose fault was mended upstream prints something else; its finding, and its waiver, are then to be removed.
"""

import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass

from places import ROOT
from sessions import surroundings

_PAGE = (ROOT / "FINDINGS.md").read_text(encoding="utf-8")

EndedProcess = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Program:
    """The program of one finding, and the lines that all of its section begin with."""

    text: str
    beginning: str = ""

    @property
    def whole(self) -> str:
        return f"{self.beginning}\n{self.text}"

    @property
    def said(self) -> list[str]:
        """What it is said to print, line by line; the last may be the exception that it dies of."""
        return re.findall(r"# got (.*)", self.text)

    @property
    def dies(self) -> bool:
        """Whether a signal is said to end it."""
        return "# dies" in self.text

    def still_shows(self, ended: EndedProcess) -> bool:
        return printed(ended) == self.said and (ended.returncode < 0) == self.dies


def printed(ended: EndedProcess) -> list[str]:
    """The lines of a process, and the last of its traceback, if it has one."""
    traceback = ended.stderr.splitlines()[-1:] if ended.returncode > 0 else []
    return ended.stdout.splitlines() + traceback


def programs(heading: str) -> list[Program]:
    """Of each finding in the section whose heading begins so; what stands in several parts is one program."""
    _, section, *others = re.split(rf"^## {re.escape(heading)}.*\n", _PAGE, flags=re.MULTILINE)
    assert not others, f"several sections of FINDINGS.md begin with {heading}"
    introduction, *findings = re.split(r"^\d\. ", section.partition("\n## ")[0], flags=re.MULTILINE)
    beginning = "\n".join(re.findall(r"`((?:import|from) [^`]*)`", introduction))
    parts = [re.findall(r"```python\n(.*?)```", finding, re.DOTALL) for finding in findings]
    return [Program("".join(map(textwrap.dedent, each)), beginning) for each in parts]


def run_afresh(program: Program) -> EndedProcess:
    command = [sys.executable, "-c", program.whole]
    return subprocess.run(command, cwd=ROOT, env=surroundings(), capture_output=True, text=True, timeout=120)
