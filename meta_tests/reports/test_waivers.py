"""Waivers cover what they say and nothing else; what a run says about each, and how one is written."""

from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from poolproof.reports.figures.digest import read_digest
from poolproof.reports.rows.checks import CHECK_IDS
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import Overall, Verdict
from poolproof.reports.waivers import (
    Waiver,
    WaiverError,
    Waivers,
    append,
    check_terms,
    load,
    loads,
    matches_any,
    shipped,
    to_toml,
    waiver_for,
)
from poolproof.suites.opening import check_clock
from poolproof.suites.plan.aspects import ALL_CHECKS
from reports_made_up import OPERATORS, Recipe, make_run
from sessions import poolproof, waiver

TODAY = date(2026, 11, 21)
ROW = {
    "case_id": "0123456789ab",
    "case": '{"operator":"x","shape":[1,2]}',
    "backend": "torch-cpu",
    "operator": "MaxPool3dWithArgmax",
    "dtype": "float32",
    "layouts": "out:sliced+1 self:channels_last",
    "verdict": "violates",
    "checks_violated": ["written", "maximum"],
}
OUTPUTS = 'backend = "torch-*", operator = ["AdaptiveMaxPool3d", "MaxPool3dWithArgmax"], layouts = "*out:*"'
STRIDED = waiver("strided", OUTPUTS, "2027-01-31")


def waivers(tmp_path: Path, more: str = "", today: date = TODAY) -> Waivers:
    path = tmp_path / "known.toml"
    path.write_text(STRIDED + more)
    return Waivers(load(path), today)


CRASH = {"verdict": Verdict.CRASHED, "checks_violated": []}
VERSIONS = 'versions = { torch = "2.13.*" }'


@pytest.mark.parametrize(
    ("more", "change", "torch", "is_waived"),
    [
        ("", {}, "2.13.0", True),
        ("", {"backend": "aclnn"}, None, False),
        ("", {"operator": "MaxPool2dWithIndices"}, None, False),
        ("", {"layouts": "self:sliced"}, None, False),
        ("", {"verdict": Verdict.CONFORMS}, None, False),
        # Some checks are not all.
        ('checks = ["written"]', {}, None, False),
        ('checks = ["written", "maximum"]', {}, None, True),
        # Crashes as survival alone.
        ('checks = ["written"]', CRASH, None, False),
        ('checks = ["survival"]', CRASH, None, True),
        # What harms the program by name alone.
        ("", {"checks_violated": ["written", "survival"]}, None, False),
        ("", {"checks_violated": ["written", "memory_untouched"]}, None, False),
        ('checks = ["written", "survival"]', {"checks_violated": ["written", "survival"]}, None, True),
        ('checks = ["written", "memory_untouched"]', {"checks_violated": ["written", "memory_untouched"]}, None, True),
        (VERSIONS, {}, "2.13.0+cpu", True),
        (VERSIONS, {}, "2.14.0", False),
        (VERSIONS, {}, None, False),
    ],
)
def test_a_waiver_covers_what_it_says_and_a_waived_row_keeps_its_findings(
    tmp_path: Path, more: str, change: dict[str, Any], torch: str | None, is_waived: bool
) -> None:
    row = ROW | change
    judged = waivers(tmp_path, more).apply(row, {"torch": torch} if torch else {})
    assert judged == row | ({"verdict": Verdict.WAIVED, "waivers": ["strided"]} if is_waived else {})


def test_a_waiver_ends_with_its_day(tmp_path: Path) -> None:
    assert waivers(tmp_path, today=date(2027, 2, 1)).apply(ROW, {})["verdict"] == "violates"
    assert waivers(tmp_path, today=date(2027, 1, 31)).apply(ROW, {})["verdict"] == Verdict.WAIVED
    known = waivers(tmp_path).all
    check_terms(known, date(2025, 1, 31))
    with pytest.raises(WaiverError, match="strided expires on 2027-01-31, more than two"):
        check_terms(known, date(2025, 1, 30))


