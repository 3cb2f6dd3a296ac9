"""Every consumer of runs, fed with real failing runs of every kind: bundle, verification, rerun, history, dashboard,
comparison, annotations and waivers."""

import json
import re
import shutil
from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path

import pytest

from poolproof.reports.ci import services as ci
from poolproof.reports.figures.comparison import compare
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.history.dashboard import write_dashboard
from poolproof.reports.history.entries import add, query, read_entries
from poolproof.reports.pages.plane import MAX_PLANES, picture
from poolproof.reports.rows.evidence import evidence_path, program_lines, read_evidence
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import read_rows, read_run
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import FAILED, Overall, Verdict
from poolproof.reports.waivers import Waivers, load
from reports_browser import broken_links
from sessions import poolproof, replay_pasted
from shared_runs import FAILING, SEEDED, RealRun, RunOf, honest, variables

RACING = ("streams",)
"""Kinds of failures that two threads decide: judged again, another case may show them."""

TODAY = date.today()


def each_of(runs: Iterable[RealRun], share: int = 1) -> pytest.MarkDecorator:
    """Parametrize by runs, not thorough every ``share``-th; one that hangs takes as long as the others together."""
    marks = (pytest.mark.thorough,)
    numbered = enumerate(runs)
    marked = [
        pytest.param(real, marks=marks * (number % share > 0 or real.kind == "hang")) for number, real in numbered
    ]
    return pytest.mark.parametrize("real", marked, ids=lambda real: real.name)


every_kind = each_of(FAILING)
COMPARED = ("value", "forward", "contract", "phases", "crash", "hang")
"""Of kinds of failures whose rows differ in the names of checks alone, one: of cases in both directions, of calls, of
phases, and of a process by each verdict. Each of the others would cost a session of the honest library, too."""


def failed_rows(run: Path) -> list[Row]:
    return [row for row in read_rows(run).to_pylist() if row["verdict"] in FAILED]


@every_kind
def test_the_defect_shows_and_its_bundle_stands(real: RealRun, run_of: RunOf) -> None:
    assert real.violated in {check for row in failed_rows(run_of(real)) for check in row["checks_violated"]}
    bundle = run_of(real).with_name("bundle.zip")
    checked = poolproof("verify", bundle, "--fingerprint", bundle.with_name("sha256").read_text(encoding="utf-8"))
    assert checked.exit_code == 0, checked.output
    assert "STANDS (exit status 0): the run in it violates" in checked.output


