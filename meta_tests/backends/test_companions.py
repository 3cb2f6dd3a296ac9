"""A framework that lives in another process is judged as if it lived here: its death, its silence, its refusals."""

from __future__ import annotations

import ast
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import pytest

from companion_backends import Beside
from holding import holding
from poolproof.backends.base import BackendUnavailable
from poolproof.backends.frameworks import companion_program
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.faults import answer
from poolproof.suites.running.aspects import CASE_ASPECTS
from poolproof.suites.running.given import given_words
from poolproof.suites.running.identity import libraries_of_family
from poolproof.suites.running.plans import PLANS, blocks, subjects
from poolproof.suites.running.sandbox import Sandbox


def question(seed: int, ceil_mode: bool) -> CaseQuestion:
    windows = {"kernel_size": (2,), "ceil_mode": ceil_mode}
    case = Case.of(operator="MaxPool2dWithIndicesBackward", shape=(1, 2, 5, 5), seed=seed, **windows)
    return CaseQuestion(case, holding("interval"), "block")


QUESTIONS = [question(0, False), question(1, True), question(2, False)]


def judged(scratch: Path, timeout: float = 20.0) -> list[Row]:
    sandbox = Sandbox("companion_backends:Beside", scratch, "sandbox", timeout)
    try:
        return list(sandbox.judge(QUESTIONS))
    finally:
        sandbox.close()


@pytest.fixture(scope="module")
def beside() -> Iterator[Beside]:
    """One that answers, whatever it is asked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MISDEED", "prints")
        yield Beside()


@pytest.mark.parametrize("aspect", ["values", "special_values", "round_trip"])
def test_a_right_framework_conforms_whatever_it_prints(beside: Beside, aspect: str) -> None:
    chosen = [subject for subject in subjects("beside", beside) if subject.unsupported is None]
    asked = blocks(chosen, [CASE_ASPECTS[aspect]], PLANS["smoke"], 1)
    rows = [answer(each, beside) for block in asked for each in block.first(5)]
    assert {row["verdict"] for row in rows} == {Verdict.CONFORMS}, [row["reason"] for row in rows][:3]
    assert {row["dtype"] for row in rows} == {"float32", "bfloat16"}


@pytest.mark.usefixtures("forked_sandboxes")
@pytest.mark.parametrize(
    ("misdeed", "verdict", "words"),
    [
        ("aborts", Verdict.CRASHED, "the call ended by signal SIGABRT: free(): invalid pointer"),
        ("faults", Verdict.CRASHED, "the call ended by signal SIGSEGV: free(): invalid pointer"),
        ("exits", Verdict.CRASHED, "the call ended by exit status 7"),
        ("refuses", Verdict.UNDOCUMENTED, "NotImplementedError: no kernel for this"),
        ("forgets", Verdict.ADAPTER_ERROR, "KeyError: 'forgotten'"),
        ("prints", Verdict.CONFORMS, ""),
    ],
)
def test_what_a_framework_does_to_its_companion_costs_that_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, misdeed: str, verdict: Verdict, words: str
) -> None:
    monkeypatch.setenv("MISDEED", misdeed)
    rows = judged(tmp_path)
    assert [row["verdict"] for row in rows] == [Verdict.CONFORMS, verdict, Verdict.CONFORMS], rows[1]["reason"]
    assert words in rows[1]["reason"]


@pytest.mark.usefixtures("forked_sandboxes")
def test_a_companion_that_hangs_is_timed_out_and_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISDEED", "hangs")
    monkeypatch.setenv("HANGING", str(tmp_path / "pid"))
    rows = judged(tmp_path, timeout=1.0)
    assert [row["verdict"] for row in rows] == [Verdict.CONFORMS, Verdict.TIMED_OUT, Verdict.CONFORMS]
    assert is_gone(int((tmp_path / "pid").read_text()))


def is_gone(pid: int) -> bool:
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("POOLPROOF_BESIDE_PYTHON", "/no/python", "names '/no/python', which cannot be started: No such file"),
        ("MISDEED", "unimportable", "no such framework; name the Python that has it in POOLPROOF_BESIDE_PYTHON"),
        ("MISDEED", "dead on arrival", "ended with status 5: cannot find a device"),
    ],
)
def test_a_companion_that_cannot_begin_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(BackendUnavailable) as error:
        Beside()
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_interpreter_is_part_of_what_was_judged(monkeypatch: pytest.MonkeyPatch, beside: Beside) -> None:
    assert beside.environment() == {"beside": "1.0", "beside run by": sys.executable}
    words = given_words("beside", {"POOLPROOF_BESIDE_PYTHON": "/opt/bin/python", "OTHER_PYTHON": "x"}, [])
    assert words == ("POOLPROOF_BESIDE_PYTHON=/opt/bin/python",)


def test_libraries_of_a_companion_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (library,) = Path(ml_dtypes.__file__).parent.glob("*.so")
    theirs = str(shutil.copy(library, tmp_path / "theirs.so"))
    monkeypatch.setenv("LIBRARY", theirs)
    assert theirs not in libraries_of_family()
    beside = Beside()
    assert theirs in libraries_of_family()
    assert beside.environment()["beside"] == "1.0"


def test_the_program_runs_in_environments_that_have_nothing_of_ours() -> None:
    """numpy alone, and Python 3.8 with what it knows of syntax."""
    tree = ast.parse(Path(companion_program.__file__).read_text(), feature_version=(3, 8))
    named = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    named |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name.partition(".")[0] for name in named} - sys.stdlib_module_names == {"numpy", "ml_dtypes"}
