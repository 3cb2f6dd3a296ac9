"""A history loses nothing and counts nothing twice, whoever writes to it and however a writer ends."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from poolproof.reports.figures.digest import read_digest
from poolproof.reports.history.entries import ENTRY, ROWS, HistoryError, add, query, read_entries
from poolproof.reports.rows.store import read_run, write_run
from poolproof.reports.rows.verdicts import Overall
from poolproof.suites.cli import main
from reports_made_up import Recipe, make_run
from reports_racing import race
from sessions import poolproof

pytest.importorskip("duckdb")

CELL = ("MaxPool2dWithIndicesBackward", "float32", "values")
EVERY_ROW_ONCE = "SELECT count(*) AS rows, count(DISTINCT (run, backend, aspect, case_id)) AS different FROM rows"


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    recipes = Recipe(verdicts={CELL: ["violates"]}), Recipe(seed=1, started=1.8e9 + 3600.0)
    return [make_run(tmp_path / f"run{number}", recipe, evidence=True) for number, recipe in enumerate(recipes)]


def test_eight_processes_write_two_runs_at_the_same_time(tmp_path: Path, runs: list[Path]) -> None:
    """As often as POOLPROOF_RACES says, which is 4 by default; 100 take a minute."""
    races = int(os.environ.get("POOLPROOF_RACES", "4"))
    histories = [tmp_path / f"history{number}" for number in range(races)]
    assert race(histories, runs, writers=8) == [0] * 8
    for history in histories:
        assert len(list(history.iterdir())) == 2
    answers = [query(read_entries(history), EVERY_ROW_ONCE).to_dict("records") for history in histories]
    assert answers == [[{"rows": 144, "different": 144}]] * races


def test_the_views_of_runs_of_which_one_lacks_a_column(tmp_path: Path, runs: list[Path]) -> None:
    (part,) = (runs[0] / "rows").glob("*.parquet")
    pq.write_table(pq.read_table(part).drop_columns(["margin_min"]), part)
    for run in runs:
        add(tmp_path / "history", run)
    entries = read_entries(tmp_path / "history")
    sums = "SELECT sum(judged), sum(planned), sum(violates) FROM cells GROUP BY run ORDER BY run"
    for sql, answer in (
        ("SELECT verdict, violates FROM runs", [["violates", 1], ["conforms", 0]]),
        (sums, [[72, 72, 1], [72, 72, 0]]),
        ("SELECT count(*) FROM rows JOIN runs USING (run) WHERE runs.verdict = 'violates'", [[72]]),
        ("SELECT count(*), count(margin_min) FROM rows", [[144, 72]]),
    ):
        assert query(entries, sql).values.tolist() == answer


def test_an_entry_is_a_run_of_its_own_and_made_once(tmp_path: Path, runs: list[Path]) -> None:
    history = tmp_path / "history"
    unfinished = make_run(tmp_path / "run", replace(Recipe(), record={"finished": None}))
    with pytest.raises(HistoryError, match="has not finished"):
        add(history, unfinished)
    assert not history.exists()
    place = add(history, runs[0])
    assert read_digest(place).conclusion == read_digest(runs[0]).conclusion
    assert [path.name for path in place.glob("evidence/*")] == [path.name for path in runs[0].glob("evidence/*")]
    before = (place / ENTRY).stat().st_mtime_ns
    assert add(history, runs[0]) == place
    assert (place / ENTRY).stat().st_mtime_ns == before
    write_run(runs[0], read_run(runs[0]) | {"finished": 1.9e9})
    with pytest.raises(HistoryError, match="contains another state of this run"):
        add(history, runs[0])


def test_half_written_runs_are_passed_over_with_a_warning(tmp_path: Path, runs: list[Path]) -> None:
    history = tmp_path / "history"
    whole, cut = (add(history, run) for run in runs)
    (cut / ROWS).write_bytes((cut / ROWS).read_bytes()[:-100])
    (history / ".incoming-0123" / "rows").mkdir(parents=True)
    (history / "run=lost").mkdir()
    (history / "README").write_text("not a run")
    entries = read_entries(history)
    assert list(entries.paths.values()) == [whole]
    assert len(entries.warnings) == 3
    assert "rows/rows.parquet is incomplete, skipped" in "\n".join(entries.warnings)
    assert query(entries, EVERY_ROW_ONCE).values.tolist() == [[72, 72]]


def test_the_commands(tmp_path: Path, runs: list[Path]) -> None:
    history = tmp_path / "history"
    assert poolproof("history", "add", history, *runs).exit_code == 0
    listed = poolproof("history", "list", history)
    run, other = (line.split()[0] for line in listed.output.splitlines()[2:4])
    assert (listed.exit_code, run, "2 runs" in listed.output) == (0, "20270115T080000Z-6b49d200", True)
    (entry,) = [entry for entry in history.iterdir() if entry.name == f"run={run}"]
    told = poolproof("history", "list", history, run).output
    assert f"run: {run}\n" in told and "narrowed: " in told and read_run(entry)["id"].startswith("6b49d200")
    assert other not in told and f"has no run {run[:9]}: " in poolproof("history", "list", history, run[:9]).output
    answer = poolproof("history", "query", history, "SELECT verdict FROM runs ORDER BY 1", "--format", "json")
    assert json.loads(answer.output) == [{"verdict": "conforms"}, {"verdict": "violates"}]


def test_an_answer_wider_than_the_terminal_is_a_line_for_each_value(tmp_path: Path) -> None:
    history = tmp_path / "history"
    add(history, make_run(tmp_path / "run"))
    narrow, wide = (poolproof("history", "query", history, f"SELECT {what} FROM runs").output for what in ("plan", "*"))
    assert narrow.split() == ["plan", "smoke"]
    assert "\nplan: smoke\n" in wide and "" not in wide.splitlines()
    assert not [line for line in wide.splitlines() if ": " not in line]


ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t"


def test_bad_input_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    add(Path("full"), make_run(Path("run")))
    for arguments, complaint in (
        (["list", "nowhere"], "there is no history nowhere"),
        (["add", "history", "nowhere"], "nowhere is no run"),
        (["query", "empty", "SELECT 1"], "the history empty holds no complete run yet"),
        (["query", "full", "SELEC 1"], "syntax error"),
        (["query", "full", "SELECT * FROM colours"], "colours does not exist"),
        (["query", "full", "SELECT verdict::INT FROM runs"], "onvert"),
        (["query", "full", "SELECT * FROM read_text('run/run.json')"], "disabled by configuration"),
        (["query", "full", "COPY runs TO 'runs.csv'"], "disabled by configuration"),
        (["query", "full", ENDLESS, "--timeout", "0.5"], "no answer within 0.5 s: simplify the query, or raise"),
    ):
        result = poolproof("history", *arguments)
        assert (result.exit_code, "Traceback" in result.output) == (Overall.COULD_NOT_RUN, False)
        assert complaint in result.output


def test_a_narrowed_run_never_looks_like_a_whole_one(tmp_path: Path) -> None:
    """Neither in the list of runs nor in a comparison nor on the dashboard."""

    def printed(*arguments: object) -> str:
        result = poolproof(*arguments)
        assert result.exit_code == Overall.CONFORMS, result.output
        return " ".join(result.output.split())

    for whole, ending, kind in ((70_217, " in part", "incomplete"), (0, "", "good")):
        run = make_run(tmp_path / f"run-{kind}", Recipe(record={"plan_cases": whole}))
        history, site = (tmp_path / f"{name}-{kind}" for name in ("history", "site"))
        add(history, run)
        listed = CliRunner().invoke(main, ["history", "list", str(history)], env={"COLUMNS": "80"}).output.splitlines()
        assert max(map(len, listed)) <= 80
        words = ["smoke", "conforms", *ending.split(), "72", "0", "torch-cpu"]
        assert [line.split()[1:] for line in listed if line.startswith("2027")] == [words]
        failing = make_run(
            tmp_path / f"fails-{kind}", Recipe(verdicts={CELL: ["violates"]}, record={"plan_cases": whole})
        )
        add(tmp_path / f"failing-{kind}", failing)
        assert ("violates, narrowed" in printed("history", "list", tmp_path / f"failing-{kind}")) is bool(whole)
        printed("dashboard", history, "-o", site)
        shown = (site / "index.html").read_text(encoding="utf-8")
        assert f'<div class="verdict {kind}">\n  <strong>conforms{ending}</strong>' in shown
        assert f'<td class="{kind}"><a' in shown and f'<td class="{kind}">conforms{ending}</td>' in shown
        assert f"NO REGRESSION{ending.upper()} (exit" in printed("compare", run, run)
