"""One seeded difference for each part of the frozen gates, which comparing has to see."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

import gates
from poolproof import reports

BLOCKS = [("a-values-0", ["1142dc080d2b", "a6114aadbfaa"]), ("a-values-1", ["8cad1f00dd11"])]
GROUP = {"backend": "a", "operator": "MaxPool2d", "dtype": "float32", "index_dtype": "int64", "aspect": "values"}


def two(part: str, old: Any, new: Any, *options: str) -> Result:
    """Compare two freezes of a part: of rows, or of what is kept as JSON."""
    with TemporaryDirectory() as folder:
        for name, value in (("old", old), ("new", new)):
            path = Path(folder, name, part)
            path.mkdir(parents=True)
            if part == "rows":
                gates.write_rows(value, path / "a.parquet")
            else:
                gates.write_json(path, value)
        return CliRunner().invoke(gates.main, ["compare", f"{folder}/old", f"{folder}/new", *options])


def of_ids(blocks: list[tuple[str, list[str]]], planned: int = 3) -> dict[str, object]:
    return {**gates.summary_of(blocks, [{**GROUP, "planned": planned}])}


def test_one_changed_id_or_group_and_another_order_of_ids_are_seen() -> None:
    ended = two("ids", of_ids(BLOCKS), of_ids(BLOCKS))
    assert ended.exit_code == 0
    assert ended.output.startswith("ids: equal\nrows: not frozen in ")
    ended = two("ids", of_ids(BLOCKS), of_ids([BLOCKS[0], ("a-values-1", ["8cad1f00dd12"])]))
    assert ended.exit_code == 1
    assert ended.output.startswith("ids: 2 differences\n  all: ")
    assert "block a-values-1:" in ended.output
    assert "a-values-0" not in ended.output
    for blocks in (BLOCKS[::-1], [("a-values-0", BLOCKS[0][1][::-1]), BLOCKS[1]]):
        assert two("ids", of_ids(BLOCKS), of_ids(blocks)).exit_code == 1
    ended = two("ids", of_ids(BLOCKS), of_ids(BLOCKS, planned=2))
    assert ended.exit_code == 1
    assert "groups of MaxPool2d float32 int64 values:" in ended.output


@pytest.mark.thorough
def test_ids_are_those_of_the_rows_of_a_run(failing_run: Path) -> None:
    record = json.loads((failing_run / "run" / "run.json").read_text(encoding="utf-8"))
    rows = reports.load(failing_run / "run").rows
    rows = rows[rows["case_id"].notna()]
    judged = set(zip(rows["block"], rows["case_id"], strict=True))
    drawn = dict(gates.drawn(record, gates.OneIn(1)))
    assert {(block, case) for block, ids in drawn.items() for case in ids} == judged
    some = dict(gates.drawn(record, gates.OneIn(2)))
    assert some.items() < drawn.items()


@pytest.fixture
def rows(failing_run: Path) -> pd.DataFrame:
    """A few of each verdict: every cell is written as JSON."""
    return reports.load(failing_run / "run").rows.groupby("verdict").head(20)


@pytest.mark.thorough
def test_what_is_the_same_of_rows_is_equal(rows: pd.DataFrame) -> None:
    """In another order, at another time, and in an ignored column."""
    ended = two("rows", rows, rows[::-1].assign(seconds=1.0, worker="gw7"))
    assert (ended.exit_code, "rows: equal" in ended.output) == (0, True)
    assert two("rows", rows, rows.assign(reason="other words"), "--ignore", "reason").exit_code == 0


def test_what_is_changed_in_rows_is_seen(rows: pd.DataFrame) -> None:
    """A verdict, a list and a last bit, a missing row, and a renamed column, which is said once."""
    other = rows.copy()
    place = other.index[other["verdict"] == "violates"][0]
    other.loc[place, "verdict"] = "conforms"
    ended = two("rows", rows, other)
    assert ended.exit_code == 1
    assert "rows: 1 differences" in ended.output
    assert f"1 of {len(rows)} rows in verdict\n" in ended.output
    assert f'{other.loc[place, "case_id"]}": "violates" -> "conforms"' in ended.output
    other = rows.copy()
    first = other.index[other["max_abs_err"] > 0][0]
    other.loc[first, "max_abs_err"] *= 1 + 2.0**-52
    other.at[first, "checks_judged"] = other.at[first, "checks_judged"][1:]
    ended = two("rows", rows, other)
    assert "rows in max_abs_err\n" in ended.output
    assert "rows in checks_judged\n" in ended.output
    ended = two("rows", rows, rows.drop(index=rows.index[3]))
    assert (ended.exit_code, "1 rows gone, first " in ended.output) == (1, True)
    ended = two("rows", rows, rows.rename(columns={"n_single_valued": "n_bits_expected"}))
    assert (ended.exit_code, "rows: 2 differences" in ended.output) == (1, True)
    assert ended.output.count("n_single_valued") == ended.output.count("n_bits_expected") == 1


@pytest.mark.parametrize(
    ("route", "column", "differs"),
    [("key 16; atomic 1", "mere", False), ("key 16; atomic 0", "mere", True), ("key 16; atomic 1", "n_reject", True)],
)
def test_statistics_of_racing_sums_may_differ(rows: pd.DataFrame, route: str, column: str, differs: bool) -> None:
    place = rows.index[rows["verdict"] == "conforms"][0]
    rows.loc[place, ["route", "deterministic"]] = [route, False]
    other = rows.copy()
    other.loc[place, column] = 7
    ended = two("rows", rows, other)
    assert (ended.exit_code, rows.loc[place, "case_id"] in ended.output) == (differs, differs)


@pytest.mark.parametrize(("found", "cases", "differs"), [(True, 110, False), (True, 112, True), (False, 9, True)])
def test_a_find_that_is_lost_or_later_is_seen(found: bool, cases: int, differs: bool) -> None:
    ended = two("score", {"a": {"found": True, "cases": 100}}, {"a": {"found": found, "cases": cases}})
    assert ended.exit_code == differs
