"""What a failure prints shows it again, and says how often it fails where that is not always."""

import html
import json
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import forked
from contract_calls import MP2, made
from places import SUPPORT
from poolproof.backends.emulator.build import library
from poolproof.reports.figures import tables
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.pages.publishing import publish
from poolproof.reports.rows.evidence import shrunk_path
from poolproof.reports.rows.failures import message, replay_line
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import write_run
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.aspects import ASPECTS
from poolproof.suites.run.repetition import ENOUGH, MOST, repeat
from poolproof.suites.run.runner import Runner
from reports_made_up import Recipe, made_up_record, made_up_rows, shown, write_rows
from sessions import replay_pasted, surroundings, words
from shared_runs import verified

CASE = Case.of("MaxPool2dWithIndicesBackward", index_dtype="int32", shape=(1, 4, 4), kernel_size=(2, 2))


def printed_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if "poolproof replay" in line]


@pytest.mark.thorough
def test_the_line_of_a_run_carries_all_that_it_was_given(tmp_path: Path) -> None:
    """A backend beside the session, in a folder whose name a shell would take apart; another time limit; a library."""
    here = tmp_path / "it's $HOME; here"
    here.mkdir()
    (here / "mine.py").write_text("from helper import lost\n\nbackend = lost\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "helper.py").write_text("from scatter_backends import lost\n")
    environment = surroundings() | {"PYTHONPATH": f"{tmp_path / 'elsewhere'}:{SUPPORT}", "POOLPROOF_NPU": "1"}
    options = ("--backend", "mine:backend", "--case", CASE.to_json(), "--case-timeout", 33, "--report", "out")
    asked = words(*options, "--aclnn-library", "lib.so", "--no-shrink")
    ended = subprocess.run(asked, cwd=here, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stdout
    (line,) = set(printed_lines(ended.stdout))
    assert line.startswith("POOLPROOF_NPU=1 poolproof replay --backend mine:backend --aclnn-library ")
    assert "--timeout 33 " in line
    again = replay_pasted(line, tmp_path)
    assert again.returncode == 1, again.stdout + again.stderr
    assert line in again.stdout
    (row,) = tables.load(here / "out").to_dict("records")
    by_id = replay_pasted(shlex.join(["poolproof", "replay", str(here / "out"), row["case_id"][:6]]), tmp_path)
    assert (by_id.returncode, by_id.stdout) == (1, f"{line}\n{again.stdout}")
    assert row["reason"] in ended.stdout
    assert row["reason"] in again.stdout


def test_a_message_is_about_the_case_that_its_line_shows_and_a_shell_obeys_nothing_in_it() -> None:
    row = {"backend": "b;id", "case": "{}", "given": ["PATH=/tmp", "POOLPROOF_NPU=$(id)", "`id`"]}
    assert replay_line(row) == "POOLPROOF_NPU='$(id)' poolproof replay --backend 'b;id' PATH=/tmp '`id`' '{}'"
    row = {"backend": "b", "case": '{"a":9}', "reason": "nine", "shrunk": '{"a":1}', "shrunk_reason": "one"}
    assert (message(row), replay_line(row)) == ("one", """poolproof replay --backend b '{"a":1}'""")
    row |= {"shrunk": None, "shrunk_reason": None}
    assert (message(row), replay_line(row)) == ("nine", """poolproof replay --backend b '{"a":9}'""")


@pytest.mark.parametrize(
    ("answers", "asked", "failed"),
    [("F" * 20, ENOUGH, ENOUGH), ("C" * 20, MOST, 0), ("FFC" + "F" * 20, MOST, MOST - 1), ("N" * 20, 0, 0)],
)
def test_what_fails_at_times_is_asked_more_often_while_there_is_time(answers: str, asked: int, failed: int) -> None:
    verdicts = {"F": Verdict.VIOLATES, "C": Verdict.CONFORMS, "N": Verdict.NOT_RUN}
    given, question = iter(answers), CaseQuestion(CASE, ASPECTS["values"])
    repetition = repeat(question, lambda _: {"verdict": verdicts[next(given)]})
    assert repetition.columns == ({"asked_again": asked, "failed_again": failed} if asked else {})
    assert repeat(question, lambda _: {"verdict": "timed out"}, seconds=0.0).columns["asked_again"] == 1


def test_a_broken_clause_is_named_wherever_it_is_told(tmp_path: Path) -> None:
    """Clause, sentence and what in the call brings it up: terminal, page, summary, and replay in a shell."""
    call = made(MP2)
    call = call.with_tensors({"indices": call.tensor("indices").reshaped((4, 4))})
    options = ("--backend", "aclnn", "--aclnn-library", library(), "--case", call.to_json(), "--report", "out")
    seeded = {"POOLPROOF_EMULATOR_DEFECTS": "rank_two_indices_accepted", "POOLPROOF_EMULATOR_PRODUCT": "A2"}
    ended = forked.run(forked.Command("pytest", words(*options)[3:], tmp_path, surroundings() | seeded))
    assert ended.returncode == 1, ended.stdout
    (line,) = set(printed_lines(ended.stdout))
    (tmp_path / "away").mkdir()
    texts = {name: (tmp_path / "out" / name).read_text() for name in ("index.html", "summary.md")}
    texts |= {"terminal": ended.stdout, "replay": replay_pasted(line, tmp_path / "away").stdout}
    sentence = (
        "2d-bwd.rank.indices: indices has rank 3 or 4. Here indices has shape [4, 4], all else is as in the legal"
    )
    assert [name for name, text in texts.items() if sentence not in html.unescape(text)] == []
    (row,) = tables.load(tmp_path / "out").to_dict("records")
    assert json.loads(row["findings"])[0]["message"] == row["reason"]
    verified(tmp_path / "out", tmp_path)


Flaky = tuple[Runner, list[Row], Path]
"""A runner, its rows, and the file of lots that decide which process of ``loses_now_and_then`` loses."""


@pytest.fixture
def flaky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_sandboxes: None) -> Iterator[Flaky]:
    lots, rows = tmp_path / "lots", []
    monkeypatch.setenv("LOTS", str(lots))
    runner = Runner(tmp_path, "main", lambda row: row, rows.append, 20.0, shrinks=True)
    yield runner, rows, lots
    runner.close()


BACKEND = "plugged_backends:loses_now_and_then"


@pytest.mark.parametrize(
    ("lots", "said"),
    [
        ("L" + "." * 30, "; fails 0 of 10 repetitions in a fresh process"),
        ("L.LL.L" + "." * 30, "; fails 3 of 10 repetitions in a fresh process"),
        ("L.LLL", ""),
    ],
)
def test_a_failure_that_does_not_repeat_is_told_with_its_rate(flaky: Flaky, lots: str, said: str) -> None:
    """The second process is the one that forks all but the first, and asks nothing."""
    runner, rows, file = flaky
    file.write_text(lots)
    (row,) = runner.judge_one(CaseQuestion(CASE, ASPECTS["values"], "block"), BACKEND)
    assert row is rows[0]
    assert row["verdict"] == Verdict.VIOLATES
    assert message(row) == row["reason"] + said


@pytest.mark.parametrize(("lots", "said", "status"), [("..L", "fails 1 of 3", 1), ("", "fails 0 of 3", 0)])
@pytest.mark.thorough
def test_replay_says_how_often_a_case_fails(tmp_path: Path, lots: str, said: str, status: int) -> None:
    (tmp_path / "lots").write_text(lots)
    given = f"--backend {BACKEND} --pythonpath {shlex.quote(str(SUPPORT))} --repeat 3"
    ended = replay_pasted(
        f"LOTS=lots POOLPROOF_WRITABLE=. poolproof replay {given} {shlex.quote(CASE.to_json())}", tmp_path
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1] == f"{said} on {BACKEND}"
    assert ("violates: " in ended.stdout) is bool(status)


def test_a_rate_is_told_wherever_the_failure_is(tmp_path: Path) -> None:
    rows = made_up_rows(Recipe(verdicts={("MaxPool2dWithIndicesBackward", "float32", "values"): ["violates"]}))
    for name, value in (("asked_again", 10), ("failed_again", 3)):
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array([value] * len(rows), pa.int64()))
    write_rows(tmp_path, rows)
    write_run(tmp_path, made_up_record(Recipe()))
    digest = read_digest(tmp_path)
    publish(digest, tmp_path)
    texts = {name: (tmp_path / name).read_text() for name in ("index.html", "summary.md")}
    texts["terminal"] = shown(digest)
    assert [name for name, text in texts.items() if "fails 3 of 10 repetitions in a fresh process" not in text] == []


