"""What is not used is not imported, by the help of a command or by the processes that judge; what a shell completes."""

import json
import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from places import ROOT
from poolproof.backends.registry import names
from poolproof.suites import opening
from poolproof.suites.cli import COMMANDS, main
from poolproof.suites.isolation.survey import survey
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.blocks import CaseBlock
from poolproof.suites.plan.plans import PLANS
from poolproof.suites.plan.selection import Selection
from poolproof.suites.run.sandbox import Sandbox
from sessions import surroundings

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
    assert not {"hypothesis", "jinja2", "numba", "pandas", "pyarrow", "rich"} & imported("run", "--help")


def test_a_run_imports_what_its_end_needs_while_the_backend_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, options = list[str](), {"backend": ["torch-cpu"], "dist": "load"}
    monkeypatch.setattr(opening.Worker, "begin_loading", lambda _: steps.append("begin"))
    monkeypatch.setattr(opening, "try_imports", lambda: steps.append("import"))
    monkeypatch.setattr(opening, "surveyed", lambda name, worker: (steps.append("wait"), worker))
    config = SimpleNamespace(getoption=lambda name, default=None: options.get(name, default), add_cleanup=id)
    opening._survey_all(config)
    assert steps == ["begin", "import", "wait"]


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
from poolproof.suites.cases.memory import allocate
from poolproof.suites.cases.operands import make_operands
backend = create("torch-cpu")
case = Case.from_json('{"operator":"AdaptiveMaxPool2d","shape":[1,2,2],"output_size":[1,1],"deterministic":true}')
print(backend.run(allocate(make_operands(case))).status)
print(sys.modules["torch"].are_deterministic_algorithms_enabled(), {"sympy", "torch._inductor"} & set(sys.modules))
"""


def test_a_deterministic_call_of_torch_imports_no_compiler() -> None:
    pytest.importorskip("torch")
    ended = subprocess.run([sys.executable, "-c", DETERMINISTIC_CALL], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["completed", "True set()"]


def completed(*line: str) -> list[str]:
    *before, begun = line
    return [item.value for item in ShellComplete(main, {}, "poolproof", "_").get_completions(before, begun)]


def test_commands_are_completed_without_one_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "poolproof.reports.commands", raising=False)
    assert completed("") == list(COMMANDS)
    assert completed("re") == ["replay", "rerun"]
    assert completed("--v") == ["--version"]
    assert "poolproof.reports.commands" not in sys.modules


def test_what_a_command_takes_is_completed() -> None:
    for command in ("list", "replay", "export", "probe", "rerun"):
        assert completed(command, "--backend", "") == names()
        assert completed(command, "--backend", "emulator-9") == ["emulator-910", "emulator-950"]
        assert completed(command, "--backend", "no-such") == []
    operators = ["MaxPool3dWithArgmax", "MaxPool3dWithArgmaxBackward"]
    assert sorted(completed("export", "--operator", "MaxPool3d")) == operators
    assert sorted(completed("probe", "--dtype", "float")) == ["float16", "float32", "float64"]
    assert completed("export", "--aspect", "special") == ["special_values"]
    assert sorted(completed("list", "--plan", "s")) == ["smoke", "soak"]
    assert completed("history", "q") == ["query"]


def test_bash_completes(tmp_path: Path) -> None:
    """By the line that the page has for `.bashrc`."""
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    (line,) = [line.strip() for line in page.splitlines() if "bash_source" in line]
    typed = "COMP_WORDS=(poolproof replay --backend emulator-a)\nCOMP_CWORD=3"
    program = tmp_path / "poolproof"
    program.write_text(f"#!{sys.executable}\nfrom poolproof.suites.cli import main\nmain()\n")
    program.chmod(0o755)
    environment = surroundings() | {"PATH": os.pathsep.join((str(tmp_path), os.environ["PATH"]))}
    command = ["bash", "-c", f'{line}\n{typed}\n_poolproof_completion poolproof\necho "${{COMPREPLY[@]}}"']
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.stdout.split() == ["emulator-a2", "emulator-a3"], ended.stderr


def test_a_run_lists_its_own_options() -> None:
    said = CliRunner().invoke(main, ["run", "--help"]).output
    assert "cases to judge:\n  --backend NAME" in said and "--maxfail" not in said
    assert len(said.splitlines()) < 120


def test_an_option_that_is_none_ends_a_run_like_any_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for status, expected in ((pytest.ExitCode.USAGE_ERROR, 3), (pytest.ExitCode.TESTS_FAILED, 1)):
        monkeypatch.setattr(pytest, "main", lambda *_, status=status: status)
        assert CliRunner().invoke(main, ["run"]).exit_code == expected


def test_coverage_counts_the_calls_past_an_end_that_plans_have() -> None:
    said = CliRunner().invoke(main, ["coverage", "--operator", "MaxPool2dWithIndices", "--dtype", "float16"]).output
    found = re.search(r"past an end of a quantity: smoke (\d+), acceptance (\d+), soak (\d+)", said)
    surveys, of = {"emulator-a2": survey("emulator-a2")}, (("ends",), ("MaxPool2dWithIndices",), ("float16",))
    planned = [Selection(surveys, plan, 0, *of).mandatory() for plan in PLANS.values()]
    assert list(map(int, found.groups())) == [sum(group["planned"] for group in groups) for groups in planned]


def test_options_of_another_project_are_its_own(tmp_path: Path) -> None:
    """Tests of a project beside an installed suite, whose plugin they do not load."""
    (tmp_path / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    for name in ('--seed', '--backend', '--dtype', '--report'):\n"
        "        parser.addoption(name, default='mine')\n"
    )
    (tmp_path / "test_theirs.py").write_text(
        "import sys\n\n\ndef test_theirs(request):\n    assert request.config.getoption('seed') == '7'\n"
        "    assert [name for name in sys.modules if name.startswith('poolproof.')] == "
        "['poolproof.suites', 'poolproof.suites.pytest_stub']\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--seed", "7"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert (ended.returncode, "1 passed" in ended.stdout) == (0, True), ended.stdout + ended.stderr
