"""The benchmark of speed: what its bounds mean, and that its figures are of what they say."""

import json
import os
from dataclasses import replace

import pytest

import forked
from places import ROOT

pytest.importorskip("torch")

import replays
import whole_runs
from measuring import Figure, compared
from small_cases import STAGES

OPERATOR = "AdaptiveMaxPool2d"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """The figures of a few cases of one operator."""
    file = tmp_path_factory.mktemp("speed") / "speed.json"
    chosen = ["--part", "small", "--part", "stages", "--operator", OPERATOR, "--cases", "50", "--rounds", "1"]
    paths = {"PYTHONPATH": str(ROOT / "benchmarks")}
    ended = forked.run(forked.Command("speed", [*chosen, "--json", str(file)], file.parent, os.environ | paths))
    assert file.exists(), ended.stdout + ended.stderr
    return json.loads(file.read_text(encoding="utf-8")) | {"status": ended.returncode}


def test_figures_are_of_what_they_say_and_the_exit_status_says_whether_all_bounds_are_kept(measured: dict) -> None:
    assert measured["status"] == any(figure["holds"] is False for figure in measured["figures"])
    assert measured["machine"]["versions"]["torch"]
    compared = [figure for figure in measured["figures"] if figure["other"]]
    assert [figure["what"] for figure in compared if figure["beside"] == "the obvious way"] == [OPERATOR]
    for figure in compared:
        assert figure["ratio"] == pytest.approx(figure["ours"] / figure["other"])
    stages = {figure["what"]: figure["ours"] for figure in measured["figures"] if figure["part"] == "stages"}
    assert stages["rest"] < 0.5 * sum(stages.values())
    (taken,) = {figure["note"].partition(" of ")[2] for figure in measured["figures"] if figure["part"] == "stages"}
    assert taken == f"{sum(stages.values()):,.0f} us"


def test_every_place_of_a_stage_is_a_file_or_folder_of_the_suite() -> None:
    places = [place.partition(":")[0] for _, places in STAGES for place in places]
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_a_bound_is_held_against_the_ratio_or_against_ours_alone() -> None:
    figure = compared("part", "what", "cases/s", [10.0, 30.0, 20.0], "the other", [5.0, 5.0, 5.0])
    assert (figure.ours, figure.other, figure.ratio) == (20.0, 5.0, 4.0)
    assert replace(figure, bound=">= 4").holds and not replace(figure, bound="<= 3").holds
    alone = Figure("part", "what", "s", 2.0, bound="<= 3")
    assert alone.holds and not replace(alone, ours=3.5).holds
    assert figure.holds is None and replace(alone, ours=None).holds is None


def test_a_run_is_measured_in_three_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    spans = iter([(5.0, 40.0, 2.0), (4.0, 42.0, 1.0), (6.0, 41.0, 3.0)])
    monkeypatch.setattr(whole_runs, "RUNS", {"smoke plan": ()})
    monkeypatch.setattr(whole_runs, "_run_seconds", lambda workers, options: next(spans))
    assert [(figure.what, figure.ours) for figure in whole_runs.measure_runs(3)] == [
        ("smoke plan, start to first case", 5.0),
        ("smoke plan, judging", 41.0),
        ("smoke plan, last case to end", 2.0),
    ]


@pytest.mark.thorough
def test_a_replay_of_a_wrong_cell_is_measured_beside_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each replay ends as is expected of its kind, or there are no figures."""
    monkeypatch.setattr(replays, "KINDS", {"one wrong cell": replays.KINDS["one wrong cell"]})
    seconds, memory = replays.measure_replays([10**5], 1)
    assert (seconds.unit, memory.unit) == ("s", "MiB")
    assert seconds.other and memory.other and memory.other < 5.0
