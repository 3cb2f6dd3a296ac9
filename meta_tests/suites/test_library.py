"""The suite as a library: strategies under Hypothesis' own engine, the judge as a function, a run as frames."""

import importlib
import re
import runpy
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings, target

from places import ROOT
from poolproof import reports
from poolproof.reports.rows.checks import BESIDE_PLAN
from poolproof.reports.rows.schema import COLUMNS
from poolproof.suites.api import Case, cases, failure_text, judge, scores
from poolproof.suites.plan.aspects import CASE_ASPECTS
from scatter import Scatter
from sessions import replay

EXAMPLES = ROOT / "examples" / "library"
OPERATOR = "MaxPool2dWithIndicesBackward"
LINE = '{"operator":"MaxPool2dWithIndicesBackward","shape":[1,1,4,4],"kernel_size":[3],"stride":[1]}'


@pytest.mark.parametrize("aspect", CASE_ASPECTS)
def test_hypothesis_draws_cases_of_every_aspect_that_it_can_repeat(aspect: str) -> None:
    """Its engine raises where a replay of the same choices draws something else."""
    drawn = []

    @given(cases(OPERATOR, "float16", aspect=aspect))
    @settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def collect(case: Case) -> None:
        drawn.append(case)

    collect()
    assert len(drawn) >= 8
    assert {(case.operator, case.dtype) for case in drawn} == {(OPERATOR, "float16")}


def test_one_function_judges_a_backend_or_its_name_and_tells_what_is_wrong() -> None:
    for case in (LINE, Case.from_json(LINE)):
        row = judge(case, Scatter())
        assert (row["verdict"], row["backend"]) == ("conforms", "scatter:Scatter")
        assert {"interval", "repeat", "memory_untouched"} <= set(row["checks_judged"])
        assert row["standards_passed"]
        assert set(row) <= {column.name for column in COLUMNS}
    row = judge(LINE, "scatter_backends:lost", aspect="values")
    assert row["verdict"] == "violates"
    assert "poolproof replay --backend scatter_backends:lost" in failure_text(row)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            {"operator": "MaxPool4d"},
            "unknown operator 'MaxPool4d' (did you mean MaxPool2dWithMask?); known are MaxPool3d",
        ),
        (
            {"dtype": "fp32"},
            "unknown dtype 'fp32' (did you mean float32?); known are float64, float32, float16, bfloat16",
        ),
        ({"index_dtype": "int8"}, "unknown index_dtype 'int8' (did you mean int64?); known are int32, int64"),
        ({"aspect": "value"}, "unknown aspect 'value' (did you mean values?); known are values, precision"),
    ],
)
def test_an_unknown_name_is_refused_with_those_that_there_are(wrong: dict[str, str], told: str) -> None:
    with pytest.raises(KeyError, match=re.escape(told)):
        cases(**{"operator": OPERATOR} | wrong)
    with pytest.raises(ValueError, match="MaxPool2dWithIndices takes no gradients"):
        cases("MaxPool2dWithIndices", terms=17)
    if "aspect" in wrong:
        with pytest.raises(KeyError, match=re.escape(told)):
            judge(LINE, Scatter(), **wrong)


LOSES = """
import numpy as np
from poolproof.backends.frameworks.copying import CopyingBackend
class Loses(CopyingBackend):
    def unsupported(self, operator, dtype, index_dtype):
        return None if operator.name == "MaxPool2dWithIndicesBackward" else "only the 2-D backward"
    def backward(self, call):
        return self.invoke(lambda gradient, values: np.zeros_like(values), call.gradient, call.values)
"""


