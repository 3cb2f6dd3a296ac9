"""Sessions whose judges are actors of a Ray that is started here; skipped where Ray is not installed (tox -e ray)."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from places import ROOT
from poolproof.reports.rows.checks import DIAGNOSIS
from poolproof.reports.rows.store import read_rows, read_run
from poolproof.reports.rows.verdicts import Overall, Verdict
from poolproof.suites.cases.case import Case
from sessions import Ended, command, run_session, surroundings, wait_until

pytest.importorskip("ray")

BACKEND = "scatter_backends:lost"
ASKED = (
    *("--operator", "MaxPool2dWithIndicesBackward", "--dtype", "float32", "--dtype", "float64", "--no-shrink"),
    *("--aspect", "values", "--aspect", "special_values", "--aspect", "precision"),
)


def outcomes(folder: Path) -> Counter[tuple[str, ...]]:
    columns = ("block", "case_id", "operator", "dtype", "index_dtype", "verdict", "output_digest", "waivers")
    return Counter(tuple(str(row[name]) for name in columns) for row in read_rows(folder).to_pylist())


def on_ray(folder: Path, *options: str) -> Ended:
    return run_session(folder, BACKEND, "--ray", "auto", *options, asked=ASKED, fresh=True)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """The same plan, judged by an ordinary session."""
    return run_session(tmp_path_factory.mktemp("alone") / "run", BACKEND, asked=ASKED, fresh=True)


def test_ray_gives_the_rows_of_a_session(alone: Ended, tmp_path: Path) -> None:
    ended = on_ray(tmp_path / "run")
    assert (ended.status, outcomes(ended.folder)) == (alone.status, outcomes(alone.folder)), ended.output
    assert read_run(ended.folder)["mandatory"] == read_run(alone.folder)["mandatory"]
    assert list((ended.folder / "evidence").glob("*.npz"))


def test_a_fleet_asks_further_cases(tmp_path: Path) -> None:
    ended = on_ray(tmp_path / "run", "--diagnose", "3")
    blocks = [row["block"] for row in read_rows(ended.folder, ["block"]).to_pylist()]
    assert any(block and block.startswith(DIAGNOSIS) for block in blocks), ended.output
    assert "judging further cases for " in ended.output


def test_a_case_that_no_judge_survives_accuses_nobody(tmp_path: Path) -> None:
    fair, deadly = (
        Case.of("MaxPool2dWithIndicesBackward", shape=(1, 2, size, size), kernel_size=(2,)) for size in (4, 5)
    )
    asked = ["--ray", "auto", *("--case", fair.to_json()), *("--case", deadly.to_json())]
    ended = run_session(tmp_path / "run", "dying_backends:kills_its_judge", asked=asked, fresh=True)
    rows = read_rows(ended.folder, ["case_id", "verdict", "reason"]).to_pylist()
    found = {row["case_id"]: (row["verdict"], row["reason"]) for row in rows}
    assert found == {
        fair.id: (Verdict.CONFORMS, ""),
        deadly.id: (Verdict.NOT_RUN, "3 judges of the fleet died at it"),
    }, ended.output
    assert ended.status == Overall.INCOMPLETE


def test_a_driver_that_is_killed_goes_on_where_it_was(alone: Ended, tmp_path: Path) -> None:
    given = command(tmp_path / "run", BACKEND, "--ray", "auto", asked=ASKED)
    begun = subprocess.Popen(given, cwd=ROOT, env=surroundings(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: rows_in(tmp_path / "run") >= 40, 120.0)
    begun.kill()
    begun.wait(60)
    assert 40 <= rows_in(tmp_path / "run") < outcomes(alone.folder).total()
    ended = on_ray(tmp_path / "run", "--resume")
    assert (ended.status, outcomes(ended.folder)) == (alone.status, outcomes(alone.folder)), ended.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--ray", "127.0.0.1:1"), "--ray 127.0.0.1:1: no cluster answers there"),
        (("--ray", "somewhere"), "--ray somewhere: no cluster answers there: an address is HOST:PORT, or auto"),
        (("--ray", "auto", "--ray-resource", "NPU"), "--ray auto: the cluster has no NPU"),
        (("--ray", "auto", "-n", "2"), "--ray auto takes the place of -n"),
    ],
)
def test_what_is_no_fleet_is_named(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    ended = run_session(tmp_path / "run", BACKEND, *options, asked=ASKED, fresh=True)
    assert ended.status == Overall.COULD_NOT_RUN
    assert said in " ".join(ended.output.split()), ended.output


def rows_in(folder: Path) -> int:
    return sum(len(file.read_bytes().splitlines()) for file in (folder / "rows").glob("*.jsonl"))
