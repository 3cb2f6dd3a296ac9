"""Killing any process of a run costs no row and doubles none: `studies/kills.py` with a kill of each role."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

import forked
from kills import ASKED, ROLES, Kill, Result, disturbed, result_of
from places import ROOT
from sessions import surroundings

KILLS = [
    Kill(role, rows, 0.0)
    for role, rows in (
        ("judging process", 5),
        ("server", 15),
        ("guardian", 25),
        ("xdist worker", 35),
        ("session", 50),
    )
]


def test_a_run_whose_processes_are_killed_has_the_same_rows(tmp_path: Path) -> None:
    expected = undisturbed(tmp_path / "undisturbed")
    assert max(expected.rows.values()) == 1
    assert {kill.role for kill in KILLS} == {*ROLES}
    result, missed = disturbed(tmp_path / "disturbed", KILLS, Random(0), print)
    assert not missed
    assert not expected.difference(result, len(KILLS))


def undisturbed(folder: Path) -> Result:
    """Of forked processes: they are not killed, and take a quarter of the time."""
    arguments = ["suites", "-q", "-p", "no:cacheprovider", *ASKED, "--report", str(folder)]
    return result_of(forked.run(forked.Command("pytest", arguments, ROOT, surroundings())).returncode, folder)


@pytest.mark.parametrize(
    ("status", "rows"),
    [(1, {"a": 1}), (1, {"a": 1, "b": 2}), (1, {"a": 1, "b": 1, "c": 1}), (2, {"a": 1, "b": 1})],
    ids=["lost", "doubled", "added", "status"],
)
def test_what_differs_is_seen(status: int, rows: dict[str, int]) -> None:
    expected = Result(1, Counter({("block", "a", "conforms"): 1, ("block", "b", "crashed"): 1}))
    other = Result(status, Counter({("block", name, owed_verdict(name)): count for name, count in rows.items()}))
    assert expected.difference(other, kills=5)
    assert not expected.difference(expected, kills=0)


def test_what_was_killed_twice_may_be_not_run() -> None:
    expected = Result(1, Counter({("block", "a", "conforms"): 1}))
    other = Result(1, Counter({("block", "a", "not run"): 1}))
    assert expected.difference(other, kills=1)
    assert not expected.difference(other, kills=2)


def owed_verdict(name: str) -> str:
    return "crashed" if name == "b" else "conforms"
