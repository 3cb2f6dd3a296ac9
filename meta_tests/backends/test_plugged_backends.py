"""What a run says of backends that refuse, die, raise or are killed: verdict, exit status and sentence of each."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from holding import holding
from plugged_backends import GivesNoOutcome, LosesItsDevice, NamesAStranger, StatusIsText
from poolproof.backends.base import Backend
from poolproof.reports.figures import tables
from poolproof.reports.rows.verdicts import Overall, Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.isolation.sandbox import Sandbox
from poolproof.suites.judging.case_question import CaseQuestion
from sessions import Ended, run_session

OPERATOR = "MaxPool2dWithIndicesBackward"
ASKED = ["--operator", OPERATOR, "--dtype", "float32", "--aspect", "values", "--no-shrink"]


def session(folder: Path, backend: str, cases: int = 12, *options: str) -> Ended:
    return run_session(folder, f"plugged_backends:{backend}", *options, "--cases", str(cases), asked=ASKED)


def verdicts(ended: Ended) -> set[str]:
    rows = tables.load(ended.folder, ["verdict", "aspect"])
    return set(rows["verdict"][rows["aspect"] != ""])


def test_who_refuses_everything_does_not_conform(tmp_path: Path) -> None:
    ended = session(tmp_path / "run", "RefusesEverything")
    assert ended.status == Overall.INCOMPLETE
    assert verdicts(ended) == {Verdict.UNDOCUMENTED}
    said = (
        "INCOMPLETE (exit status 2): refused, though no document of the implementation is known that allows it: "
        f"24 of 24 planned cases; never run, only refused: every call of {OPERATOR} (float32)"
    )
    assert said in ended.output
    assert "refused, and no document is known that says so: not today" in ended.output
    assert "24 refused undocumented" in ended.page
    suite = ElementTree.parse(ended.folder / "junit.xml").getroot()
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")
    told = {line.get("name"): line.get("value") for line in suite.iterfind(".//testcase/properties/property")}
    assert told == {"refused as documented": "0", "refused undocumented": "24"}


def test_who_refuses_all_padding_has_a_gap(tmp_path: Path) -> None:
    ended = session(tmp_path / "run", "RefusesPadding", 40)
    assert ended.status == Overall.INCOMPLETE
    assert verdicts(ended) == {Verdict.CONFORMS, Verdict.UNDOCUMENTED}
    rows = tables.load(ended.folder, ["verdict", "padded"]).dropna()
    assert set(rows["verdict"][rows["padded"].astype(bool)]) == {Verdict.UNDOCUMENTED}
    refused = int(rows["padded"].astype(bool).sum())
    said = f"allows it: {refused} of 80 planned cases; never run, only refused: padding of {OPERATOR} (float32)"
    assert said in ended.output
    assert said in (ended.folder / "summary.md").read_text()


def test_who_dies_of_everything_violates(tmp_path: Path) -> None:
    ended = session(tmp_path / "run", "CrashesAlways", 3)
    assert ended.status == Overall.VIOLATES
    assert verdicts(ended) == {Verdict.CRASHED}
    said = "deviating and not waived: 6 of 6 judged cases, 6 of them by a crash or a time-out"
    assert f"VIOLATES (exit status 1): {said}" in ended.output
    assert "the call ended by signal SIGABRT" in ended.output


@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        ("RaisesAlways", "the adapter raised ValueError: no stream (plugged_backends.py, line "),
        ("GivesNoOutcome", "the adapter returned None from run, not an Outcome"),
    ],
)
def test_whose_adapter_is_at_fault_is_not_accused(tmp_path: Path, backend: str, reason: str) -> None:
    ended = session(tmp_path / "run", backend, 3)
    assert ended.status == Overall.INCOMPLETE
    assert verdicts(ended) == {Verdict.ADAPTER_ERROR}
    said = "an adapter raised an exception or gave no outcome, which says nothing about the implementation: in 6 cases"
    assert f"INCOMPLETE (exit status 2): {said}" in ended.output
    assert reason in ended.output


def test_whose_process_is_killed_once_conforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILLED_ONCE", str(tmp_path / "killed"))
    ended = session(tmp_path / "run", "killed_once")
    assert (tmp_path / "killed").exists()
    assert ended.status == Overall.CONFORMS
    assert verdicts(ended) == {Verdict.CONFORMS}
    assert "CONFORMS (exit status 0): 24 of 24 planned cases judged, none deviates" in ended.output


def judged(backend: type[Backend], scratch: Path) -> tuple[str, str]:
    case = Case.of(operator=OPERATOR, shape=(1, 1, 4, 4), kernel_size=(2,))
    sandbox = Sandbox(f"plugged_backends:{backend.__name__}", scratch, "sandbox", 20.0)
    try:
        row = sandbox.judge_alone(CaseQuestion(case, holding("interval")))
    finally:
        sandbox.close()
    return row["verdict"], row["reason"]


@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        (GivesNoOutcome, "the adapter returned None from run, not an Outcome"),
        (StatusIsText, "the adapter returned an Outcome whose status is 'ok', not a Status"),
        (NamesAStranger, "the adapter returned an Outcome about 'gradient', which is no output of the call"),
    ],
)
@pytest.mark.usefixtures("forked_sandboxes")
def test_an_outcome_that_is_none_is_the_adapters(tmp_path: Path, backend: type[Backend], reason: str) -> None:
    assert judged(backend, tmp_path) == (Verdict.ADAPTER_ERROR, reason)


@pytest.mark.usefixtures("forked_sandboxes")
def test_a_device_that_is_lost_is_no_refusal(tmp_path: Path) -> None:
    assert judged(LosesItsDevice, tmp_path)[0] == Verdict.VIOLATES
