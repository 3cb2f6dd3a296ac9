"""Rows survive whatever happens to the process that writes them."""

import json
from pathlib import Path

import pytest

from poolproof.reports.rows import store
from poolproof.reports.rows.environment import cpu_model
from poolproof.reports.rows.store import NotARun, RowWriter, read_rows, read_run, write_run
from reports_made_up import Recipe, made_up_record


def writer_of(folder: Path, name: str, *numbers: int) -> RowWriter:
    """A writer that has written a row of each number."""
    writer = RowWriter(folder, name)
    for number in numbers:
        writer.append({"case_id": f"{number:012x}", "checks_judged": ["interval"], "n": number})
    return writer


def numbers(folder: Path) -> list[int]:
    return sorted(read_rows(folder).column("n").to_pylist())


def test_rows_are_readable_the_moment_they_are_written(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path, "gw0")
    for number in range(4):
        writer.append({"n": number})
        assert numbers(tmp_path) == list(range(number + 1))
        if number == 2:
            writer.close()  # and goes on
    writer.close()
    assert read_rows(tmp_path, ["n"]).to_pylist() == [{"n": number} for number in range(4)]
    assert not list(tmp_path.glob("rows/*.jsonl"))
    writer_of(tmp_path, "gw0", 4).close()  # of the same name: overwrites nothing
    assert numbers(tmp_path) == [0, 1, 2, 3, 4]


def test_a_line_that_was_cut_off_costs_that_row_alone(tmp_path: Path) -> None:
    writer_of(tmp_path, "gw0", 0, 1)
    journal = next(tmp_path.glob("rows/*.jsonl"))
    journal.write_text(journal.read_text()[:-20])
    assert numbers(tmp_path) == [0]


def test_leftovers_of_the_dead_are_kept(tmp_path: Path) -> None:
    dead, alive = writer_of(tmp_path, "gw0", 7), writer_of(tmp_path, "gw1", 8)
    dead.finish_block("a")
    alive.finish_block("b")
    alive.close()
    store.compact_leftovers(tmp_path)
    assert not list(tmp_path.glob("rows/*.jsonl"))
    assert numbers(tmp_path) == [7, 8]
    assert store.finished_blocks(tmp_path) == {"a", "b"}


def test_what_is_no_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotARun, match="no rows folder"):
        read_rows(tmp_path)
    with pytest.raises(NotARun, match=r"is no run: it has no run\.json"):
        read_run(tmp_path)
    whole = made_up_record(Recipe())
    for text, said in (
        (json.dumps(whole)[:-3], r"run\.json is damaged: Expecting"),
        ("[1]", r"run\.json is damaged: it holds no JSON object"),
        ('{"plan": "smoke"}', "has no entry 'id': it was written by something else"),
        (json.dumps(whole | {"seed": "seven"}), "damaged: entry 'seed' should be an integer"),
    ):
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(NotARun, match=said):
            read_run(tmp_path)
    write_run(tmp_path, whole)
    assert read_run(tmp_path) == whole
    writer_of(tmp_path, "gw0", 1).close()
    (part,) = tmp_path.glob("rows/*.parquet")
    part.write_bytes(part.read_bytes()[:-40])
    with pytest.raises(NotARun, match="are damaged"):
        read_rows(tmp_path)


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\n", "AMD EPYC"),
        ("CPU implementer\t: 0x48\nCPU part\t: 0xd01\n", "CPU implementer 0x48, CPU part 0xd01"),
        ("CPU part\t: 0xd03\n\nHardware\t: BCM2835\n", "BCM2835"),
    ],
)
def test_a_cpu_has_a_name_where_the_system_knows_none(tmp_path: Path, cpuinfo: str, name: str) -> None:
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    assert cpu_model(tmp_path / "cpuinfo") == name
