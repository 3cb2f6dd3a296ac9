"""Terminal, summary and annotations begin with the same suspects, and shorten what those explain."""

from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from poolproof.reports.ci import services as ci
from poolproof.reports.clusters import cluster_failures, describe, headline
from poolproof.reports.figures.digest import Digest, read_digest
from poolproof.reports.figures.tables import HAS_FAILED, load
from poolproof.reports.pages.run import write_run_page, write_run_summary
from poolproof.reports.rows.failures import replay_line
from poolproof.reports.rows.schema import COLUMNS
from poolproof.reports.rows.store import read_rows
from reports_made_up import ASPECTS, OPERATORS, Recipe, make_run, shown

HALF = {(operator, "float16", aspect): ["violates"] * 4 for operator in OPERATORS for aspect in ASPECTS}
ALONE = {(OPERATORS[0], "float32", "values"): ["crashed"]}
SENTENCE = (
    "Fails when dtype = float16: 36 of 36 cases (check interval). 35 cases with dtype != float16 pass. "
    "One other case fails, too."
)


@pytest.fixture
def digest(tmp_path: Path) -> Digest:
    """Whatever is half precision fails, and a case that is not crashes."""
    return read_digest(make_run(tmp_path / "run", Recipe(verdicts=HALF | ALONE)))


def test_a_digest_knows_the_suspects_with_the_whole_row_of_the_smallest(digest: Digest) -> None:
    claimed, alone = digest.clusters
    assert describe(claimed) == SENTENCE
    assert (alone.has_condition, alone.counts.failing) == (False, 1)
    assert headline(digest.clusters) == SENTENCE
    unsaid = replace(claimed, counts=replace(claimed.counts, others=0))
    assert headline([unsaid, alone]) == f"{describe(unsaid)} One other case fails in another way."
    assert set(claimed.smallest) == {column.name for column in COLUMNS}
    failing = load(digest.folder, where=HAS_FAILED)["case_id"]
    assert sorted([*claimed.cases, *alone.cases]) == sorted(failing)
    found = cluster_failures(read_rows(digest.folder).to_pylist())
    assert [describe(suspect) for suspect in found] == [describe(claimed), describe(alone)]


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_begins_with_them(digest: Digest, width: int) -> None:
    lines = shown(digest, width).splitlines()
    assert lines[1].startswith(" 1 Fails when dtype = float16: 36 of 36 cases (check interval).")
    above = lines[: lines.index(f"   {replay_line(digest.root_causes[0].smallest)}")]
    assert max(map(len, above)) <= width
    assert lines[-1].startswith("VIOLATES (exit status 1): 37 of 72 judged cases fail, 1 of them by a crash")
    assert sum("Fails when" in line for line in lines) == 1


def test_a_run_that_violates_is_short_and_its_conclusion_is_the_last_line(digest: Digest) -> None:
    *lines, last = shown(digest, 120, remarks=["page: index.html"], whole=False).splitlines()
    assert len(lines) < 25 and "page: index.html" in lines
    assert last.startswith("VIOLATES (exit status 1): ")
    assert sum("poolproof replay" in line for line in lines) == 2, "of the thing that is wrong, and of what it leaves"


def test_what_a_suspect_explains_is_a_line_of_each_kind(digest: Digest) -> None:
    lines = shown(digest, 120).splitlines()
    assert sum("poolproof replay" in line for line in lines) == 2
    kinds = [" ".join(line.split()[:-1]) for line in lines]
    assert all(f"12 torch-cpu {operator} interval" in kinds for operator in OPERATORS)


def test_a_terminal_names_backends_where_there_are_several(tmp_path: Path) -> None:
    both = Recipe(backends={"torch-cpu": "", "mine": "A2"}, verdicts=HALF)
    text = shown(read_digest(make_run(tmp_path, both)), 120)
    assert text.splitlines()[1] == "Cases fail under 2 conditions"
    assert " 1 mine: Fails when dtype = float16" in text or " 2 mine: Fails when dtype = float16" in text


def test_summary_and_annotations_begin_with_them(digest: Digest, tmp_path: Path) -> None:
    line = replay_line(digest.root_causes[0].smallest)
    text = write_run_summary(digest, tmp_path / "summary.md").read_text(encoding="utf-8")
    before, _, after = text.partition(f"### {SENTENCE}\n\n1. Smallest case: ")
    assert "| backend | operator |" not in before
    assert SENTENCE not in after
    assert text.count("poolproof replay") == 2
    assert f"2. **{OPERATORS[0]}, float32, aspect values: one case fails (a crash).**" in after
    suspect, other = ci.remarks_about(digest)
    assert (suspect.title, suspect.place) == (f"torch-cpu: {SENTENCE}", "torch-cpu/suspects/dtype = float16")
    assert line in suspect.text
    assert other.title == f"torch-cpu: {OPERATORS[0]}, float32, aspect values: one case fails (a crash)."
    # An annotation stays that of its condition in another run.
    (again,) = ci.remarks_about(read_digest(make_run(tmp_path / "more", Recipe(verdicts=HALF, cases=5, seed=1))))
    assert again.place == suspect.place


def test_of_a_run_that_conforms_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = read_digest(make_run(tmp_path, Recipe()))
    monkeypatch.setattr("poolproof.reports.figures.digest.read_rows", pytest.fail)
    assert digest.clusters == ()
    monkeypatch.undo()
    assert "wrong" not in shown(digest, 120)
    assert "wrong" not in write_run_summary(digest, tmp_path / "summary.md").read_text(encoding="utf-8")


def test_the_first_line_of_a_run_with_a_few_failures_is_about_a_call(tmp_path: Path) -> None:
    """What happened is told once on each screen, with the command that shows it again."""
    digest = read_digest(make_run(tmp_path / "run", Recipe(verdicts=ALONE)))
    told = "the call ended by signal SIGSEGV"
    lines = shown(digest, 200, whole=False).splitlines()
    assert lines[1] == f"One case fails: {OPERATORS[0]} float32: {told}"
    assert lines[2] == f"   {replay_line(digest.clusters[0].smallest)}"
    page = write_run_page(digest, tmp_path / "index.html").read_text(encoding="utf-8")
    summary = write_run_summary(digest, tmp_path / "summary.md").read_text(encoding="utf-8")
    times = [text.count(told) for text in ("\n".join(lines), page, summary)]
    assert times == [1, 2, 1], "the page lists all failing cases besides"
    assert page.count("No picture: the call gave no output.") == 1
    kinds = [("a", "violates"), ("b", "crashed"), ("c", "timed out")]
    each = {(OPERATORS[0], "float32", aspect): [kind] for (_, kind), aspect in zip(kinds, ASPECTS, strict=False)}
    text = shown(read_digest(make_run(tmp_path / "more", Recipe(verdicts=each))), 200)
    assert "3 cases fail: " in text and text.count("poolproof replay") == len(each)


def test_undocumented_refusals_are_told_by_their_condition_everywhere(tmp_path: Path) -> None:
    refused = {cell: ["refused undocumented"] * 4 for cell in HALF}
    digest = read_digest(make_run(tmp_path / "run", Recipe(verdicts=refused)))
    sentence = "Is refused when dtype = float16: 36 of 36 cases. All 36 cases with dtype != float16 pass."
    page = write_run_page(digest, tmp_path / "index.html").read_text(encoding="utf-8")
    summary = write_run_summary(digest, tmp_path / "summary.md").read_text(encoding="utf-8")
    assert [text.count(sentence) for text in (shown(digest, 200), unescape(page), summary)] == [1, 1, 1]
    assert not digest.clusters
