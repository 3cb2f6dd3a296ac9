"""Case lists of others: each row is the case that its tool would make of it, or says which field keeps it from that."""

import csv
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from places import GOLDEN
from poolproof.references.operators import BACKWARDS
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import Overall, Verdict
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.entry import Entry
from poolproof.suites.cases.lists import FORMATS, READ_ONLY, ListError, read_lists
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.plan.lines import parse_line
from sessions import run_session
from shared_runs import made_once, verified
from wrong_values import WRONG, places, put

Row = dict[str, Any]


SAMPLES = GOLDEN / "case_lists"
FAMILY: list[Row] = json.loads((SAMPLES / "backwards.json").read_text())
"""A row of ATK for each backward: three with windows of two cells along each axis, side by side, and two adaptive."""


def atk(number: Any = 0, base: Row = FAMILY[0], **inputs: Row) -> Row:
    """A row of them with another id, and with other fields of some of its inputs."""
    given = [each | inputs.get(each["name"], {}) if isinstance(each, dict) else each for each in base["inputs"]]
    return base | {"id": number, "inputs": given}


def ttk(sample: str = "gradient", **changes: str) -> dict[str, str]:
    """A row with some of its cells changed, of the 2-D gradient's kernel, of the forward's, or of an API.

    The gradient's is channels last, the tool chooses the forward's data, and the API's is spelled as people spell them.
    """
    with (SAMPLES / f"{sample}.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    return row | changes


def write_atk(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps(rows))
    return path


def write_ttk(path: Path, row: Mapping[str, str]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([row.keys(), row.values()])
    return path


def read(tmp_path: Path, *rows: Any) -> list[Entry]:
    return read_lists([write_atk(tmp_path / "list.json", *rows)])


def read_ttk(tmp_path: Path, sample: str = "gradient", **changes: str) -> Entry:
    (entry,) = read_lists([write_ttk(tmp_path / "list.csv", ttk(sample, **changes))])
    return entry


def case_of(entry: Entry) -> Case:
    assert entry.case is not None, entry.fault
    return entry.case


def test_rows_of_each_kind_are_the_cases_that_their_tools_make_of_them() -> None:
    """Pinned: all backwards and two forwards of ATK; of TTK kernels, an API, functions of torch and a spreadsheet.

    A row is its line, and back.
    """
    names = "backwards.json", "forwards.json", "gradient.csv", "forward.csv", "api.csv", "torch.csv", "spreadsheet.csv"
    entries = read_lists([SAMPLES / name for name in names])
    lines = (SAMPLES / "entries.jsonl").read_text().splitlines()
    assert [entry.to_json() for entry in entries] == lines
    assert [parse_line(line) for line in lines] == entries
    assert {entry.case.operator for entry in entries if entry.case} >= {operator.name for operator in BACKWARDS}


@pytest.mark.parametrize("given", [["inf"], ["-inf"]])
def test_a_bool_of_which_no_value_is_listed_is_drawn_by_the_name_of_its_row(tmp_path: Path, given: Any) -> None:
    drawn_here = {"self": {"shape": [2, 3, 6, 6]}, "gradOutput": {"shape": [2, 3, 3, 3]}}
    rows = [atk(number, **drawn_here, ceilMode={"range_values": given}) for number in range(8)]
    drawn = [str(case_of(entry).attributes) for entry in read(tmp_path, *rows)]
    assert len(set(drawn)) == 2
    assert drawn == [str(case_of(entry).attributes) for entry in read(tmp_path, *rows[::-1])][::-1]


def test_the_gradient_of_an_adaptive_row_is_the_output_of_its_forward(tmp_path: Path) -> None:
    case = case_of(read(tmp_path, FAMILY[3])[0])
    made = make_operands(case)
    planes = made.values.reshape(case.planes, -1)
    indices = made.indices.reshape(case.planes, -1)  # type: ignore[union-attr]
    outputs = np.take_along_axis(planes, indices, axis=1)
    assert np.array_equal(made.gradient.reshape(case.planes, -1), outputs)  # type: ignore[union-attr]
    assert outputs.max() == planes.max()


def test_ttk_rows_are_integers_whatever_their_ranges_say(tmp_path: Path) -> None:
    values = make_operands(case_of(read_ttk(tmp_path))).values
    assert np.isfinite(values).all()
    assert np.array_equal(values, np.round(values))
    assert np.abs(values).max() > 64


@pytest.mark.parametrize(
    ("given", "recipe"),
    [
        ([-5, 5], "between(-5,5)"),
        (1, "filled(1)"),
        ([0.1], "filled(0.1)"),
        ([2, 2], "filled(2)"),
        (["nan"], "filled(nan)"),
        (["-inf"], "filled(-inf)"),
        (["-inf", "inf"], "between(-65504,65504)"),
        ([0, 1e6], "between(0,65504)"),
    ],
)
def test_ranges_are_recipes_within_what_the_dtype_has(tmp_path: Path, given: Any, recipe: str) -> None:
    case = case_of(read(tmp_path, atk(base=FAMILY[2], self={"range_values": given}))[0])
    assert case.values == recipe
    values = make_operands(case).values.astype(np.float64)
    low, high = (float(recipe.partition("(")[2].rstrip(")").split(",")[place]) for place in (0, -1))
    assert np.isnan(values).all() if np.isnan(low) else ((low <= values + 1e-4) & (values - 1e-4 <= high)).all()
    assert len(np.unique(values)) > 50 or low == high or np.isnan(low)


def test_a_normal_distribution_has_a_mean_and_deviation_of_its_ranges(tmp_path: Path) -> None:
    given = {"name": "nd", "mean": [10, 20], "std": [0.5, 1]}
    one = {"self": {"shape": [1, 1, 64, 64], "range_values": given}, "gradOutput": {"shape": [1, 1, 32, 32]}}
    drawn = [case_of(entry) for entry in read(tmp_path, *(atk(number, **one) for number in range(3)))]
    means = [float(make_operands(case).values.mean()) for case in drawn]
    assert all(10 <= mean <= 20 for mean in means)
    assert len({round(mean, 1) for mean in means}) == 3
    assert all(0.4 < make_operands(case).values.std() < 1.1 for case in drawn)


ROW = FAMILY[0]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ("text", "the row"),
        (ROW | {"aclnn_name": "aclnnConv"}, "aclnn_name"),
        ({name: ROW[name] for name in ROW if name != "aclnn_name"}, "aclnn_name: the row has none"),
        (ROW | {"inputs": None}, "inputs"),
        (ROW | {"inputs": [*ROW["inputs"], ROW["inputs"][1] | {"name": "scale"}]}, "inputs"),
        (ROW | {"inputs": [*ROW["inputs"], ROW["inputs"][1]]}, "self"),
        (ROW | {"inputs": [*ROW["inputs"], [{"name": "stride"}, {"name": "padding"}]]}, "inputs"),
        (ROW | {"inputs": [ROW["inputs"][0], *ROW["inputs"][2:]]}, "self"),
        (ROW | {"inputs": ROW["inputs"][1:]}, "grad_output"),
        (atk(self={"dtype": "int8"}), "self.dtype"),
        (atk(gradOutput={"dtype": "fp16"}), "grad_output.dtype"),
        (atk(self={"shape": None}), "self.shape"),
        (atk(self={"shape": [2, "3", 6, 4]}), "no legal call: a case of MaxPool2dWithIndicesBackward: Expected `int`"),
        (atk(gradOutput={"shape": [2, 3, 3, 3]}), "grad_output.shape"),
        *((atk(self={"range_values": values}), "self") for values in (["null"], [1, 2, 3], [5, -5])),
        (atk(self={"range_values": {"name": "poisson"}}), "self"),
        (atk(self={"range_values": {"name": "nd", "mean": [0, 1]}}), "self"),
        (atk(self={"range_values": {"name": "nd", "mean": [0, 1], "std": [-2, -1]}}), "self"),
        (ROW | {"standard": {"acc": {"one": {}, "two": {}}}}, "standard.acc"),
        (ROW | {"poolproof_case": "{"}, "the case that it carries"),
        (ROW | {"poolproof_case": '{"operator":"MaxPool2dWithIndicesBackward"}'}, "the case that it carries"),
    ],
)
def test_what_is_wrong_with_a_row_names_its_field_and_leaves_the_others(tmp_path: Path, row: Any, field: str) -> None:
    wrong, right = read(tmp_path, row, atk(8))
    assert wrong.case is None
    begin, _, message = wrong.fault.partition("): ")
    assert begin.startswith("row 1 of list.json (")
    assert message.startswith(field), message
    assert right.case is not None


