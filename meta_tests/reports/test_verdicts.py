"""Which verdict outweighs which, what a kind of failure is, and what is said about a record that cannot be read."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest

from poolproof.reports.figures.tables import with_violated
from poolproof.reports.rows.failures import KIND, kind_of, replay_line, what_failed
from poolproof.reports.rows.records import read_record
from poolproof.reports.rows.verdicts import BY_GRAVITY, FAILED, SKIPPED, BadInput, Overall, Verdict, gravest

CRASHED = {"backend": "b:C", "operator": "o", "verdict": "crashed", "checks_violated": ["survival"], "case": '{"a":1}'}
WRONG = CRASHED | {"verdict": "violates", "checks_violated": ["interval", "state"], "shrunk": '{"a":0}'}


def test_the_graver_outweighs() -> None:
    assert set(BY_GRAVITY) == set(Overall)
    for graver, lighter in combinations(BY_GRAVITY, 2):
        assert gravest({lighter: True, graver: True}) is graver
        assert gravest({lighter: ["a cause"], graver: []}) is lighter
    assert gravest({}) is Overall.CONFORMS
    for verdict in Verdict:
        assert (verdict.overall is Overall.VIOLATES) is (verdict in FAILED)
        assert (verdict.overall is Overall.INCOMPLETE) is (verdict in SKIPPED)
        assert Overall.of_word(verdict.overall.word) is verdict.overall


def test_a_row_and_a_table_of_rows_agree_on_the_kind() -> None:
    rows = [CRASHED, WRONG]
    table = with_violated(pd.DataFrame(rows))
    assert [tuple(line) for line in table[list(KIND)].to_numpy()] == [kind_of(row) for row in rows]
    assert [what_failed(row) for row in rows] == ["crashed", "interval, state"]
    assert replay_line(WRONG) == """poolproof replay --backend b:C '{"a":0}'"""


def test_a_record_is_read_or_one_sentence_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text, said in (
        (None, "it is none: it has no x.json"),
        ('{"a":', "x.json is damaged: "),
        ("[1]", "x.json is damaged: it holds no JSON object"),
        ('{"b": 1}', "x.json has no entry 'a': it was written by something else"),
    ):
        if text is not None:
            path.write_text(text, encoding="utf-8")
        with pytest.raises(BadInput) as told:
            read_record(path, BadInput, "it is none", ["a"])
        assert said in str(told.value)
    path.write_text('{"a": 1, "b": 2}', encoding="utf-8")
    assert read_record(path, BadInput, "it is none", ["a"]) == {"a": 1, "b": 2}
