"""Annotations of the CI services: one entry per thing that somebody has to look at."""

import json
from pathlib import Path

import pytest

from poolproof.reports.ci import services as ci
from poolproof.reports.figures.digest import Digest, read_digest
from poolproof.reports.pages.run import write_run_summary
from reports_made_up import Recipe, make_run

CELL = ("MaxPool2dWithIndicesBackward", "float32", "values")
GAP = ("MaxPool2dWithIndicesBackward", "float32", "layouts")


@pytest.fixture
def digest(tmp_path: Path) -> Digest:
    return read_digest(make_run(tmp_path, Recipe(verdicts={CELL: ["violates", "violates"], GAP: ["not run"]})))


def test_github_gets_annotations_and_a_summary(digest: Digest, tmp_path: Path) -> None:
    write_run_summary(digest, digest.folder / "summary.md")
    lines: list[str] = []
    environment = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "step.md")}
    ci.annotate(digest, "auto", environment, lines.append)
    assert [line.split(" ")[0] for line in lines] == ["::error", "::warning"]
    assert all("\n" not in line for line in lines)
    place = "MaxPool2dWithIndicesBackward%2C float32%2C aspect values"
    assert f"title=torch-cpu%3A {place}%3A 2 cases fail (check interval)." in lines[0]
    assert "%0Apoolproof replay" in lines[0]
    summary = (tmp_path / "step.md").read_text()
    assert "❌ poolproof: violates" in summary
    assert "- not judged: 1 of 72 planned cases, in 1 group" in summary
    missing = [line.split("|")[-2].strip() for line in summary.splitlines() if line.startswith("| torch-cpu | ")]
    assert sorted(missing)[:1] == ["**1**"] and set(missing[1:]) | set(missing[:1]) == {"**1**", "0"}


@pytest.mark.parametrize(("is_strict", "level"), [(False, "notice"), (True, "warning")])
def test_waivers_that_match_no_case_are_one_remark(tmp_path: Path, is_strict: bool, level: str) -> None:
    """GitHub shows ten remarks of a level and step."""
    texts = {"reason": "known", "owner": "somebody", "expires": "2027-12-31"}
    scope = {"backend": "torch-cpu", "dtype": "float64"}
    elsewhere = [{"id": f"w{number}", "scope": scope, **texts} for number in range(12)]
    run = make_run(tmp_path, Recipe(waivers=elsewhere, record={"strict_waivers": is_strict}))
    remarks = ci.remarks_about(read_digest(run))
    assert [(remark.level, remark.title) for remark in remarks] == [(level, "12 waivers unmatched")]
    (line,) = ci.github_lines(remarks)
    assert line.startswith(f"::{level} title=12 waivers unmatched::w0, w1, ")
    assert json.loads(ci.gitlab_report(remarks))[0]["severity"] == ("minor" if is_strict else "info")


def test_gitlab_gets_a_code_quality_report_and_outside_of_ci_nothing_is_said(digest: Digest) -> None:
    report = digest.folder / ci.GITLAB_FILE
    ci.annotate(digest, "auto", {}, pytest.fail)
    assert not report.exists()
    ci.annotate(digest, "auto", {"GITLAB_CI": "true"}, lambda line: None)
    issues = json.loads(report.read_text())
    assert [issue["severity"] for issue in issues] == ["major", "minor"]
    assert len({issue["fingerprint"] for issue in issues}) == 2
    assert issues[0]["location"]["path"] == f"torch-cpu/suspects/{CELL[0]}/float32/interval"