def test_a_wrong_clock_stops_a_run_of_backends_with_waivers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = waivers(tmp_path, 'versions = { torch = "2.13.*" }', today=date(1970, 1, 1))
    check_clock(known, {"torch-cpu": SimpleNamespace(environment={"torch": "2.15.0"})})  # type: ignore[dict-item]
    assert "two years from 1970-01-01, which is today by this clock: see to the clock" in capsys.readouterr().err
    with pytest.raises(WaiverError, match="today by this clock"):
        check_clock(known, {"torch-cpu": SimpleNamespace(environment={"torch": "2.13.0"})})  # type: ignore[dict-item]


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
    known = Waivers(shipped(), TODAY)
    row = ROW | {"backend": "mindspore", "verdict": "timed out", "checks_violated": []} | QUADRATIC | change
    assert known.apply(row, {"mindspore": "2.10.0"})["verdict"] == verdict


# Files.

GOOD = {
    "id": '"lost"',
    "reason": '"known"',
    "owner": '"us"',
    "expires": "2027-03-31",
    "scope": '{ backend = "scatter_backends:*", operator = "MaxPool2d*" }',
    "checks": '["interval"]',
    "issue": '"somewhere"',
    "versions": '{ numpy = "2.*" }',
}
WRONG = {
    "id": {'""': "at `[$].id`", "5": "Expected `str`, got `int`", '"  "': "at `[$].id`"},
    "reason": {'"\\t"': "at `[$].reason`", "[]": "Expected `str`, got `array`"},
    "owner": {"''": "at `[$].owner`", "{}": "got `object`", "2027-03-31": "got `date`"},
    "expires": {
        "2027-01-01T00:00:00": "Expected `date`, got .* - at `[$].expires`",
        "'2027-01-01'": "Expected `date`, got .* - at `[$].expires`",
        "2027-02-30": "Invalid date or datetime",
        "12:00:00": "Expected `date`, got `time`",
    },
    "scope": {
        "{ planet = 'x' }": "column names",
        "{ checks_violated = 'interval' }": "column names",
        "{}": "column names",
        "'MaxPool2d*'": "Expected `object`, got `str`",
        "{ operator = 3 }": "Expected `array`, got `int` - at `[$].scope",
        "{ operator = [3] }": "Expected `str`, got `int` - at `[$].scope",
        "{ elements = ['>= 5', '> many'] }": "'> many' is no bound",
        "{ elements = '=> 5' }": "'=> 5' is no bound",
    },
    "checks": {
        "'interval'": "at `[$].checks",
        "[3]": "at `[$].checks",
        "[['interval']]": "at `[$].checks",
        "['interval', 'intervall']": "unknown check 'intervall' .did you mean interval",
    },
    "issue": {"5": "at `[$].issue`"},
    "versions": {
        "'2.*'": "Expected `object`, got `str`",
        "{ a = 2 }": "got `int`",
        "{ a = { b = 1 } }": "got `object`",
    },
    "until": {"1": "unknown entry 'until'"},
    '""': {"1": "unknown entry ''"},
}
"""For each entry values that it cannot have, and entries that there are not, with what is said of them."""


def written(**changes: str) -> str:
    return "[[waiver]]\n" + "".join(f"{name} = {value}\n" for name, value in {**GOOD, **changes}.items())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((written(**{name: value}), said) for name, values in WRONG.items() for value, said in values.items()),
        *((written().replace(f"{name} = ", "issued = ", 1), "unknown entry 'issued'") for name in GOOD),
        *(("[[waiver]]\n" + written().partition(f"{name} =")[0][11:], f"field `{name}`") for name in list(GOOD)[:5]),
        *((text, "must consist of") for text in ("", "waiver = []", "waiver = [1, 2]", "waiver = 5")),
        *((text, "must consist of") for text in ('[waiver]\nid = "a"', written() + "[other]\nx = 1\n")),
        *((text, "is not TOML") for text in ("waiver", '{"waiver": []}', written() + 'id = "again"\n', "\0" * 100)),
        *((text, "is not TOML") for text in ("\ufeff" + written(), "waiver = " + "[" * 5000 + "]" * 5000)),
        *((text, "is not TOML") for text in ("waiver = " + "9" * 6000, '[[waiver]]\nid = "lost\n')),
        ("[" + ".".join("a" * 5000) + "]\nx = 1\n", "must consist of"),
        *((text, "it is no text in UTF-8") for text in (bytes(range(256)), written().encode("utf-16"))),
        (written() * 2, "several waivers called 'lost'"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_wrong_file_is_named_with_its_mistake(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = tmp_path / "known.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(WaiverError, match=message) as error:
        load(path)
    assert "known.toml" in str(error.value)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_file_is_read_or_refused_with_its_name(data: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    good, path = written().encode(), tmp_path_factory.getbasetemp() / "mine.toml"
    begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(good))] * 2)))
    path.write_bytes(good[:begin] + data.draw(st.binary(max_size=4)) + good[end:])
    said = "mine.toml"
    try:
        load(path)
    except WaiverError as error:
        said = str(error)
    assert "mine.toml" in said


