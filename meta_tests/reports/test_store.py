"""Rows survive whatever happens to the process that writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from poolproof.reports.rows.store import (
    NotARun,
    RowWriter,
    compact_leftovers,
    finished_blocks,
    read_rows,
    read_run,
    write_run,
)
from reports_made_up import Recipe, made_up_record


def row(number: int) -> dict[str, object]:
    return {"case_id": f"{number:012x}", "verdict": "conforms", "checks_judged": ["interval"], "n": number}


def numbers(folder: Path) -> list[int]:
    return sorted(read_rows(folder).column("n").to_pylist())


def test_rows_are_readable_the_moment_they_are_written(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path, "gw0")
    for number in range(3):
        writer.append(row(number))
        assert numbers(tmp_path) == list(range(number + 1))
    writer.close()
    writer.append(row(3))
    for end in (lambda: None, writer.close):
        end()
        assert numbers(tmp_path) == [0, 1, 2, 3]
        assert read_rows(tmp_path, ["n"]).to_pylist() == [{"n": number} for number in range(4)]
    assert not list(tmp_path.glob("rows/*.jsonl"))
    again = RowWriter(tmp_path, "gw0")  # of the same name: overwrites nothing
    again.append(row(4))
    again.close()
    assert numbers(tmp_path) == [0, 1, 2, 3, 4]


def test_a_line_that_was_cut_off_costs_that_row_alone(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path, "gw0")
    writer.append(row(0))
    writer.append(row(1))
    journal = next(tmp_path.glob("rows/*.jsonl"))
    journal.write_text(journal.read_text()[:-20])
    assert numbers(tmp_path) == [0]


def test_leftovers_of_the_dead_are_kept(tmp_path: Path) -> None:
    dead = RowWriter(tmp_path, "gw0")
    dead.append(row(7))
    dead.finish_block("a")
    alive = RowWriter(tmp_path, "gw1")
    alive.append(row(8))
    alive.finish_block("b")
    alive.close()
    compact_leftovers(tmp_path)
    assert not list(tmp_path.glob("rows/*.jsonl"))
    assert numbers(tmp_path) == [7, 8]
    assert finished_blocks(tmp_path) == {"a", "b"}


def test_what_is_no_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotARun, match="no rows folder"):
        read_rows(tmp_path)
    with pytest.raises(NotARun, match=r"no run\.json"):
        read_run(tmp_path)
    write_run(tmp_path, {"plan": "smoke"})
    with pytest.raises(NotARun, match="has no entry 'id': it was written by something else"):
        read_run(tmp_path)
    whole = made_up_record(Recipe())
    write_run(tmp_path, whole | {"seed": "seven"})
    with pytest.raises(NotARun, match="damaged: entry 'seed' should be an integer"):
        read_run(tmp_path)
    write_run(tmp_path, whole)
    assert read_run(tmp_path) == whole
    (tmp_path / "run.json").write_text(json.dumps(whole)[:-3])
    with pytest.raises(NotARun, match="damaged"):
        read_run(tmp_path)