def test_the_printed_lines_show_the_failure_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command in another folder and environment, of a module in a package; the line above a test."""
    mine, elsewhere = tmp_path / "mine", tmp_path / "elsewhere"
    mine.mkdir()
    elsewhere.mkdir()
    (mine / "__init__.py").touch()
    (mine / "kernel.py").write_text(LOSES)
    monkeypatch.syspath_prepend(tmp_path)
    backend = importlib.import_module("mine.kernel").Loses()
    *_, command, line = map(str.strip, failure_text(judge(LINE, backend)).splitlines())
    assert f"--backend mine.kernel:Loses --pythonpath {tmp_path} " in command
    again = replay(command, elsewhere)
    assert (again.returncode, again.stdout.partition(":")[0]) == (1, "violates"), again.stdout + again.stderr
    pasted = []

    @given(case=cases(OPERATOR))
    @settings(phases=[Phase.explicit])
    def test(case: Case) -> None:
        pasted.append(case)

    eval(line.removeprefix("@"), {"example": example, "Case": Case})(test)()
    assert pasted == [Case.from_json(LINE)]
    assert "--pythonpath" not in failure_text(judge(LINE, "torch-cpu")), "everybody has it"


def test_a_program_is_named_after_its_file(tmp_path: Path) -> None:
    program = tmp_path / "mine.py"
    told = "from poolproof.suites.api import failure_text, judge\nif __name__ == '__main__':\n"
    program.write_text(f"{LOSES}{told}    print(failure_text(judge({LINE!r}, Loses())))\n")
    said = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout
    assert f"--backend mine:Loses --pythonpath {tmp_path} " in said


def test_errors_are_raised_by_gradients_drawn_one_by_one() -> None:
    """With target, sums of seventeen in float16 take a larger share of their bound than without."""

    def largest(*phases: Phase) -> float:
        shares = [0.0]

        @given(case=cases(OPERATOR, "float16", terms=17))
        @settings(max_examples=100, deadline=None, database=None, derandomize=True, phases=[Phase.generate, *phases])
        def search(case: Case) -> None:
            found = scores(judge(case, "torch-cpu", "precision"))
            shares.append(found["share"])
            target(found["share"])

        search()
        return max(shares)

    assert largest(Phase.target) > largest() > 0


def test_a_run_is_read_as_frames(run: Path) -> None:
    frames = reports.load(str(run))
    assert (frames.overall, frames.exit_status, bool(frames.reasons)) == ("violates", 1, True)
    assert list(frames.rows.columns) == [*frames.columns.index, "stride", "padding", "dilation", "output_size"]
    assert len(frames.rows[frames.rows.overlapping]) > 0, "a column of truths is a mask"
    assert str(frames.rows.judged_at.dtype) == "datetime64[ns, UTC]" and str(frames.rows.seed.dtype) == "Int64"
    assert {*frames.further_rows.aspect} <= {*BESIDE_PLAN} and not {*frames.rows.aspect} & {*BESIDE_PLAN}
    judged = frames.rows[frames.rows["aspect"] != ""]
    for verdict in ("conforms", "waived"):
        assert (judged["verdict"] == verdict).sum() == frames.verdicts[verdict].sum() > 0
    assert frames.verdicts.index.names == ["backend", "operator", "dtype", "index_dtype", "aspect"]
    assert frames.failures["cases"].sum() == frames.verdicts["violates"].sum()
    assert set(frames.precision.index.names) == {"backend", "operator", "dtype", "model"}
    assert {"planned", "judged", "missing", "because"} <= set(frames.missing.columns)


def test_the_examples_judge_and_read(run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    for program, argument, begin, told in (
        ("judge_one_case.py", "scatter_backends:Scatter", "conforms: ", ""),
        ("judge_one_case.py", "scatter_backends:lost", "violates: ", ""),
        ("read_a_run.py", str(run), "violates (exit status 1)", "smallest (E - |y - S|) / E"),
    ):
        monkeypatch.setattr(sys, "argv", [program, argument])
        runpy.run_path(str(EXAMPLES / program), run_name="__main__")
        said = capsys.readouterr().out
        assert said.startswith(begin) and told in said


def test_the_example_that_tests_a_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It passes, fails of a kernel that loses a gradient, and Hypothesis tells no lines of poolproof."""
    monkeypatch.chdir(tmp_path)  # where Hypothesis keeps its database
    example = runpy.run_path(str(EXAMPLES / "test_my_kernel.py"))
    example["test_my_kernel"]()
    example["test_rounding"]()

    def loses(gradient, indices, shape):
        gradient[..., 1:] = 0  # the example that is given passes: only then would lines be told
        return kernel(gradient, indices, shape)

    kernel = example["my_kernel"]
    monkeypatch.setitem(example["MyKernel"].backward.__globals__, "my_kernel", loses)
    for test in ("test_my_kernel", "test_rounding"):
        with pytest.raises(AssertionError, match="violates: ") as raised:
            example[test]()
        assert "Explanation:" not in "".join(traceback.format_exception(raised.value))