VIEWS = "tensor_view_shapes"
FUNCTION = {"api_name": "torch.max_pool2d", VIEWS: "((2, 3, 6, 4),)", "tensor_dtypes": "('float32',)"}


@pytest.mark.parametrize(
    ("sample", "changes", "field"),
    [
        ("gradient", {"op_name": "avg_pool_grad"}, "op_name"),
        ("gradient", {"input_dtypes": "('float16', 'float32', 'int32')"}, "input_dtypes"),
        ("gradient", {"input_dtypes": "('float16', 'float16', 'int64')"}, "attributes"),
        ("gradient", {"input_dtypes": "('float16',)"}, "input_dtypes"),
        ("gradient", {"input_shapes": "((2, 6, 4, 3), (2, 3, 2, 4), (2, 3, 2, 3))"}, "input_shapes"),
        ("gradient", {"input_shapes": "((6, 4, 3), (3, 2, 3), (3, 2, 3))"}, "input_shapes"),
        ("gradient", {"input_shapes": "__import__('os').getcwd()"}, "input_shapes"),
        ("gradient", {"attributes": "[1]"}, "attributes"),
        ("gradient", {"attributes": "{'ksize': [2, 2]}"}, "attributes"),
        ("gradient", {"attributes": ""}, "attributes: ksize is missing"),
        ("gradient", {"input_data_ranges": "((nan, nan), (0, 1))"}, "input_data_ranges"),
        ("gradient", {"input_data_ranges": "((1, 0), (0, 1), (0, 0))"}, "self"),
        ("gradient", {"precision_tolerances": "(0.001, 0.001)"}, "precision_tolerances"),
        ("gradient", {"precision_tolerances": "((nan, 0.001),)"}, "precision_tolerances"),
        ("api", {"api_name": "aclnnMaxPool"}, "api_name"),
        ("api", {"is_enabled": "FALSE"}, "is_enabled"),
        ("api", {"tensor_dtypes": "('float32', 'float16', 'int32', 'float32')"}, "tensor_dtypes"),
        ("api", {VIEWS: "((2, 3, 3, 2), (2, 3, 6, 4), (2, 3, 3, 2))"}, VIEWS),
        ("api", {VIEWS: "((2, 3, 3, 3), (2, 3, 6, 4), (2, 3, 3, 2), (2, 3, 6, 4))"}, VIEWS),
        ("api", {"tensor_view_strides": "((24, 6, 2, 1),)"}, "tensor_view_strides"),
        ("api", {"attributes": '{"stride": [2, 2]}'}, "no legal call"),
        ("api", {"attributes": '{"kernelSize": [2, 2], "indices": [1]}'}, "attributes: 'indices' is none of"),
        ("api", {"tensor_dtypes": "('int8', 'int8', 'int32', 'int8')"}, "tensor_dtypes: poolproof tests the dtypes"),
        ("api", {"input_data_ranges": "((-1, 1, 0),)"}, "grad_output: poolproof cannot make [0] occur in"),
        ("api", {"api_name": "torch.nn.functional.max_pool1d"}, "torch.nn.functional.max_pool1d: poolproof tests max_"),
        ("api", {"api_name": "tf.nn.max_pool2d"}, "api_name: poolproof reads functions of torch and aclnn"),
        (
            "api",
            FUNCTION | {"api_name": "torch.adaptive_max_pool2d", "attributes": ""},
            "no legal call: a case of Adapt",
        ),
        ("api", FUNCTION, "kernelSize: no argument of max_pool2d_with_indices"),
    ],
)
def test_a_wrong_row_of_ttk_names_its_column(tmp_path: Path, sample: str, changes: dict[str, str], field: str) -> None:
    entry = read_ttk(tmp_path, sample, **changes)
    assert entry.case is None
    assert entry.fault.partition("): ")[2].startswith(field), entry.fault


