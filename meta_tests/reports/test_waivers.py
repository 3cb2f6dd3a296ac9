"""Waivers cover what they say and nothing else, and a wrong file is named."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import date
from pathlib import Path

import pytest

from poolproof.reports.rows.checks import CHECK_IDS
from poolproof.reports.rows.verdicts import Verdict
from poolproof.reports.waivers import WaiverError, Waivers, check_terms, load, matches_any, shipped
from poolproof.suites.plan.aspects import ALL_CHECKS

TODAY = date(2026, 11, 21)
ROW = {
    "backend": "torch-cpu",
    "operator": "MaxPool3dWithArgmax",
    "dtype": "float32",
    "layouts": "out:sliced+1 self:channels_last",
    "verdict": "violates",
    "checks_violated": ["written", "maximum"],
}
TEXT = """
[[waiver]]
id = "strided"
reason = "strides are ignored"
owner = "somebody"
expires = 2027-01-31
{more}
[waiver.scope]
backend = "torch-*"
operator = ["AdaptiveMaxPool3d", "MaxPool3dWithArgmax"]
layouts = "*out:*"
"""


def waivers(tmp_path: Path, more: str = "", today: date = TODAY) -> Waivers:
    path = tmp_path / "known.toml"
    path.write_text(TEXT.format(more=more))
    return Waivers(load(path), today)


def test_a_row_in_scope_is_waived_and_keeps_its_findings(tmp_path: Path) -> None:
    known = waivers(tmp_path)
    waived = known.apply(ROW, {"torch": "2.13.0"})
    assert waived == ROW | {"verdict": Verdict.WAIVED, "waivers": ["strided"]}


@pytest.mark.parametrize(
    "change", [{"backend": "aclnn"}, {"operator": "MaxPool2dWithIndices"}, {"layouts": "self:sliced"}]
)
def test_a_row_out_of_scope_is_not(tmp_path: Path, change: dict[str, str]) -> None:
    assert waivers(tmp_path).apply(ROW | change, {})["verdict"] == "violates"


def test_a_waiver_for_some_checks_does_not_cover_others(tmp_path: Path) -> None:
    assert waivers(tmp_path, 'checks = ["written"]').apply(ROW, {})["verdict"] == "violates"
    assert waivers(tmp_path, 'checks = ["written", "maximum"]').apply(ROW, {})["verdict"] == Verdict.WAIVED


def test_crashes_are_waived_only_as_survival(tmp_path: Path) -> None:
    crash = ROW | {"verdict": Verdict.CRASHED, "checks_violated": []}
    assert waivers(tmp_path, 'checks = ["written"]').apply(crash, {})["verdict"] == Verdict.CRASHED
    assert waivers(tmp_path, 'checks = ["survival"]').apply(crash, {})["verdict"] == Verdict.WAIVED


@pytest.mark.parametrize("check", ["survival", "memory_untouched"])
def test_what_harms_the_program_is_waived_only_by_name(tmp_path: Path, check: str) -> None:
    row = ROW | {"checks_violated": ["written", check]}
    assert waivers(tmp_path).apply(row, {})["verdict"] == "violates"
    named = waivers(tmp_path, f'checks = ["written", "{check}"]')
    assert named.apply(row, {})["verdict"] == Verdict.WAIVED


@pytest.mark.parametrize(
    ("checks", "message"),
    [
        ('"interval"', "at `[$].checks"),
        ("[3]", "at `[$].checks"),
        ('["interval", "intervall"]', "there is no check 'intervall'"),
    ],
)
def test_checks_are_a_list_of_known_names(tmp_path: Path, checks: str, message: str) -> None:
    with pytest.raises(WaiverError, match=message):
        waivers(tmp_path, f"checks = {checks}")


def test_the_known_names_are_those_of_the_suites() -> None:
    assert sorted(CHECK_IDS) == sorted(ALL_CHECKS)


@pytest.mark.parametrize(("today", "lasts_too_long"), [(date(2025, 1, 30), True), (date(2025, 1, 31), False)])
def test_a_waiver_lasts_two_years_at_most(tmp_path: Path, today: date, lasts_too_long: bool) -> None:
    known = waivers(tmp_path).all
    with (
        pytest.raises(WaiverError, match="strided expires on 2027-01-31, more than two")
        if lasts_too_long
        else nullcontext()
    ):
        check_terms(known, today)


def test_versions_bound_a_waiver(tmp_path: Path) -> None:
    known = waivers(tmp_path, 'versions = { torch = "2.13.*" }')
    assert known.apply(ROW, {"torch": "2.13.0+cpu"})["verdict"] == Verdict.WAIVED
    assert known.apply(ROW, {"torch": "2.14.0"})["verdict"] == "violates"
    assert known.apply(ROW, {})["verdict"] == "violates"


@pytest.mark.parametrize(
    ("pattern", "held"),
    [
        (">= 100", [100, 2.5e3]),
        ("> 100", [2.5e3]),
        ("<=1e2", [7, 100]),
        ("< 100", [7]),
        ("< -1", []),
        ("100", [100]),
        ("*", [7, 100, 2.5e3, None, True, "200"]),
    ],
)
def test_a_bound_matches_the_numbers_within_it(pattern: str, held: list[object]) -> None:
    values = [7, 100, 2.5e3, None, True, "200"]
    assert [value for value in values if matches_any(value, [pattern])] == held


QUADRATIC = {"operator": "MaxPool2dWithIndicesBackward", "planes": 1, "elements": 72000, "windows": 72000}


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, Verdict.WAIVED),
        ({"verdict": "crashed"}, Verdict.CRASHED),
        ({"operator": "MaxPool3dWithArgmaxBackward"}, Verdict.TIMED_OUT),
        ({"operator": "MaxPool2dWithIndices"}, Verdict.TIMED_OUT),
        ({"planes": 4}, Verdict.TIMED_OUT),
        ({"elements": 1600, "windows": 1600}, Verdict.TIMED_OUT),
        ({"windows": 7200}, Verdict.TIMED_OUT),
    ],
)
def test_time_outs_of_mindspore_are_waived_on_large_planes_alone(change: dict[str, object], verdict: Verdict) -> None:
    known = Waivers([waiver for path in shipped() for waiver in load(path)], TODAY)
    row = ROW | {"backend": "mindspore", "verdict": "timed out", "checks_violated": []} | QUADRATIC | change
    assert known.apply(row, {"mindspore": "2.10.0"})["verdict"] == verdict


def test_an_expired_waiver_waives_nothing(tmp_path: Path) -> None:
    late = waivers(tmp_path, today=date(2027, 2, 1))
    assert late.apply(ROW, {})["verdict"] == "violates"
    assert waivers(tmp_path, today=date(2027, 1, 31)).apply(ROW, {})["verdict"] == Verdict.WAIVED


def test_what_conforms_is_left_alone(tmp_path: Path) -> None:
    known = waivers(tmp_path)
    assert known.apply(ROW | {"verdict": "conforms"}, {})["verdict"] == "conforms"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("waiver", "is not TOML"),
        ("", "must consist of"),
        ('[[waiver]]\nid = "a"', "missing required field `reason`"),
        (
            '[[waiver]]\nid="a"\nreason="r"\nowner="o"\nexpires="soon"\nscope={operator="x"}',
            "Expected `date`, got `str` - at `[$].expires`",
        ),
        ('[[waiver]]\nid="a"\nreason="r"\nowner="o"\nexpires=2027-01-01\nscope={planet="x"}', "column names"),
        ('[[waiver]]\nid="a"\nreason="r"\nowner="o"\nexpires=2027-01-01\nscope={}', "column names"),
        (
            '[[waiver]]\nid="a"\nreason="r"\nowner="o"\nexpires=2027-01-01\nscope={operator=3}',
            "Expected `array`, got `int` - at `[$].scope",
        ),
        (
            '[[waiver]]\nid="a"\nreason="r"\nowner="o"\nexpires=2027-01-01\nscope={elements=[">= 5", "> many"]}',
            "'> many' is no bound",
        ),
        (
            '[[waiver]]\nid="a"\nreason="r"\nowner="o"\nexpires=2027-01-01\nscope={operator="x"}\ncolour="red"',
            "unknown entry 'colour'",
        ),
    ],
)
def test_a_wrong_file_is_named_with_its_mistake(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "known.toml"
    path.write_text(text)
    with pytest.raises(WaiverError, match=message) as error:
        load(path)
    assert "known.toml" in str(error.value)


def test_ids_are_unique(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(TEXT.format(more="") * 2)
    with pytest.raises(WaiverError, match="several waivers called 'strided'"):
        load(path)


def test_the_shipped_waivers_are_in_order() -> None:
    found = [waiver for path in shipped() for waiver in load(path)]
    assert found
    for waiver in found:
        assert waiver.scope["backend"]
        assert waiver.versions
