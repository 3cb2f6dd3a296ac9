"""JUnit XML and the annotations of the CI services: one entry per thing that somebody has to look at."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from forging import rewrite
from poolproof.reports.ci import services as ci
from poolproof.reports.ci.junit import write_junit
from poolproof.reports.figures.digest import Digest, read_digest
from poolproof.reports.figures.tables import HAS_FAILED, load, records
from poolproof.reports.pages.run import write_run_summary
from poolproof.reports.rows.failures import failure_text
from reports_made_up import OPERATORS, Recipe, made_up_record, make_run

CELL = ("MaxPool2dWithIndicesBackward", "float32", "values")
GAP = ("MaxPool2dWithIndicesBackward", "float32", "layouts")


@pytest.fixture
def digest(tmp_path: Path) -> Digest:
    return read_digest(make_run(tmp_path, Recipe(verdicts={CELL: ["violates", "violates"], GAP: ["not run"]})))


def test_one_test_case_per_aspect(digest: Digest, tmp_path: Path) -> None:
    root = ElementTree.parse(write_junit(digest, tmp_path / "junit.xml")).getroot()
    totals = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert totals == {"tests": "18", "failures": "1", "errors": "1", "skipped": "0"}
    failed = root.find(".//testcase/failure/..")
    assert failed is not None
    assert failed.attrib == {"classname": f"torch-cpu.{CELL[0]}", "name": "float32 values"}
    assert failed[0].get("message") == "2 cases of 4 deviate"
    assert "poolproof replay --backend torch-cpu" in (failed[0].text or "")
    error = root.find(".//testcase/error")
    assert error is not None
    assert error.get("message") == "1 of 4 planned cases were not judged: no device is free"
    fewer = Recipe(operators=OPERATORS[:-1], record={"mandatory": made_up_record(Recipe())["mandatory"]})
    without = read_digest(make_run(tmp_path / "fewer", fewer))
    root = ElementTree.parse(write_junit(without, tmp_path / "junit.xml")).getroot()
    assert root.get("tests") == "18"
    messages = {error.get("message") for error in root.iter("error")}
    assert messages == {"4 of 4 planned cases were not judged: never asked"}


def test_every_test_case_opens_with_its_own_failure(tmp_path: Path) -> None:
    """Three of one operator fail alike, and so does another's."""
    cells = [CELL, GAP, (CELL[0], "float16", "values"), (OPERATORS[0], "float32", "precision")]
    digest = read_digest(make_run(tmp_path, Recipe(verdicts={cell: ["violates"] for cell in cells})))
    failed = {row["case_id"]: row for row in records(load(tmp_path, where=HAS_FAILED))}
    root = ElementTree.parse(write_junit(digest, tmp_path / "junit.xml")).getroot()
    told = [(case, failure.text or "") for case in root.iter("testcase") for failure in case.iter("failure")]
    assert len(told) == len(failed) == len(cells)
    for case, text in told:
        row = failed[text[text.index("case ") + 5 :][:12]]
        assert text == failure_text(row)
        assert case.get("classname") == f"torch-cpu.{row['operator']}"
        assert case.get("name") == f"{row['dtype']} {row['aspect']}"


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("\x1b[31mdied\x00 <&>", "\\x1b[31mdied\\x00 <&>"),
        ("]]><failure/>", "]]><failure/>"),
        ("\ufffe\uffff \U0001f600", "?? \U0001f600"),
        ("a\x85b\x0bc", "a\\x85b\\x0bc"),
    ],
)
def test_whatever_a_library_says_the_xml_is_well_formed(tmp_path: Path, reason: str, told: str) -> None:
    make_run(tmp_path, Recipe(verdicts={CELL: ["crashed"]}, record={"host": {"cpu": f"{reason}\ud800"}}))
    rewrite(tmp_path, lambda rows: [row | {"reason": reason} for row in rows])
    root = ElementTree.parse(write_junit(read_digest(tmp_path), tmp_path / "junit.xml")).getroot()
    text = root.findtext(".//failure")
    assert text is not None
    assert told in text
    assert f"{told}\\ud800" in {entry.get("value") for entry in root.iter("property")}


def test_github_gets_annotations_and_a_summary(digest: Digest, tmp_path: Path) -> None:
    write_run_summary(digest, digest.folder / "summary.md")
    lines: list[str] = []
    environment = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "step.md")}
    ci.annotate(digest, "auto", environment, lines.append)
    assert [line.split(" ")[0] for line in lines] == ["::error", "::warning"]
    assert all("\n" not in line for line in lines)
    assert "title=MaxPool2dWithIndicesBackward float32 on torch-cpu%3A interval (2 cases)" in lines[0]
    assert "%0Apoolproof replay" in lines[0]
    summary = (tmp_path / "step.md").read_text()
    assert "❌ poolproof: violates" in summary
    assert "- not judged: 1 of 72 planned cases, in 1 group" in summary
    missing = [line.split("|")[-2].strip() for line in summary.splitlines() if line.startswith("| torch-cpu | ")]
    assert sorted(missing)[:1] == ["**1**"] and set(missing[1:]) | set(missing[:1]) == {"**1**", "0"}


def test_gitlab_gets_a_code_quality_report_and_outside_of_ci_nothing_is_said(digest: Digest) -> None:
    report = digest.folder / ci.GITLAB_FILE
    ci.annotate(digest, "auto", {}, pytest.fail)
    assert not report.exists()
    ci.annotate(digest, "auto", {"GITLAB_CI": "true"}, lambda line: None)
    issues = json.loads(report.read_text())
    assert [issue["severity"] for issue in issues] == ["major", "minor"]
    assert len({issue["fingerprint"] for issue in issues}) == 2
    assert issues[0]["location"]["path"] == f"torch-cpu/{CELL[0]}/float32/values"