OTHER_FORMATS = (
    *("", "[]", "[{", "[" * 200_000, "name,shape\n", "# nothing\n", "# settings\n[server]\nport = 1\n", "5\n"),
    json.dumps({"graph": [{"kind": "MaxPool"}]}, indent=2),
    '{"id": 1}\n{"id": 2}\n',
    json.dumps({"operator": "MaxPool2dWithIndices", "shape": [1, 1, 4, 4]}, indent=1),
)
"""Files that look like lists at their first character: each has one sentence, not one for each line."""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"aclnn_name"', "cannot be read as atk"),
        ("[" * 200_000 + '"aclnn_name"', "cannot be read as atk"),
        ("api_name,tensor_view_shapes\n", "has no row"),
        *((text, "list is none of the formats that poolproof reads: atk, a JSON list") for text in OTHER_FORMATS),
        (b"\xff\xfe[", "no text in UTF-8"),
    ],
)
def test_a_file_that_is_no_list_is_refused(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = tmp_path / "list"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ListError, match=message):
        read_lists([path])


def test_a_row_may_be_longer_or_shorter_than_its_heading(tmp_path: Path) -> None:
    heading, row = (SAMPLES / "torch.csv").read_text().splitlines()[:2]
    short, long = row.removesuffix(","), f"{row},,more"
    (tmp_path / "list.csv").write_text("\n".join((heading, short, long)))
    first, second = read_lists([tmp_path / "list.csv"])
    assert case_of(first).id == case_of(second).id


