"""The suite as a library: strategies under Hypothesis' own engine, the judge as a function, a run as frames."""

import runpy
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from places import ROOT
from poolproof import reports
from poolproof.reports.rows.schema import COLUMNS
from poolproof.suites.api import Case, cases, failure_text, judge
from poolproof.suites.plan.aspects import CASE_ASPECTS
from scatter import Scatter

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


def test_a_run_is_read_as_frames(run: Path) -> None:
    frames = reports.load(str(run))
    assert (frames.overall, frames.exit_status, bool(frames.reasons)) == ("violates", 1, True)
    assert list(frames.rows.columns) == list(frames.columns.index)
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
    """It passes, and fails of a kernel that loses a gradient."""
    monkeypatch.chdir(tmp_path)  # where Hypothesis keeps its database
    example = runpy.run_path(str(EXAMPLES / "test_my_kernel.py"))
    example["test_my_kernel"]()

    def loses(gradient, indices, shape):
        gradient[..., -1] = 0
        return kernel(gradient, indices, shape)

    kernel = example["my_kernel"]
    monkeypatch.setitem(example["MyKernel"].backward.__globals__, "my_kernel", loses)
    with pytest.raises(AssertionError, match="violates: "):
        example["test_my_kernel"]()
