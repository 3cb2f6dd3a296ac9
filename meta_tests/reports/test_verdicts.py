"""Which verdict outweighs which, and what a kind of failure is."""

from __future__ import annotations

from itertools import combinations

import pandas as pd

from poolproof.reports.figures.tables import with_violated
from poolproof.reports.rows.failures import KIND, kind_of, replay_line, what_failed
from poolproof.reports.rows.verdicts import BY_GRAVITY, FAILED, SKIPPED, Overall, Verdict, gravest

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