def one_case(smallest: Case | None) -> Any:
    """A block of one case, whose failure is made smaller to another that is given."""

    def smaller(failing: Question, still_fails: object, seconds: float) -> CaseQuestion:
        assert smallest is not None, "what does not repeat was made smaller"
        return CaseQuestion(smallest, ASPECTS["values"], "block")

    questions = [CaseQuestion(CASE, ASPECTS["values"], "block")]
    return SimpleNamespace(row_block="block", backend=BACKEND, questions=lambda: questions, smaller=smaller)


SMALL, RIGHT = replace(CASE, shape=(1, 2, 2)), replace(CASE, shape=(0, 4, 4))


@pytest.mark.parametrize(("smallest", "lots"), [(SMALL, "LLLL" + "LLL"), (RIGHT, "LLLL" + "." * 10), (None, "L...")])
def test_a_smaller_case_was_seen_to_fail_too(flaky: Flaky, tmp_path: Path, smallest: Case | None, lots: str) -> None:
    runner, _, file = flaky
    file.write_text(lots[0] + "." + lots[1:] + "." * 20)
    result = runner.judge(one_case(smallest))
    (row,) = result.failures
    evidence = shrunk_path(tmp_path, row["case_id"], BACKEND)
    if smallest is SMALL:
        assert row["shrunk"] == SMALL.to_json()
        assert row["shrunk_reason"] == message(row) != row["reason"]
        assert (row["asked_again"], row["failed_again"]) == (ENOUGH, ENOUGH)
        assert row["shrunk_reason"] in result.message()
        assert evidence.exists()
    else:
        assert "shrunk" not in row
        assert row["reason"] in result.message()
        assert not evidence.exists()
