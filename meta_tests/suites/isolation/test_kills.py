"""Killing any process of a run costs no row and doubles none: `studies/kills.py` with a kill of each role."""

from collections import Counter
from pathlib import Path
from random import Random

import forked
from kills import ASKED, ROLES, Kill, Result, disturbed, result_of
from places import ROOT
from sessions import surroundings

KILLS = [
    Kill(role, rows, 0.0)
    for role, rows in (("judging process", 5), ("server", 15), ("guardian", 25), ("xdist worker", 35), ("session", 50))
]


def test_a_run_whose_processes_are_killed_has_the_same_rows(tmp_path: Path) -> None:
    expected = undisturbed(tmp_path / "undisturbed")
    assert max(expected.rows.values()) == 1
    assert {kill.role for kill in KILLS} == {*ROLES}
    result, missed = disturbed(tmp_path / "disturbed", KILLS, Random(0), print)
    assert not missed
    assert not expected.difference(result, len(KILLS))


def undisturbed(folder: Path) -> Result:
    """Of forked processes, and without workers: nothing is killed, and it takes a tenth of the time."""
    arguments = ["suites", "-q", "-p", "no:cacheprovider", *ASKED, "-n", "0", "--report", str(folder)]
    return result_of(forked.run(forked.Command("pytest", arguments, ROOT, surroundings())).returncode, folder)


def result(status: int, *rows: str) -> Result:
    return Result(status, Counter(("block", *row.split(" ", 1)) for row in rows))


def test_what_differs_is_seen() -> None:
    """A row that is lost, doubled, added, or another status; what was killed twice may be not run."""
    rows = ("a conforms", "b crashed")
    expected = result(1, *rows)
    for other in (result(1, rows[0]), result(1, *rows, rows[1]), result(1, *rows, "c conforms"), result(2, *rows)):
        assert expected.difference(other, kills=5)
    assert not expected.difference(expected, kills=0)
    assert expected.difference(result(1, "a not run", rows[1]), kills=1)
    assert not expected.difference(result(1, "a not run", rows[1]), kills=2)
