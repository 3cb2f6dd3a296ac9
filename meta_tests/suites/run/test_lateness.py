"""What is not used is not imported: by the help of the command, nor by the processes that judge."""

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from poolproof.suites.cli import COMMANDS
from poolproof.suites.isolation.sandbox import Sandbox
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.blocks import CaseBlock

HEAVY = {"duckdb", "hypothesis", "jinja2", "numba", "numpy", "pandas", "pyarrow", "pytest", "rich", "torch"}
"""Packages each of which costs a tenth of a second or more to import, and those that come with them."""

OF_JUDGING = {"numba", "numpy"}
"""Those of them that a process which judges may need, besides what its backend needs."""


def imported(*arguments: str) -> set[str]:
    """The heavy packages that the command has imported once it ends."""
    program = (
        "import json, sys; from poolproof.suites.cli import main; main(sys.argv[1:], standalone_mode=False);"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    ended = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return HEAVY & set(json.loads(ended.stdout.splitlines()[-1]))


def test_help_imports_nothing_heavy_and_a_command_what_it_needs() -> None:
    assert imported("--help") == set()
    assert {"pandas", "pyarrow"} <= imported("show", "--help")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_what_the_list_says(name: str) -> None:
    assert COMMANDS[name].load().name == name


def test_who_judges_imports_nothing_that_only_others_need(tmp_path: Path) -> None:
    """Neither to load a backend nor to answer the questions of a block."""
    with closing(Sandbox("plugged_backends:tells_what_is_imported", tmp_path, "late", timeout=60.0)) as sandbox:
        (subject, *_) = [subject for subject in sandbox.start().subjects if not subject.unsupported]
        (row,) = sandbox.judge(CaseBlock(subject, CASE_ASPECTS["precision"], 0, 1, seed=0).questions())
    assert HEAVY & set(row["route"].split()) <= OF_JUDGING
    assert "numpy" in row["route"].split()


DETERMINISTIC_CALL = """
import sys
from poolproof.backends.registry import create
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.memory import POISONS, allocate
from poolproof.suites.cases.operands import make_operands
backend = create("torch-cpu")
case = Case.from_json('{"operator":"AdaptiveMaxPool2d","shape":[1,2,2],"output_size":[1,1],"deterministic":true}')
print(backend.run(allocate(make_operands(case), POISONS[0])).status)
print(sys.modules["torch"].are_deterministic_algorithms_enabled(), {"sympy", "torch._inductor"} & set(sys.modules))
"""


def test_a_deterministic_call_of_torch_imports_no_compiler() -> None:
    pytest.importorskip("torch")
    ended = subprocess.run([sys.executable, "-c", DETERMINISTIC_CALL], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["completed", "True set()"]
