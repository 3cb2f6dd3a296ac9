"""Text from outside does nothing to whoever reads it."""

from __future__ import annotations

from io import StringIO
from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest
from rich.table import Table
from rich.text import Text

from poolproof.reports.figures.tables import with_violated
from poolproof.reports.rows.failures import KIND, kind_of, replay_line, what_failed
from poolproof.reports.rows.records import read_record
from poolproof.reports.rows.text import visible, without_commands
from poolproof.reports.rows.verdicts import BY_GRAVITY, FAILED, SKIPPED, BadInput, Overall, Verdict, gravest
from poolproof.reports.terminal.painting import SafeConsole


def test_what_a_terminal_would_obey_is_spelled_out() -> None:
    assert visible("a\x1b[2Jb\rc\x00\x9b") == "a\\x1b[2Jb\\rc\\x00\\x9b"
    assert visible("right\u202eto left") == "right\\u202eto left"
    assert visible("half \ud800") == "half \\ud800"


def test_what_people_write_stays_as_it_is() -> None:
    for text in ("two\nlines", "a\ttab", "ünïcödé 中文 ≤ 😀", ""):
        assert visible(text) == text


def test_a_console_shows_foreign_text_and_paints_its_own() -> None:
    target = StringIO()
    console = SafeConsole(file=target, force_terminal=True, width=80)
    console.print(Text("now \x1b]0;title\x07", style="bold"))
    assert "\\x1b]0;title" in target.getvalue()
    assert "\x1b]0;" not in target.getvalue()
    assert "\x1b[1m" in target.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("lost\n::error title=x::y", "lost\n\\x3a:error title=x::y"),
        ("  \t::set-output name=a::b", "  \t\\x3a:set-output name=a::b"),
        ("\x1b[31m::stop-commands::x", "\x1b[31m\\x3a:stop-commands::x"),
        ("said ##[error]x", "said \\x23#[error]x"),
        ("##vso[task.complete]x", "\\x23#vso[task.complete]x"),
        ("a::b, # [1] ## x: y", "a::b, # [1] ## x: y"),
    ],
)
def test_no_line_of_a_log_is_a_command(text: str, shown: str) -> None:
    assert without_commands(text) == shown


def test_what_a_console_prints_is_no_command_wherever_its_lines_are_broken() -> None:
    target = StringIO()
    console = SafeConsole(file=target, width=30)
    console.print(Text("words that take the whole line ::error::from a library"))
    table = Table(box=None)
    table.add_row("", Text("folded at some width::error::x ::warning::y", overflow="fold"))
    console.print(table)
    console.print(Text("a"), Text("::notice::z"))
    lines = [line.strip() for line in target.getvalue().splitlines()]
    assert not [line for line in lines if line.startswith("::")]
    assert "a ::notice::z" in lines
    assert "\\x3a:error::from a library" in target.getvalue()


# Which verdict outweighs which, what a kind of failure is, and what is said about a record that cannot be read.


CRASHED = {"backend": "b:C", "operator": "o", "verdict": "crashed", "checks_violated": ["survival"], "case": '{"a":1}'}
WRONG = CRASHED | {"verdict": "violates", "checks_violated": ["interval", "state"], "shrunk": '{"a":0}'}


def test_the_graver_outweighs() -> None:
    assert set(BY_GRAVITY) == set(Overall)
    for graver, lighter in combinations(BY_GRAVITY, 2):
        assert gravest({lighter: True, graver: True}) is graver
        assert gravest({lighter: ["a cause"], graver: []}) is lighter
    assert gravest({}) is Overall.CONFORMS


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_has_its_ending(verdict: Verdict) -> None:
    assert (verdict.overall is Overall.VIOLATES) is (verdict in FAILED)
    assert (verdict.overall is Overall.INCOMPLETE) is (verdict in SKIPPED)
    assert Overall.of_word(verdict.overall.word) is verdict.overall


def test_a_row_and_a_table_of_rows_agree_on_the_kind() -> None:
    rows = [CRASHED, WRONG]
    table = with_violated(pd.DataFrame(rows))
    assert [tuple(line) for line in table[list(KIND)].to_numpy()] == [kind_of(row) for row in rows]
    assert [what_failed(row) for row in rows] == ["crashed", "interval, state"]
    assert replay_line(WRONG) == """poolproof replay --backend b:C '{"a":0}'"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "it is none: it has no x.json"),
        ('{"a":', "x.json is damaged: "),
        ("[1]", "x.json is damaged: it holds no JSON object"),
        ('{"b": 1}', "x.json has no entry 'a': it was written by something else"),
    ],
)
def test_one_sentence_says_what_is_wrong_with_a_record(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "x.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as told:
        read_record(path, BadInput, "it is none", ["a"])
    assert said in str(told.value)


def test_a_record_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1, "b": 2}', encoding="utf-8")
    assert read_record(tmp_path / "x.json", BadInput, "it is none", ["a"]) == {"a": 1, "b": 2}
