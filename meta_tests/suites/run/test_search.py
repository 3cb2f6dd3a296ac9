"""Searches beyond the plan: they find, remember and report failures, and leave the plan as it is."""

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from forging import rewrite
from poolproof.backends.emulator.defects import VARIABLE
from poolproof.references.operators import OPERATORS
from poolproof.reports.bundle.packing import package
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.rows.records import Done
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import Overall
from poolproof.suites.cases.case import Case
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import Subject
from poolproof.suites.plan.search import Search
from poolproof.suites.run.runner import Runner
from poolproof.suites.run.searching import Judging
from poolproof.suites.verify.verification import verify
from sessions import Ended, run_session
from shared_runs import verified

OPERATOR = "MaxPool3dWithArgmaxBackward"
SMALL = ["--operator", OPERATOR, "--dtype", "float16", "--aspect", "values", "--cases", "3", "--search"]
PRECISE = [*SMALL, "--aspect", "precision"]
FAILING = {VARIABLE: "assign_not_accumulate"}
HONEST = "scatter_backends:honest"
SUBJECT = Subject(HONEST, OPERATORS[OPERATOR], "float16", "int32")
CASE = Case.of(OPERATOR, shape=(1, 1, 2, 2, 2), kernel_size=(2,))


def searched(folder: Path) -> list[Row]:
    rows = read_rows(folder, ["aspect", "block", "case", "case_id", "verdict", "shrunk", "failed_before"]).to_pylist()
    return sorted((row for row in rows if row["aspect"] == "search"), key=lambda row: row["case_id"])


def ids(folder: Path) -> Counter[tuple[str, str]]:
    return Counter((row["block"], row["case_id"]) for row in searched(folder))


def run(folder: Path, *options: str, asked: list[str] = PRECISE, **more: object) -> Ended:
    return run_session(folder, "emulator-a2", *options, asked=asked, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def conforming(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    ended = run(tmp_path_factory.mktemp("searched") / "run", "--hypothesis-show-statistics")
    assert ended.status == Overall.CONFORMS, ended.output
    return ended


def test_cases_of_a_search_are_judged_and_not_of_the_plan(conforming: Ended, tmp_path: Path) -> None:
    found, conclusion = ids(conforming.folder), read_digest(conforming.folder).conclusion
    blocks = Counter(block for block, _ in found)
    assert blocks["search-values"] <= 5 and 100 < blocks["search-precision"] <= 200
    assert conclusion.planned == 6 == conclusion.judged
    assert conclusion.narrowed.endswith(f"{found.total()} cases beyond the plan")
    assert "Highest target scores" in conforming.output
    verified(conforming.folder, tmp_path)


@pytest.mark.thorough
def test_a_seed_gives_the_same_search_again(conforming: Ended, tmp_path: Path) -> None:
    for name, seed in (("same", "0"), ("other", "1")):
        assert run(tmp_path / name / "run", "--seed", seed).status == Overall.CONFORMS
    assert ids(tmp_path / "same/run") == ids(conforming.folder) != ids(tmp_path / "other/run")


@pytest.mark.thorough
def test_workers_of_xdist_share_the_searches(tmp_path: Path) -> None:
    assert run(tmp_path / "run", "-n", "2").status == Overall.CONFORMS
    assert {block for block, _ in ids(tmp_path / "run")} == {"search-values", "search-precision"}


def test_options_of_hypothesis_win(tmp_path: Path) -> None:
    given = ("--hypothesis-seed", "7", "--hypothesis-profile", "acceptance")
    for name in ("one", "two"):
        assert run(tmp_path / name / "run", *given, asked=SMALL).status == Overall.CONFORMS
    assert ids(tmp_path / "one/run") == ids(tmp_path / "two/run")
    assert len(ids(tmp_path / "one/run")) > 40


def test_a_failure_is_reported_and_judged_first_by_the_next_run(tmp_path: Path) -> None:
    options = ("--hypothesis-profile", "acceptance", "-k", "search")
    first = run(tmp_path / "first", *options, asked=SMALL, variables=FAILING)
    assert first.status == Overall.VIOLATES, first.output
    (failing,) = [row for row in searched(first.folder) if row["verdict"] == "violates"]
    assert len(failing["shrunk"]) <= len(failing["case"])
    assert f"poolproof replay --backend emulator-a2 '{failing['shrunk']}'" in first.output
    assert "Falsifying" not in first.output and "HypothesisWarning" not in first.output
    verified(first.folder, tmp_path)

    again = run(tmp_path / "again", *options, asked=SMALL, variables=FAILING)
    assert [row["case_id"] for row in searched(again.folder)] == [failing["case_id"]], again.output

    mended = run(tmp_path / "mended", *options, asked=SMALL)
    assert mended.status == Overall.CONFORMS, mended.output
    before = [row["case_id"] for row in searched(mended.folder) if row["failed_before"]]
    assert before == [failing["case_id"]]
    verified(mended.folder, tmp_path)
    later = run(tmp_path / "later", *options, asked=SMALL)
    assert not [row for row in searched(later.folder) if row["failed_before"]], later.output


def test_verify_reads_a_searched_case_from_its_own_line(conforming: Ended, tmp_path: Path) -> None:
    def claim(rows: list[Row]) -> list[Row]:
        row = next(row for row in rows if row["block"] == "search-values")
        row["elements"] += 1
        return rows

    folder = tmp_path / "run"
    assert run(folder, asked=SMALL).status == Overall.CONFORMS
    rewrite(folder, claim)
    package(folder, tmp_path / "forged.zip")
    problems = [problem for step in verify(tmp_path / "forged.zip").steps for problem in step.problems]
    assert any(problem.startswith("search-values: ") for problem in problems), problems


def test_a_resumed_run_searches_what_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert run_session(folder, HONEST, "-k", "not search", asked=SMALL).status == Overall.CONFORMS
    assert not searched(folder)
    for _ in range(2):
        assert run_session(folder, HONEST, "--resume", "-k", "not test_conformance", asked=SMALL).status == 0
    found = ids(folder)
    assert found and set(found.values()) == {1}


def test_a_search_ends_with_the_budget(tmp_path: Path) -> None:
    given = ("--budget", "10m", "-p", "disturbing", "-rs")
    ended = run_session(tmp_path / "run", HONEST, *given, asked=SMALL, variables={"DISTURBANCE": "leap 3"})
    assert not searched(tmp_path / "run")
    assert "budget of 10 min used up" in ended.output


def test_a_search_that_has_begun_ends_at_the_deadline(tmp_path: Path) -> None:
    asked: list[Row] = []
    with closing(Runner(tmp_path, "main", lambda row: row, asked.append, 20.0, shrinks=False, until=0.0)) as runner:
        judging = Judging(Search(SUBJECT, CASE_ASPECTS["values"]), runner, Done(), "used up")
        with pytest.raises(pytest.skip.Exception, match="used up"):
            judging.judge(CASE)
    assert not asked


def test_an_adapter_that_does_nothing_but_raise_ends_a_search(tmp_path: Path) -> None:
    given = ("--hypothesis-profile", "acceptance", "-k", "search")
    ended = run_session(tmp_path / "run", "dying_backends:raises_always", *given, asked=SMALL)
    assert ended.status == Overall.COULD_NOT_RUN, ended.output
    assert len(searched(tmp_path / "run")) == 10