def test_a_workbook_is_to_be_saved_as_csv(tmp_path: Path) -> None:
    (tmp_path / "list.xlsx").write_bytes(b"PK\x03\x04\xff")
    with pytest.raises(ListError, match=r"is no text in UTF-8; save an \.xlsx file as CSV"):
        read_lists([tmp_path / "list.xlsx"])


def test_a_missing_file_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ListError, match="No such file"):
        read_lists([tmp_path / "none.json"])
    path = write_atk(tmp_path / "list.json", ROW)
    (tmp_path / "other").mkdir()
    with pytest.raises(ListError, match="two case lists are called"):
        read_lists([path, write_atk(tmp_path / "other" / "list.json", ROW)])


def test_lines_of_our_own_are_cases_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    case = Case.of("AdaptiveMaxPool2d", shape=(1, 4, 4), output_size=(2, 2))
    path = tmp_path / "ours.jsonl"
    path.write_text(f"# two\n{case.to_json()}\n\n{{}}\n")
    first, second = read_lists([path])
    assert (first.row, case_of(first).id) == (2, case.id)
    assert second.fault == "row 4 of ours.jsonl (4): a case needs the field 'operator'"


def test_a_broken_line_is_a_fault_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "ours.jsonl").write_text('{"operator": "AdaptiveMaxPool2d", \n')
    (entry,) = read_lists([tmp_path / "ours.jsonl"])
    assert "this is not JSON" in entry.fault


@pytest.mark.parametrize("index_dtypes", [("int64",), ("int32",), ()])
def test_indices_are_stored_as_a_backend_takes_them(tmp_path: Path, index_dtypes: tuple[str, ...]) -> None:
    entry = read(tmp_path, ROW)[0].within(index_dtypes)
    assert case_of(entry).index_dtype == (*index_dtypes, "int32")[0]
    assert case_of(entry).indices == "forward"


@pytest.mark.parametrize("rest", ["", ',"row":"x","name":"b"', ',"row":1,"name":""'])
def test_a_line_that_is_half_of_a_row_is_refused(rest: str) -> None:
    with pytest.raises(CaseError, match="a row of a list has"):
        parse_line(f'{{"list":"a"{rest}}}')


CELLS = (
    *("", "()", "nan", "{}", "1", "'x'", "-'a'", "{[]: 1}", "{**{}}", "((1,2),(1,2),(1,2))", "(('a',),)", "((1,2,3),)"),
    *("((1e400,1),(0,1),(0,1))", "(((1,),2,3,4),(1,2,3,4),(1,2,3,4))", "((True,None),(0,0),(0,0))"),
    "(" * 300 + ")" * 300,
    "{'ksize': 2, 'strides': 2, 'pads': 0, 'dilation': 1, 'ceil_mode': 0, 'dtype': [3]}",
    "{'ksize': [2], 'strides': [2], 'pads': [0], 'dilation': [1], 'data_format': ['NHWC']}",
)


def test_whatever_stands_in_a_row_it_is_a_case_or_has_a_fault() -> None:
    lots, read = random.Random(0), []
    for row in lots.choices(FAMILY, k=1200):
        for _ in range(lots.choice((1, 1, 2, 3))):
            row = put(row, lots.choice(list(places(row))), lots.choice(WRONG))
        read.append(FORMATS["atk"].entry(row, "list", 1))
    for _ in range(400):
        row = ttk(lots.choice(("gradient", "forward", "api")))
        read.append(READ_ONLY["ttk"].entry(row | {lots.choice(list(row)): lots.choice(CELLS)}, "list", 1))
    assert all(entry.case or entry.fault.startswith("row 1 of list (") for entry in read)
    assert 100 < sum(entry.case is not None for entry in read) < 800
    for entry in read[::20]:
        assert parse_line(entry.to_json()) == entry