def test_the_shipped_waivers_are_in_order_and_survive_being_written() -> None:
    assert sorted(CHECK_IDS) == sorted(ALL_CHECKS)
    found = shipped()
    assert all(waiver.scope["backend"] and waiver.versions for waiver in found)
    recipes = [waiver.scope.get("values", ()) for waiver in found]
    assert all(("negative_infinity" in names) == ("filled(-inf)" in names) for names in recipes)
    assert loads(to_toml(found), "written") == found != []
    hiding = [replace(found[0], reason="right\x9b to left: \u202e and on")]
    assert "right\\u009b to left: \\u202e and on" in to_toml(hiding)
    assert loads(to_toml(hiding), "written") == hiding


@pytest.mark.parametrize(
    ("data", "is_covered"),
    [(["equal values", "inexact sums"], True), (["inexact sums"], False), ([], False), (None, True)],
    ids=["ties may be", "none can be", "nothing special", "too large to be looked at"],
)
def test_a_waiver_of_ties_covers_no_other_wrong_gradient(data: list[str] | None, is_covered: bool) -> None:
    (ties,) = (each for each in shipped() if each.id == "tensorflow-3d-eager-ties")
    row = {"backend": "tensorflow", "operator": "MaxPool3dWithArgmaxBackward", "values": "normal", "data": data}
    assert ties.covers(row, {"tensorflow": "2.21.0"}) is is_covered


# What a run says about each waiver, and how one is written from a failing row.

JUDGED = date(2027, 1, 15)
"""The day of made-up runs."""

Verdicts = dict[tuple[str, ...], list[str]]

CELL = ("MaxPool2dWithIndicesBackward", "float32", "values")
WAIVED: Verdicts = {CELL: ["waived"]}
ENVIRONMENT = {"torch": "2.13.0", "device": "x86_64"}


def record(**changes: Any) -> dict[str, Any]:
    """A waiver of run.json that covers `CELL`."""
    scope = {"backend": "torch-cpu", "operator": CELL[0]}
    base = {"id": "known", "reason": "a reason", "owner": "somebody", "expires": "2027-12-31", "scope": scope}
    return base | changes


@pytest.mark.parametrize(
    ("changes", "verdicts", "state", "cases", "stands_strictly"),
    [
        ({}, WAIVED, "used, wide", 1, True),
        ({"expires": "2027-01-15"}, WAIVED, "used, wide", 1, True),
        ({"expires": "2027-01-14"}, {CELL: ["violates", "crashed"]}, "expired, wide", 2, False),
        ({"scope": {"operator": "Nothing*"}}, {}, "unmatched, wide", 0, False),
        ({"scope": {"operator": CELL[0], "dtype": "float64"}}, {}, "unmatched, wide", 0, False),
        ({}, {}, "no longer needed, wide", 0, False),
        ({"scope": {"data": "equal values"}}, {}, "unmatched", 0, False),
        ({"scope": {"backend": "torch-npu"}}, {}, "elsewhere, wide", 0, True),
        ({"versions": {"torch": "2.12.*"}}, {}, "elsewhere, wide", 0, True),
        # Wide is what names no checks, and is about whole operators or several kinds of failure.
        ({"checks": ["interval"]}, WAIVED, "used", 1, True),
        ({"scope": {"operator": CELL[0], "layouts": "*"}}, WAIVED, "used", 1, True),
        ({"scope": {"layouts": "*"}}, WAIVED | {(OPERATORS[-1], *CELL[1:]): ["waived"]}, "used, wide", 2, True),
    ],
)
def test_states_of_which_a_strict_run_accepts_no_stale_one(
    tmp_path: Path, changes: dict[str, Any], verdicts: Verdicts, state: str, cases: int, stands_strictly: bool
) -> None:
    recipe = Recipe(waivers=[record(**changes)], verdicts=verdicts, record={"strict_waivers": True})
    digest = read_digest(make_run(tmp_path, recipe))
    (review,) = digest.waivers
    assert (review.description, review.cases) == (state, cases)
    assert digest.conclusion.overall is (Overall.CONFORMS if stands_strictly else Overall.VIOLATES)
    assert any("known" in reason for reason in digest.conclusion.reasons) is not stands_strictly


