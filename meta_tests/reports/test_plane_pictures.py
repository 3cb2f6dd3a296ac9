"""Pictures of failing planes, and the grids of what was asked: every mark stands for what the evidence says."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from poolproof.reports.figures.coverage import factor_coverage, grids
from poolproof.reports.pages.plane import MAX_CELLS, MAX_PLANES, picture
from poolproof.reports.rows.evidence import Evidence
from poolproof.reports.rows.store import RowWriter


def evidence(got: Any, expected: Any, **more: Any) -> Evidence:
    """Of planes with two spatial axes, where everything but what is expected is wrong."""
    expected = np.asarray(expected, np.float64)
    arrays = {"got": np.asarray(got, np.float64), "low": expected, "high": expected, "exact": expected}
    arrays |= {"flags": np.zeros(expected.shape, np.uint8)} | more
    return Evidence(arrays, {"tensor": "grad_input", "spatial_rank": 2})


def drawings(of: Evidence) -> dict[str, str]:
    return {title: str(drawing) for title, drawing in picture(of).drawings}


DIFFERENCE = "got \N{MINUS SIGN} exact sum"


def test_every_cell_says_what_was_expected_and_got() -> None:
    drawn = drawings(evidence([[[0.0, 2.0], [3.0, 4.0]]], [[[1.0, 2.0], [3.0, 4.0]]]))
    assert list(drawn) == ["exact sum", "got", DIFFERENCE]
    for drawing in drawn.values():
        first, *_ = re.findall(r"<title>(.*?)</title>", drawing)
        assert first == "[0, 0, 0]: expected 1, got 0, exact sum 1, difference -1"
        assert re.findall(r'class="(frame \w+)"', drawing) == ["frame worst"]


def test_a_right_cell_has_no_frame() -> None:
    of = evidence([[[0.0, 2.0]]], [[[0.0, 2.0]]], written=np.array([0, 1, 2], np.uint8))
    shown = picture(of)
    assert not any("frame" in str(drawing) for _, drawing in shown.drawings)
    assert "None of its cells is wrong." in shown.caption


def test_what_is_expected_are_the_values_of_the_sentence_in_digits_that_tell_them_from_what_came() -> None:
    of = evidence([[[1.0000002, 2.0]]], [[[1.00000005, 2.0]]], low=np.array([[[1.0, 2.0]]]))
    of.arrays["high"] = np.array([[[1.0000001, 2.0]]])
    expected = "expected [1, 1.0000001], got 1.0000002, exact sum 1.00000005, difference 1.5e-07"
    assert f"<title>[0, 0, 0]: {expected}</title>" in drawings(of)["got"]


def test_ink_grows_with_magnitude_and_special_values_have_their_own() -> None:
    one = evidence([[[-8.0, 4.0, np.inf, 0.0]]], [[[0.0, 0.0, 0.0, 0.0]]])
    found = re.findall(r'<rect class="(\w+)" .*?fill-opacity:([\d.]+)"/>', drawings(one)["got"])
    assert found == [("low", "0.75"), ("high", "0.38"), ("special", "0.00"), ("high", "0.00")]
    drawn = drawings(evidence([[[0.9425212, -1234.5678, 1.5e20]]], [[[0.0, 0.0, 0.0]]]))["got"]
    assert re.findall(r"<text[^>]*>(.*?)</text>", drawn) == ["0.943", "-1235", "2e20"], "rounded to fit a cell"


def arrows(of: Evidence) -> list[str]:
    return re.findall(r'class="arrow"><title>(.*?)</title>', drawings(of)[DIFFERENCE])


def test_what_went_elsewhere_is_an_arrow_where_it_is_clear() -> None:
    for got, expected, titles in (
        ([0.0, 5.0, 7.0], [5.0, 0.0, 7.0], ["as if it went there"]),
        ([0.0, 0.0, 7.0], [5.0, 0.0, 7.0], []),
        ([0.0, 5.0, 5.0], [5.0, 0.0, 0.0], []),
    ):
        assert arrows(evidence([[got]], [[expected]])) == titles


def fault(kind: str, cell: list[Any], home: list[int]) -> dict[str, Any]:
    return {"kind": kind, "cell": cell, "home": home, "window": [0, 0, 0]}


def with_faults(*faults: Any) -> Evidence:
    two = evidence([[[0.0, 5.0, 5.0]], [[1.0, 0.0, 0.0]]], [[[5.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]]])
    return Evidence(two.arrays, {**two.meta, "element": [0, 0, 0], "faults": list(faults)})


def test_where_the_decoder_knows_it_arrows_show_where_each_gradient_went() -> None:
    told = with_faults(fault("misrouted", [0, 0, 2], [0, 0, 0]), fault("copied", [0, 0, 1], [0, 0, 0]))
    assert arrows(told) == ["arrived here, not there", "arrived here, too"]
    lines = re.findall(r'<line x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)"', drawings(told)[DIFFERENCE])
    assert lines == [("11.0", "55.0"), ("11.0", "33.0")]
    for other in (  # of another plane, and what is no account
        fault("misrouted", [1, 0, 0], [0, 0, 0]),
        fault("lost", [0, 0, 0], [0, 0, 0]),
        fault("misrouted", [0, 0, 3], [0, 0, 0]),
        fault("misrouted", [0, 0], [0, 0, 0]),
        fault("misrouted", ["0", None, 0], [0, 0, 0]),
        {"kind": ["misrouted"]},
        "misrouted",
    ):
        assert not arrows(with_faults(other)), other


def test_windows_that_send_to_the_worst_cell() -> None:
    box = {"window_first": np.array([[0, 0], [0, 1]], np.int32), "window_last": np.array([[1, 1], [1, 2]], np.int32)}
    more = box | {"indices": np.array([[[1, 1]]]), "gradient": np.array([[[2.0, 3.0]]])}
    one = evidence([[[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]], [[[0.0, 5.0, 0.0], [0.0, 0.0, 0.0]]], **more)
    drawn = drawings(one)["windows that send there"]
    titles = re.findall(r"<title>(window [^<]*)</title></rect>", drawn)
    assert titles == ["window 0, gradient 2", "window 1, gradient 3"]
    assert drawn.count('class="arrow"') == 2
    assert re.findall(r"<text[^>]*>(.*?)</text>", drawn) == ["2", "3"]


def test_planes_are_told_apart_many_share_squares_and_large_ones_are_cut() -> None:
    got = np.zeros((2, 3, 1, 2))
    got[1, 1:] = 1.0
    drawn = drawings(evidence(got, np.zeros((2, 3, 1, 2))))["wrong planes"]
    assert re.findall(r"fill-opacity:([\d.]+)\"><title>(.*?)<", drawn) == [
        *(("0.00", f"plane {number}: 0 wrong cells") for number in range(4)),
        *(("1.00", f"plane {number}: 2 wrong cells") for number in (4, 5)),
    ]
    got = np.zeros((1000, 20, 20))
    got[999, 19, 19] = 1.0
    one = drawings(evidence(got, np.zeros((1000, 20, 20))))
    assert one["wrong planes"].count("<rect") == 250 <= MAX_PLANES
    assert "planes 996 to 999: 1 wrong cell<" in one["wrong planes"]
    assert one["got"].count("<title>") == MAX_CELLS**2
    assert "<title>[999, 19, 19]: expected 0, got 1, exact sum 0, difference 1</title>" in one["got"]
    assert picture(Evidence({name: np.zeros(3) for name in ("got", "low", "high", "flags")}, {})) is None


def test_grids_count_every_case_that_was_run(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path, "main")
    for windows, shape, verdict in (
        ({"kernel_size": [2, 2]}, [1, 2, 4, 4], "conforms"),
        ({"kernel_size": [3, 3], "stride": [2, 2]}, [1, 70, 9, 9], "violates"),
        ({"kernel_size": [2, 2]}, [1, 2, 4, 4], "not run"),
    ):
        case = {"operator": "MaxPool2dWithIndices", "shape": shape, **windows}
        row = {"backend": "b", "operator": "MaxPool2dWithIndices", "dtype": "float32", "index_dtype": "int64"}
        writer.append(row | {"aspect": "values", "case": json.dumps(case), "planes": shape[1], "verdict": verdict})
    writer.close()
    sizes, windows = grids(factor_coverage(tmp_path, {}))["b"]
    for grid, met in (
        (sizes, {("1 to 255", "2 to 63"), ("1 to 255", "65 and more")}),
        (windows, {("2 to 127", "="), ("2 to 127", ">")}),
    ):
        places = [(a, d) for d, _ in enumerate(grid.down.classes) for a, _ in enumerate(grid.across.classes)]
        counted = {(grid.across.classes[a], grid.down.classes[d]): n for a, d in places if (n := grid.counts[d][a])}
        assert counted == dict.fromkeys(met, 1)
        failing = [(a, d) for a, d in places if grid.failing[d][a]]
        assert [grid.counts[d][a] for a, d in failing] == [1], "the one that violates"
