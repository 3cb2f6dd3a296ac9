"""What FINDINGS.md says about JAX and ONNX Runtime: each plain program still shows it, where that is installed.

A program whose fault was mended upstream no longer gives what stands behind `# got`; its waiver is then to be removed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from importlib.util import find_spec

import pytest

from sessions import ROOT

FINDINGS = (ROOT / "FINDINGS.md").read_text(encoding="utf-8")

BEGINNINGS = {
    "JAX": ("jax", "import jax, jax.numpy as jnp\nfrom jax import lax\n"),
    "ONNX Runtime": ("onnxruntime", "import numpy as np, onnx, onnxruntime\n"),
}
"""Of each framework what has to be installed, and how its programs begin."""


def programs(framework: str) -> list[str]:
    """The program of each finding; what stands in several parts is one."""
    section = re.split(rf"^## {framework} .*\n", FINDINGS, flags=re.MULTILINE)[1].partition("\n## ")[0]
    findings = re.split(r"^\d\. ", section, flags=re.MULTILINE)[1:]
    return ["".join(map(textwrap.dedent, re.findall(r"```python\n(.*?)```", each, re.DOTALL))) for each in findings]


def missing(program: str, printed: str) -> list[str]:
    """What a program is said to give, and did not."""
    return [line for line in re.findall(r"# got (.*)", program) if line not in printed]


ALL = [
    pytest.param(
        framework,
        program,
        id=f"{module}-{number}",
        marks=pytest.mark.skipif(find_spec(module) is None, reason=f"{framework} is not installed"),
    )
    for framework, (module, _) in BEGINNINGS.items()
    for number, program in enumerate(programs(framework), 1)
]


@pytest.mark.parametrize("framework", BEGINNINGS)
def test_every_finding_has_a_program_that_says_what_it_gives(framework: str) -> None:
    assert programs(framework)
    assert [each for each in programs(framework) if not missing(each, "")] == []


def test_what_a_mended_framework_gives_is_noticed() -> None:
    assert missing("print(index)  # got -2\n", "0\n") == ["-2"]
    assert missing("print(index)  # got -2\n", "-2\n") == []


@pytest.mark.parametrize(("framework", "program"), ALL)
def test_the_plain_program_still_shows_it(framework: str, program: str) -> None:
    begun = BEGINNINGS[framework][1] + program
    ended = subprocess.run([sys.executable, "-c", begun], capture_output=True, text=True, check=False, timeout=120)
    assert missing(program, ended.stdout + ended.stderr) == [], ended.stdout + ended.stderr