@pytest.mark.usefixtures("forked_sandboxes")
@each_of((real for real in SEEDED if real.kind not in RACING), share=3)
def test_a_rerun_agrees_with_the_defect_alone(real: RealRun, run_of: RunOf, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, failed = run_of(real).with_name("bundle.zip"), len(failed_rows(run_of(real)))
    without = poolproof("rerun", bundle, "--sample", 10_000)
    assert without.exit_code == Overall.VIOLATES, without.output
    assert f"{failed} with another verdict" in without.output
    assert re.search(r"other variables than .* given POOLPROOF_EMULATOR_DEFECTS=.*, and here nothing\n", without.output)
    first = poolproof("rerun", bundle, "--sample", 1, "--failing", "--blind", 0)
    assert "1 with another verdict" in first.output and "DISAGREES, WITH OTHER VARIABLES" in first.output
    assert without.output.count("poolproof replay --backend") >= failed, "what fails on one side alone has its line"
    for name, value in variables(real).items():
        monkeypatch.setenv(name, value)
    same = poolproof("rerun", bundle, "--sample", 10_000, "--timeout", 2 if real.kind == "hang" else 60)
    assert same.exit_code == 0, same.output
    assert "0 with another verdict" in same.output and "was given" not in same.output


@pytest.mark.parametrize("backend", ["scatter_backends:honest", "emulator-a3"])
def test_a_call_of_another_contract_is_not_supported(backend: str, run_of: RunOf) -> None:
    (contract,) = (real for real in FAILING if real.kind == "contract")
    again = poolproof("rerun", run_of(contract).with_name("bundle.zip"), "--sample", 20, "--backend", backend)
    assert again.exit_code == Overall.INCOMPLETE, again.output
    assert "NOTHING WAS JUDGED, WITH ANOTHER BACKEND" in again.output
    assert "0 of 20 cases judged again, 0 with another verdict, 0 with other bits, 20 not supported (" in again.output


@every_kind
def test_what_the_services_of_ci_are_told(real: RealRun, run_of: RunOf, tmp_path: Path) -> None:
    digest = read_digest(run_of(real))
    said: list[str] = []
    ci.annotate(digest, "github", {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}, said.append)
    errors = [line for line in said if line.startswith("::error title=")]
    assert len(errors) == len(digest.clusters) >= 1
    assert all("\n" not in line and "poolproof replay" in line for line in errors)
    assert "violates" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    issues = json.loads(ci.gitlab_report(ci.remarks_about(digest)))
    assert len({issue["fingerprint"] for issue in issues}) == len(issues) >= len(errors)


@pytest.mark.parametrize("real", [FAILING[0], FAILING[5]], ids=lambda real: real.name)
def test_the_commands_beside_evidence_run_as_they_are_printed(real: RealRun, run_of: RunOf) -> None:
    """The emulator is no library of an installation, and deviates by a variable."""
    run = run_of(real)
    left = next((run / "evidence").glob("*.npz"))
    for line in program_lines(run, left.stem.rpartition("-")[2], real.backend):
        ended = replay_pasted(line, run)
        said = ended.stdout + ended.stderr
        assert "not admissible" in said or "may not write" in said, said
        assert ended.returncode in ((1, 2) if "rejudge" in line else (1,)), said


@pytest.mark.skipif(not shutil.which("gdb"), reason="without gdb there is no stack")
@each_of(real for real in FAILING if real.violated == "survival")
def test_a_crash_and_a_hang_have_a_stack(real: RealRun, run_of: RunOf) -> None:
    run = run_of(real)
    left = next((run / "evidence").glob("*.npz"))
    _, line, _ = program_lines(run, left.stem.rpartition("-")[2], real.backend)
    ended = replay_pasted(line.replace("INT 60", "INT 6"), run)
    assert re.search(r"#\d+ .*emulator::run_plan", ended.stdout), ended.stdout + ended.stderr


def test_memory_that_was_written_is_drawn_and_counted(run_of: RunOf) -> None:
    run = run_of(FAILING[5])
    rows = [row for row in failed_rows(run) if row["checks_violated"] == ["memory_untouched"]]
    assert rows
    for row in rows:
        evidence = read_evidence(evidence_path(run, row["case_id"], row["backend"]))
        drawn, written = picture(evidence), evidence.arrays["written"]
        outside = int((written == 2).sum())
        assert f"; {outside} of {len(written)} bytes are wrong" in row["reason"]
        assert drawn and f"Red in the memory of grad_input: {count_of(outside, 'byte')} written" in drawn.caption
        title, memory = drawn.drawings[-1]
        assert title == "memory of grad_input" and "written outside</title>" in memory
        assert memory.count("<rect") <= MAX_PLANES


@every_kind
def test_a_waiver_covers_the_case_that_it_was_made_of(real: RealRun, run_of: RunOf, tmp_path: Path) -> None:
    run, target = run_of(real), tmp_path / "waivers.toml"
    rows = failed_rows(run)
    accepted = ("--reason", "known", "--owner", "somebody", "--expires", TODAY + timedelta(days=30), "-o", target)
    made = poolproof("waive", run, rows[0]["case_id"], *accepted)
    assert made.exit_code == 0, made.output
    environment = read_run(run)["backends"][real.backend]
    judged = [Waivers(load(target), TODAY).apply(row, environment) for row in rows]
    waived = {row["case_id"] for row in judged if row["verdict"] == Verdict.WAIVED}
    assert waived == {rows[0]["case_id"]}


@each_of(real for real in SEEDED if real.kind in COMPARED)
def test_a_comparison_tells_the_defect_from_the_honest_library(real: RealRun, run_of: RunOf) -> None:
    right, wrong = run_of(honest(real)), run_of(real)
    worse, better, same = compare(right, wrong), compare(wrong, right), compare(wrong, wrong)
    lines = worse.newly_failing.to_dict("records")
    assert real.violated in {check for line in lines for check in line["violated"].split(", ")}
    assert (worse.overall, better.overall, same.overall) == (Overall.VIOLATES, Overall.CONFORMS, Overall.CONFORMS)
    assert better.fixed["cases"].sum() == sum(line["cases"] for line in lines) == len(failed_rows(wrong))


@pytest.mark.parametrize("real", FAILING[::5], ids=lambda real: real.name)
def test_a_history_counts_what_failed_and_a_dashboard_leads_to_it(real: RealRun, run_of: RunOf, tmp_path: Path) -> None:
    """Of a history of one run: in a longer one the newest run of a square hides those before it."""
    pytest.importorskip("duckdb")
    run, site = run_of(real), tmp_path / "site"
    add(tmp_path / "history", run)
    entries = read_entries(tmp_path / "history")
    assert query(entries, "SELECT violates FROM runs").violates.tolist() == [len(failed_rows(run))]
    write_dashboard(entries, site)
    assert not broken_links(site)
    cases = [page.read_text(encoding="utf-8") for page in (site / "cases").glob("*.html")]
    assert len(cases) == len(read_digest(run).failures)
    assert all("poolproof replay --backend" in text for text in cases)