def waiver_of(row: dict[str, Any], **accepted: Any) -> Waiver:
    return waiver_for(row, ENVIRONMENT, **{"reason": "why", "owner": "who", "expires": date(2027, 6, 1)} | accepted)


def test_a_written_waiver_covers_its_row_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "waivers.toml"
    append(waiver_of(ROW), path)
    written = Waivers(load(path), JUDGED)
    assert written.apply(ROW, ENVIRONMENT)["verdict"] == "waived"
    assert written.apply(ROW, {"torch": "2.14.0"})["verdict"] == "violates"
    for change in ({"case_id": "ba98"}, {"backend": "torch-npu"}, {"checks_violated": ["written", "survival"]}):
        assert written.apply(ROW | change, ENVIRONMENT)["verdict"] == "violates"
    literal = waiver_of(ROW, scope=("case", "layouts"))
    assert literal.covers(ROW, ENVIRONMENT)
    assert not literal.covers(ROW | {"case": '{"operator":"x","shape":1}'}, ENVIRONMENT)


def test_a_waiver_of_data_is_of_their_only_word() -> None:
    literal = waiver_of(ROW | {"data": ["ties"]}, scope=("operator", "data"))
    assert literal.scope["data"] == ("ties",) and literal.id.endswith("-data=ties")
    assert literal.covers(ROW | {"data": ["NaN", "ties"]}, ENVIRONMENT)
    assert not literal.covers(ROW | {"data": ["NaN"]}, ENVIRONMENT)
    for words, told in ((["NaN", "ties"], "are NaN, ties: write"), (None, "are not described: write")):
        with pytest.raises(WaiverError, match=told):
            waiver_of(ROW | {"data": words}, scope=("data",))


def test_appending_keeps_what_the_file_says_and_nothing_is_appended_twice(tmp_path: Path) -> None:
    path, issue = tmp_path / "waivers.toml", "https://example.org/7"
    path.write_text("# ours\n" + to_toml([waiver_of(ROW | {"case_id": "a"})]))
    another = waiver_of(ROW | {"case_id": "b"}, issue=issue)
    append(another, path)
    before = path.read_text()
    assert before.startswith("# ours\n")
    assert [(waiver.scope["case_id"], waiver.issue) for waiver in load(path)] == [(("a",), ""), (("b",), issue)]
    with pytest.raises(WaiverError, match="several waivers called"):
        append(another, path)
    assert path.read_text() == before


ACCEPT = ["--reason", "known", "--owner", "somebody", "--expires", "2027-06-30"]


def test_a_waiver_of_many_cases_has_not_the_name_of_one(tmp_path: Path) -> None:
    verdicts = {CELL: ["violates"] * 3, (OPERATORS[0], *CELL[1:]): ["violates"]}
    run = make_run(tmp_path / "run", Recipe(verdicts=verdicts))
    (case_id, *_), target = read_digest(run).failures["case_id"], tmp_path / "ours.toml"
    for scope, covered, name in (
        ((), 1, f"{CELL[0]}-interval-{case_id}"),
        (("operator", "dtype"), 3, f"interval-operator={CELL[0]}-dtype={CELL[1]}"),
    ):
        options = [word for column in scope for word in ("--scope", column)]
        said = poolproof("waive", run, case_id, *ACCEPT, *options, "-o", target).output
        assert f"now waives interval on torch-cpu; of this kind are {covered} of 4 failures in {run}:" in said
        assert load(target)[-1].id == name
    right = next(row["case_id"] for row in read_rows(run).to_pylist() if row["verdict"] == "conforms")
    assert "does not fail: it is conforms on torch-cpu" in poolproof("waive", run, right, *ACCEPT).output


def test_the_command_wants_a_backend_where_several_fail(tmp_path: Path) -> None:
    backends = {"torch-cpu": "", "torch-npu": "A2"}
    run = make_run(tmp_path / "run", Recipe(backends=backends, verdicts={CELL: ["violates", "conforms"]}))
    asked = ["waive", run, read_digest(run).failures["case_id"].iloc[0], *ACCEPT, "-o", tmp_path / "w.toml"]
    result = poolproof(*asked)
    assert result.exit_code == Overall.COULD_NOT_RUN
    assert "choose one of torch-cpu, torch-npu" in result.output
    assert poolproof(*asked, "--backend", "torch-npu").exit_code == 0
