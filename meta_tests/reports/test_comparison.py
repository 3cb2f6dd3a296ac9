"""Two runs against each other: what counts as a regression, what is drift, and what is noise."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

from poolproof.reports.figures.comparison import FASTER, SLOWER, Comparison, compare, time_drift
from poolproof.reports.rows.verdicts import Overall
from reports_made_up import ASPECTS, OPERATORS, Recipe, made_up_record, make_run
from sessions import poolproof

CELL = ("MaxPool2dWithIndicesBackward", "float32", "values")
OTHER = ("MaxPool2dWithIndicesBackward", "float32", "layouts")
BASE = Recipe(cases=30)


def against(folder: Path, before: Recipe, after: Recipe) -> Comparison:
    return compare(make_run(folder / "before", before), make_run(folder / "after", after))


def test_a_run_against_itself(tmp_path: Path) -> None:
    comparison = against(tmp_path, BASE, BASE)
    assert comparison.overall is Overall.CONFORMS
    assert comparison.shared == 540
    assert not comparison.has_drifted_for_the_worse
    for table in ("transitions", "newly_failing", "fixed", "newly_unjudged", "precision", "drifted", "environment"):
        assert getattr(comparison, table).empty, table


def of_one(verdict: str) -> Recipe:
    return replace(BASE, verdicts={CELL: [verdict]})


FAILING, RESEEDED = of_one("violates"), replace(BASE, seed=1)
MANDATORY = {"mandatory": made_up_record(BASE)["mandatory"]}
LED_TO = replace(BASE, aspects=(*BASE.aspects, "neighbours"), record=MANDATORY)
ONE_CASE = (
    ("conforms", "violates", Overall.VIOLATES),
    ("conforms", "crashed", Overall.VIOLATES),
    ("waived", "violates", Overall.VIOLATES),
    ("not run", "violates", Overall.VIOLATES),
    ("violates", "violates", Overall.CONFORMS),
    ("violates", "crashed", Overall.CONFORMS),
    ("violates", "conforms", Overall.CONFORMS),
    ("violates", "waived", Overall.CONFORMS),
    ("conforms", "waived", Overall.CONFORMS),
    ("conforms", "not run", Overall.INCOMPLETE),
    ("violates", "not run", Overall.INCOMPLETE),
    ("not run", "not run", Overall.CONFORMS),
    ("conforms", "refused undocumented", Overall.INCOMPLETE),
    ("conforms", "refused as documented", Overall.CONFORMS),
)


@pytest.mark.parametrize(
    ("before", "after", "overall"),
    [
        *(
            pytest.param(of_one(was), of_one(now), overall, id=f"a case that was {was} and is {now}")
            for was, now, overall in ONE_CASE
        ),
        pytest.param(LED_TO, BASE, Overall.CONFORMS, id="a call that another led to"),
        pytest.param(BASE, RESEEDED, Overall.CONFORMS, id="another seed"),
        pytest.param(BASE, replace(BASE, cases=20), Overall.CONFORMS, id="fewer cases"),
        pytest.param(BASE, replace(BASE, cases=20, record=MANDATORY), Overall.INCOMPLETE, id="lost rows"),
        pytest.param(FAILING, replace(FAILING, seed=1), Overall.CONFORMS, id="a known kind of failure"),
        pytest.param(BASE, replace(FAILING, seed=1), Overall.VIOLATES, id="a new kind"),
    ],
)
def test_what_is_a_regression_and_what_a_gap(tmp_path: Path, before: Recipe, after: Recipe, overall: Overall) -> None:
    assert against(tmp_path, before, after).overall is overall


def test_what_changed_is_told_by_kind(tmp_path: Path) -> None:
    verdicts = ["refused as documented", "refused undocumented", "refused undocumented"]
    transitions = against(tmp_path / "refusals", BASE, replace(BASE, verdicts={CELL: verdicts})).transitions
    assert transitions.to_dict("records") == [
        {"before": "conforms", "after": "refused undocumented", "cases": 2},
        {"before": "conforms", "after": "refused as documented", "cases": 1},
    ]
    before = replace(BASE, verdicts={OTHER: ["violates"]})
    after = replace(BASE, verdicts={CELL: ["violates", "violates", "crashed"]})
    comparison = against(tmp_path / "failures", before, after)
    assert comparison.newly_failing[["verdict", "cases"]].values.tolist() == [["violates", 2], ["crashed", 1]]
    assert comparison.fixed["cases"].to_list() == [1]
    assert against(tmp_path / "waived", before, replace(BASE, verdicts={OTHER: ["waived"]})).fixed.empty
    gone = against(tmp_path / "gone", BASE, replace(BASE, operators=OPERATORS[:-1]))
    assert gone.overall is Overall.INCOMPLETE
    assert set(gone.newly_unjudged["operator"]) == {OPERATORS[-1]}
    assert set(gone.newly_unjudged["because"]) == {"never run"}
    table = against(tmp_path / "around", BASE, replace(BASE, torch="2.14.0", seed=1)).environment
    lines = table.set_index("what").to_dict("index")
    assert lines["torch-cpu torch"] == {"before": "2.13.0", "after": "2.14.0"}
    assert lines["seed"] == {"before": "0", "after": "1"}


def test_precision_that_gets_worse_is_told_and_a_failure_does_not_look_like_it(tmp_path: Path) -> None:
    comparison = against(tmp_path / "worse", BASE, replace(BASE, ulps=1.2))
    assert set(comparison.less_precise["statistic"]) == {"largest error, ulp of max(P, N)", "least margin"}
    assert comparison.has_drifted_for_the_worse
    assert comparison.overall is Overall.CONFORMS
    assert against(tmp_path, BASE, replace(BASE, verdicts={CELL: ["violates"] * 29})).precision.empty


def timed(ratios: np.ndarray) -> pd.DataFrame:
    group = {"backend": "b", "operator": "o", "dtype": "d"}
    return pd.DataFrame(group | {"call_seconds_before": np.full(len(ratios), 2.0), "call_seconds_after": 2.0 * ratios})


@pytest.mark.parametrize(
    ("ratio", "spread", "cases", "drift"),
    [
        (1.0, 0.0, 400, ""),
        (1.09, 0.0, 400, ""),
        (1.2, 0.1, 400, SLOWER),
        (0.8, 0.1, 400, FASTER),
        (1.2, 0.0, 19, ""),
        (1.2, 2.0, 40, ""),
    ],
)
def test_time_drifts_when_its_interval_says_so(ratio: float, spread: float, cases: int, drift: str) -> None:
    quantiles = (np.arange(cases) + 0.5) / cases - 0.5
    (line,) = time_drift(timed(ratio * np.exp(spread * quantiles))).to_dict("records")
    assert line["drift"] == drift
    assert line["low"] <= line["ratio"] <= line["high"]


def test_the_interval_encloses_the_median_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    lines = [time_drift(timed(np.exp(random.standard_t(2, 40)))).iloc[0] for _ in range(300)]
    assert np.mean([line["low"] <= 1.0 <= line["high"] for line in lines]) >= 0.97


def run_command(tmp_path: Path, after: Recipe, *options: str) -> Result:
    paths = make_run(tmp_path / "before", BASE), make_run(tmp_path / "after", after)
    return poolproof("compare", *paths, *options)


def test_what_was_asked_of_one_run_alone_is_said(tmp_path: Path) -> None:
    record = {"selection": {"options": ["--operator X"]}, "plan_cases": 540}
    before = replace(BASE, operators=[name for name in BASE.operators if name != CELL[0]], record=record)
    after = replace(BASE, verdicts={CELL: ["violates"]})
    paths = make_run(tmp_path / "before", before), make_run(tmp_path / "after", after)
    text = poolproof("compare", *paths).output
    failing = "1 newly failing (1 of them where the run before judged nothing), 0 fixed, 0 newly not judged"
    assert f"{failing}, 360 cases in both runs, 180 only in the run after; before narrowed: 360 of 540 cases" in text
    assert re.search(r"^ selection +smoke --operator X +smoke", text, re.MULTILINE)
    assert poolproof("compare", paths[0], paths[0]).output.count("narrowed: 360 of 540 cases") == 1
    text = poolproof("compare", *reversed(paths)).output
    assert "180 newly not judged, 360 cases in both runs, 180 only in the run before; after narrowed: 360 of" in text


def test_the_command_says_it_twice(tmp_path: Path) -> None:
    after = replace(BASE, verdicts={CELL: ["violates", "not run"]}, slowdown=1.5)
    result = run_command(tmp_path, after, "--markdown", str(tmp_path / "c.md"))
    assert result.exit_code == Overall.VIOLATES, result.output
    for text in (result.output, (tmp_path / "c.md").read_text()):
        assert "1 newly failing, 0 fixed, 1 newly not judged, 540 cases in both runs" in text
        assert "Time that drifted" in text
        assert "no device is free" in text


def test_what_newly_fails_has_its_causes_with_lines_that_replay_them(tmp_path: Path) -> None:
    half = {(operator, "float16", aspect): ["violates"] * 8 for operator in OPERATORS for aspect in ASPECTS}
    result = run_command(tmp_path, replace(BASE, verdicts=half), "--markdown", str(tmp_path / "c.md"))
    for text in (result.output, unescape((tmp_path / "c.md").read_text())):
        assert "Fails only when dtype = float16: " in text and "poolproof replay --backend" in text
    assert "poolproof replay" not in run_command(tmp_path / "other", replace(BASE, slowdown=1.5)).output


@pytest.mark.parametrize(("options", "status"), [([], Overall.CONFORMS), (["--fail-on-drift"], Overall.VIOLATES)])
def test_drift_fails_on_demand(tmp_path: Path, options: list[str], status: Overall) -> None:
    result = run_command(tmp_path, replace(BASE, slowdown=1.5), *options)
    assert result.exit_code == status
    assert f"{'REGRESSED' if status else 'NO REGRESSION'} (exit status {int(status)})" in result.output
