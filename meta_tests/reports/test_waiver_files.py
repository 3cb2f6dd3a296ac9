"""Waivers: when one covers, what a run says about each, and how one is written from a failing row."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from poolproof.reports.figures.digest import read_digest
from poolproof.reports.figures.tables import failing_row
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import Overall
from poolproof.reports.waivers import Waiver, WaiverError, Waivers, load, loads, shipped
from poolproof.reports.waivers.review import State
from poolproof.reports.waivers.writing import Approval, append, to_toml, waiver_for
from poolproof.suites.cli import main
from reports_made_up import Recipe, make_run

CELL = ("MaxPool2dWithIndicesBackward", "float32", "values")
TODAY = date(2027, 1, 15)
ENVIRONMENT = {"torch": "2.13.0", "device": "x86_64"}


def record(**changes: Any) -> dict[str, Any]:
    """A waiver of run.json that covers `CELL`."""
    scope = {"backend": "torch-cpu", "operator": CELL[0]}
    base = {"id": "known", "reason": "a reason", "owner": "somebody", "expires": "2027-12-31", "scope": scope}
    return base | changes


def state(folder: Path, waiver: dict[str, Any], verdict: str) -> State:
    digest = read_digest(make_run(folder, Recipe(waivers=[waiver], verdicts={CELL: [verdict]})))
    return digest.waivers[0].state


@pytest.mark.parametrize(
    ("changes", "verdict", "expected"),
    [
        ({}, "waived", State.USED),
        ({"expires": "2027-01-14"}, "violates", State.EXPIRED),
        ({"expires": "2027-01-15"}, "waived", State.USED),
        ({"scope": {"operator": "Nothing*"}}, "conforms", State.UNMATCHED),
        ({"scope": {"operator": CELL[0], "dtype": "float64"}}, "conforms", State.UNMATCHED),
        ({}, "conforms", State.NOT_NEEDED),
        ({"scope": {"backend": "torch-npu"}}, "conforms", State.ELSEWHERE),
        ({"versions": {"torch": "2.12.*"}}, "conforms", State.ELSEWHERE),
    ],
)
def test_states(tmp_path: Path, changes: dict[str, Any], verdict: str, expected: State) -> None:
    assert state(tmp_path, record(**changes), verdict) is expected


@pytest.mark.parametrize(
    ("changes", "verdict", "overall"),
    [
        ({}, "waived", Overall.CONFORMS),
        ({}, "conforms", Overall.VIOLATES),
        ({"scope": {"operator": "Nothing"}}, "conforms", Overall.VIOLATES),
        ({"expires": "2027-01-14"}, "conforms", Overall.VIOLATES),
        ({"scope": {"backend": "torch-npu"}}, "conforms", Overall.CONFORMS),
    ],
)
def test_a_strict_run_accepts_no_stale_waiver(
    tmp_path: Path, changes: dict[str, Any], verdict: str, overall: Overall
) -> None:
    recipe = Recipe(waivers=[record(**changes)], verdicts={CELL: [verdict]}, record={"strict_waivers": True})
    conclusion = read_digest(make_run(tmp_path, recipe)).conclusion
    assert conclusion.overall is overall
    assert any("known" in reason for reason in conclusion.reasons) == (overall is Overall.VIOLATES)


def test_an_expired_waiver_counts_what_it_no_longer_covers(tmp_path: Path) -> None:
    recipe = Recipe(waivers=[record(expires="2026-01-01")], verdicts={CELL: ["violates", "crashed"]})
    assert read_digest(make_run(tmp_path, recipe)).waivers[0].cases == 2


@pytest.mark.parametrize(
    ("changes", "is_wide"),
    [
        ({}, True),
        ({"checks": ["interval"]}, False),
        ({"scope": {"operator": CELL[0], "layouts": "*"}}, False),
        ({"scope": {"layouts": "*"}}, True),
    ],
)
def test_a_waiver_without_checks_for_whole_operators_or_several_kinds_is_wide(
    tmp_path: Path, changes: dict[str, Any], is_wide: bool
) -> None:
    others = (
        {("MaxPool3dWithArgmaxBackward", *CELL[1:]): ["waived"]}
        if "operator" not in changes.get("scope", "operator")
        else {}
    )
    recipe = Recipe(waivers=[record(**changes)], verdicts={CELL: ["waived"], **others})
    review = read_digest(make_run(tmp_path, recipe)).waivers[0]
    assert review.is_wide is is_wide
    assert ("wide" in review.description) is is_wide


def made_row(**changes: Any) -> dict[str, Any]:
    row = {"backend": "torch-cpu", "operator": CELL[0], "dtype": "float32", "case_id": "0123456789ab"}
    row |= {"case": '{"operator":"x","shape":[1,2]}', "layouts": "self:sliced"}
    return row | {"verdict": "violates", "checks_violated": ["interval", "repeat"]} | changes


def accepted(**changes: Any) -> Approval:
    return Approval(**({"reason": "why", "owner": "who", "expires": date(2027, 6, 1)} | changes))


def test_a_written_waiver_covers_its_row_and_no_other(tmp_path: Path) -> None:
    row = made_row()
    path = tmp_path / "waivers.toml"
    append(waiver_for(row, ENVIRONMENT, accepted()), path)
    waivers = Waivers(load(path), TODAY)
    assert waivers.apply(row, ENVIRONMENT)["verdict"] == "waived"
    for other in (
        made_row(case_id="ba9876543210"),
        made_row(backend="torch-npu"),
        made_row(checks_violated=["interval", "survival"]),
    ):
        assert waivers.apply(other, ENVIRONMENT)["verdict"] == "violates"
    assert waivers.apply(row, {"torch": "2.14.0"})["verdict"] == "violates"


def test_a_pattern_of_a_written_waiver_matches_literally(tmp_path: Path) -> None:
    row = made_row()
    waiver = waiver_for(row, ENVIRONMENT, accepted(scope=("case", "layouts")))
    assert waiver.covers(row, ENVIRONMENT)
    assert not waiver.covers(made_row(case='{"operator":"x","shape":1}'), ENVIRONMENT)


def test_appending_keeps_what_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "waivers.toml"
    path.write_text("# ours\n" + to_toml([waiver_for(made_row(case_id="a"), ENVIRONMENT, accepted())]))
    append(waiver_for(made_row(case_id="b"), ENVIRONMENT, accepted(issue="https://example.org/7")), path)
    assert path.read_text().startswith("# ours\n")
    assert [waiver.scope["case_id"] for waiver in load(path)] == [("a",), ("b",)]
    assert load(path)[1].issue == "https://example.org/7"


def test_appending_the_same_twice_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "waivers.toml"
    waiver = waiver_for(made_row(), ENVIRONMENT, accepted())
    append(waiver, path)
    before = path.read_text()
    with pytest.raises(WaiverError, match="several waivers called"):
        append(waiver, path)
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("owner = ''", "at `[$].owner`"),
        ("expires = 2027-01-01T00:00:00", "Expected `date`, got .* - at `[$].expires`"),
        ("expires = '2027-01-01'", "Expected `date`, got .* - at `[$].expires`"),
        ("scope = { colour = 'red' }", "column names"),
        ("scope = { checks_violated = 'interval' }", "column names"),
        ("scope = {}", "column names"),
        ("until = 1", "unknown entry 'until'"),
    ],
)
def test_mistakes_are_named(line: str, complaint: str) -> None:
    entries = {"id": "'a'", "reason": "'r'", "owner": "'o'", "expires": "2027-01-01", "scope": "{ dtype = 'x' }"}
    name, _, value = line.partition(" = ")
    text = "[[waiver]]\n" + "\n".join(f"{key} = {entry}" for key, entry in (entries | {name: value}).items())
    with pytest.raises(WaiverError, match=complaint):
        loads(text, "a file")


def test_the_shipped_waivers_survive_being_written() -> None:
    for path in shipped():
        waivers: list[Waiver] = load(path)
        assert loads(to_toml(waivers), "written") == waivers


ACCEPT = ["--reason", "known", "--owner", "somebody", "--expires", "2027-06-30"]


def waive(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["waive", *arguments])


def test_the_command_waives_a_failing_case(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Recipe(verdicts={CELL: ["violates"]}))
    (case_id,) = read_digest(run).failures["case_id"]
    target = tmp_path / "ours.toml"
    result = waive(str(run), case_id, *ACCEPT, "-o", str(target))
    assert result.exit_code == 0, result.output
    row = failing_row(run, case_id)
    assert Waivers(load(target), TODAY).apply(row, ENVIRONMENT)["verdict"] == "waived"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["000000000000", *ACCEPT], "has no case 000000000000"),
        (["000000000000", "--reason", "x", "--owner", "y", "--expires", "soon"], "does not match the format"),
        (["000000000000", "--reason", "x", "--owner", "y"], "--expires"),
    ],
)
def test_the_command_refuses_with_one_sentence(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    result = waive(str(make_run(tmp_path)), *arguments)
    assert result.exit_code == Overall.COULD_NOT_RUN
    assert complaint in result.output


def test_the_command_wants_a_backend_where_several_fail(tmp_path: Path) -> None:
    backends = {"torch-cpu": "", "torch-npu": "A2"}
    run = make_run(tmp_path / "run", Recipe(backends=backends, verdicts={CELL: ["violates", "conforms"]}))
    case_id = read_digest(run).failures["case_id"].iloc[0]
    result = waive(str(run), case_id, *ACCEPT, "-o", str(tmp_path / "w.toml"))
    assert result.exit_code == Overall.COULD_NOT_RUN
    assert "choose one of torch-cpu, torch-npu" in result.output
    assert waive(str(run), case_id, *ACCEPT, "--backend", "torch-npu", "-o", str(tmp_path / "w.toml")).exit_code == 0


def test_a_case_that_conforms_cannot_be_waived(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    case_id = read_rows(run, ["case_id"])["case_id"][0].as_py()
    assert "does not fail: it is conforms on torch-cpu" in waive(str(run), case_id, *ACCEPT).output
