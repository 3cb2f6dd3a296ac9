"""Cases of ours written as lists of others: read again they are the same cases, and the rows say so without us, too."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

import forked
from forked import Command
from poolproof.references.geometry import expand
from poolproof.references.operators import OPERATORS
from poolproof.references.windows import Windowed
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.entry import Entry
from poolproof.suites.cases.generation import generate
from poolproof.suites.cases.lists import DUPLICATE, FORMATS, NotExpressible, export_rows, read_lists
from poolproof.suites.cases.strategies import Profile, cases
from sessions import surroundings

PROFILE = Profile(gradients=("integers", "ones"), values=("normal", "ties", "nan", "all_nan"))


def drawn(number: int = 12) -> Iterator[Case]:
    for operator in OPERATORS.values():
        make = cases.make(operator, "bfloat16", operator.indices.dtypes[0], PROFILE)
        yield from generate(make, number, seed=5)


def with_data_of(name: str) -> list[Case]:
    """Cases on the data that the tool of a format makes, where it makes any."""
    return [replace(case, **_data_of(name, case)) for case in drawn()]


def _data_of(name: str, case: Case) -> dict[str, Any]:
    if name == "json":
        return {}
    is_adaptive = not isinstance(case.attributes, Windowed)
    values = "between(-5,5)"
    gradient = "pointed" if is_adaptive else values
    fields: dict[str, Any] = {"values": values, "literals": (), "index_dtype": case.api.indices.dtypes[0]}
    return fields | {"gradient": gradient, "indices": "forward", "scale": 0} if case.api.is_backward else fields


def in_a_file(name: str, given: list[Case], path: Path) -> tuple[list[Case], list[Entry]]:
    """(the cases that were written, what was read again)."""
    rows, _ = export_rows(FORMATS[name], given)
    path.write_text(FORMATS[name].document(rows))
    kept = [case for case in dict.fromkeys(given) if _has_words(name, case)]
    return kept, read_lists([path])


def _has_words(name: str, case: Case) -> bool:
    try:
        FORMATS[name].write(case, 0)
    except NotExpressible:
        return False
    return True


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("theirs", [False, True])
def test_what_is_read_again_has_the_same_ids(tmp_path: Path, name: str, theirs: bool) -> None:
    given = with_data_of(name) if theirs else list(drawn())
    kept, read = in_a_file(name, given, tmp_path / "list")
    assert [entry.case and entry.case.id for entry in read] == [case.id for case in kept]
    assert len(kept) >= 5
    assert name != "atk" or not theirs or {case.operator for case in kept} == set(OPERATORS)


def test_rows_say_the_same_call_without_the_case_that_they_carry(tmp_path: Path) -> None:
    """What another tool reads of a row is that case's call, on its data."""
    path, own, given = tmp_path / "list", FORMATS["atk"], with_data_of("atk")
    kept, _ = in_a_file("atk", given, path)
    path.write_text(own.document([own.without_case(row) for row in export_rows(own, given)[0]]))
    assert kept
    for case, entry in zip(kept, read_lists([path]), strict=True):
        assert entry.case is not None, entry.fault
        assert _plain(entry.case) == _plain(case)


def _plain(case: Case) -> Case:
    """The case with a window of which nothing is left to be understood, and no seed."""
    windows: Any = case.attributes.passed()
    if isinstance(windows, Windowed):
        lists = {name: getattr(windows, name) for name in ("kernel_size", "stride", "padding", "dilation")}
        lists["stride"] = lists["stride"] or windows.kernel_size
        windows = replace(windows, **{name: expand(values, case.api.spatial_rank) for name, values in lists.items()})
    return replace(case, seed=0, attributes=windows)


def test_a_row_that_was_changed_behind_its_case_is_named(tmp_path: Path) -> None:
    path = tmp_path / "list"
    in_a_file("atk", with_data_of("atk")[:3], path)
    rows = json.loads(path.read_text())
    rows[1]["inputs"][0]["shape"][0] += 1
    rows[2]["id"] = "renamed"
    path.write_text(json.dumps(rows))
    first, second, third = read_lists([path])
    assert first.case
    assert "is another than the rest of the row" in second.fault
    assert third.case


BASE = Case.of(
    "MaxPool2dWithIndicesBackward", shape=(1, 1, 4, 4), kernel_size=(2, 2), index_dtype="int32", gradient="ones"
)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"layouts": (("self", "sliced"),)}, "not contiguous"),
        ({"deterministic": True}, "deterministic"),
        ({"scale": 3}, "scaled"),
        ({"indices": "shared"}, "indices of the recipe shared"),
        ({"literals": (("self", (0.0,) * 16),)}, "spelled out"),
        ({"index_dtype": "int64"}, "int32 indices"),
        ({"dtype": "float64", "gradient": "special"}, "no range for data of the recipe special"),
        ({"gradient": "pointed"}, "the gradient that is listed"),
    ],
)
def test_what_a_format_has_no_words_for_is_counted_by_what_it_is(change: dict[str, object], reason: str) -> None:
    rows, left_out = export_rows(FORMATS["atk"], [BASE, replace(BASE, **change), BASE])  # type: ignore[arg-type]
    assert len(rows) == 1
    assert left_out.total() == 2
    assert left_out[DUPLICATE] == 1
    assert any(reason in told for told in left_out), left_out


def command(tmp_path: Path, *asked: str) -> CompletedProcess[str]:
    given = ["export", "--backend", "scatter_backends:Scatter", "--cases", "3", *asked]
    return forked.run(Command("poolproof", given, tmp_path, surroundings()))


def test_the_command_writes_a_plan_and_counts_what_it_leaves_out(tmp_path: Path) -> None:
    asked = ("--operator", "AdaptiveMaxPool2d", "--operator", "AdaptiveMaxPool2dBackward", "--aspect", "values")
    ended = command(tmp_path, "--format", "atk", "-o", "list.json", *asked)
    assert ended.returncode == 0, ended.stderr
    rows = json.loads((tmp_path / "list.json").read_text())
    assert f"{len(rows)} of " in ended.stdout
    assert "left out: indices of the recipe" in ended.stdout
    again = command(tmp_path, "--format", "json", "-o", "list.jsonl", "--case-list", "list.json")
    assert again.returncode == 0, again.stderr
    ids = [entry.case and entry.case.id for entry in read_lists([tmp_path / "list.json"])]
    assert [entry.case and entry.case.id for entry in read_lists([tmp_path / "list.jsonl"])] == ids


def test_where_a_format_has_no_words_for_any_case_nothing_is_written(tmp_path: Path) -> None:
    ended = command(tmp_path, "--format", "atk", "--case", replace(BASE, scale=3).to_json(), "-o", "list")
    assert (ended.returncode, "nothing was written" in ended.stderr) == (3, True)
    assert not (tmp_path / "list").exists()