# Whole runs.

CROWD = atk(9, gradOutput={"range_values": [1, 2]}, self={"range_values": 1})
"""Data in which a lost gradient shows."""


def make_run(folder: Path) -> None:
    """Rows of two lists on a kernel that loses its last gradient: good, wrong, and there twice."""
    bad = atk(5, gradOutput={"shape": [2, 3, 3, 3]})
    lists = write_atk(folder / "atk.json", CROWD, bad, FAMILY[4], CROWD), write_ttk(folder / "ttk.csv", ttk())
    given = [part for path in lists for part in ("--case-list", str(path))]
    ended = run_session(folder / "run", "scatter_backends:lost", *given, "--no-shrink", asked=())
    (folder / "output").write_text(ended.output)
    (folder / "status").write_text(str(ended.status))
    for path in lists:
        path.unlink()


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "listed", make_run)


def test_each_row_has_a_row_with_what_its_list_says(listed: Path) -> None:
    rows = read_rows(listed / "run").to_pylist()
    by_place = {row["block"]: row for row in rows if row["list"]}
    assert set(by_place) == {"atk.json:1", "atk.json:2", "atk.json:3", "atk.json:4", "ttk.csv:1"}
    assert by_place["atk.json:1"]["case_id"] == by_place["atk.json:4"]["case_id"]
    first, wrong, last = (by_place[place] for place in ("atk.json:1", "atk.json:2", "ttk.csv:1"))
    assert (first["list"], first["list_row"], first["list_name"]) == ("atk.json", 1, "9")
    passed = (first["list_standard"], first["list_standard_passes"])
    assert (first["verdict"], *passed) == (Verdict.VIOLATES, "single_bm", False)
    reason = "row 2 of atk.json (5): grad_output.shape: [2, 3, 3, 3] is not what the windows give, [2, 3, 3, 2]"
    assert (wrong["verdict"], wrong["reason"]) == (Verdict.NOT_RUN, reason)
    assert last["list_standard"] == "close 0.001 0.001 1e-08"
    assert (listed / "status").read_text() == str(int(Overall.VIOLATES))


def test_the_tables_say_what_the_lists_own_standards_make_of_it(listed: Path) -> None:
    stand = read_digest(listed / "run").list_results.set_index(["list", "list_standard"])
    assert stand.loc[("atk.json", "single_bm"), ["rows", "judged", "violates", "failed"]].tolist() == [2, 2, 2, 2]
    assert stand.loc[("atk.json", ""), ["rows", "judged"]].tolist() == [1, 0]
    output, page = (listed / "output").read_text(), (listed / "run" / "index.html").read_text()
    assert "Case list atk.json on scatter_backends:lost" in output
    assert "Case lists, beside their own standards" in page
    for text in (output, page):
        assert "row 2 of atk.json (5): grad_output.shape" in " ".join(text.split())


def test_a_bundle_of_lists_stands_without_them(listed: Path, tmp_path: Path) -> None:
    steps = verified(listed / "run", tmp_path).steps
    assert any("the plan, drawn again, has one row for each of its cases" in step.text for step in steps)


def test_rows_that_cannot_be_read_or_are_too_large_leave_a_run_incomplete_and_stay_so(tmp_path: Path) -> None:
    huge = atk(self={"shape": [1, 1, 60_000, 60_000]}, gradOutput={"shape": [1, 1, 30_000, 30_000]})
    lists = write_atk(tmp_path / "list.json", ROW, "wrong", huge)
    asked = ("scatter_backends:Scatter", "--memory-budget", "1GiB", "--case-list", str(lists))
    for more, status, said in (
        (("-k", "list.json:1"), Overall.CONFORMS, ""),
        (("--resume",), Overall.INCOMPLETE, "GiB of tensors"),
        (("--resume",), Overall.INCOMPLETE, "2 of 3 planned cases"),
    ):
        ended = run_session(tmp_path / "run", *asked, *more, asked=())
        assert (ended.status, said in ended.output) == (status, True), ended.output
    rows = read_rows(tmp_path / "run").to_pylist()
    passes = {row["block"]: row["list_standard_passes"] for row in rows}
    assert passes == {"list.json:1": True, "list.json:2": None, "list.json:3": None}
    assert len(rows) == 3
