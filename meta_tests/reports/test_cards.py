"""The page of a run begins with what is wrong, one card each, from real failing runs; one that conforms has none."""

import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from poolproof.reports.clusters import describe
from poolproof.reports.clusters.cluster import SIZED, size_of
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.figures.tables import COUNTED_CASES, HAS_FAILED
from poolproof.reports.pages.run import cards, write_run_page
from poolproof.reports.rows.evidence import evidence_path
from poolproof.reports.rows.failures import SHOWN, message, replay_line
from poolproof.reports.rows.store import read_rows
from reports_browser import DESK, PHONE, Visit, chromium
from reports_made_up import ASPECTS, OPERATORS, Recipe, make_run
from shared_runs import FAILING, RunOf, honest

VALUE = next(real for real in FAILING if real.kind == "value")
CRASH = next(real for real in FAILING if real.kind == "crash")
HALF = {(operator, "float16", aspect): ["violates"] * 4 for operator in OPERATORS for aspect in ASPECTS}


@pytest.fixture
def failing(diagnosed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(diagnosed / "run", tmp_path / "run"))


def page_of(folder: Path, into: Path) -> str:
    return write_run_page(read_digest(folder), into / "index.html").read_text(encoding="utf-8")


def test_each_thing_that_is_wrong_has_a_card_that_shows_a_case_of_its_own(failing: Path, tmp_path: Path) -> None:
    digest, page = read_digest(failing), page_of(failing, tmp_path)
    shown = cards(digest)
    assert len(shown) == len(digest.clusters) == page.count('class="failure suspect"') > 0
    for card in shown:
        assert describe(card.cluster) in unescape(page)
        assert replay_line(card.cluster.smallest) in unescape(page)
        assert card.drawn in card.cluster.cases
        assert failing / card.evidence == evidence_path(failing, card.drawn, card.cluster.backend)
        assert (failing / card.evidence).is_file()
        assert [title for title, _ in card.picture.drawings][:3] == ["exact sum", "got", "got \N{MINUS SIGN} exact sum"]
        assert "wrong" in card.picture.caption
        assert any("python evidence/call.py " in line for line in card.programs)
    assert page.index('id="wrong"') < page.index("table class")
    told = digest.conclusion.further_text
    assert re.match(r"\d+ further cases judged", told) and f"<span>{told}</span>" in page
    assert not re.search(r'src="|<link|@import|url\(', page), "a page needs no script and no other file"
    assert len(page.encode()) < 1_500_000


def test_all_failing_cases_are_listed_with_what_came_and_a_picture(failing: Path, tmp_path: Path) -> None:
    page = unescape(page_of(failing, tmp_path))
    table = page[page.index('class="failing"') :].partition("</table>\n</div>")[0]
    rows = read_rows(failing, [*SHOWN, "case_id"], HAS_FAILED & COUNTED_CASES).to_pylist()
    assert rows and table.count("<summary>picture</summary>") > 0
    assert all(f"<tr><td>{row['case_id']}<" in table and message(row) in table for row in rows)


def test_where_the_smallest_case_left_nothing_the_smallest_that_did_is_drawn(failing: Path) -> None:
    card = max(cards(read_digest(failing)), key=lambda card: len(card.cluster.cases))
    rows = read_rows(failing, [*SIZED, "case_id", "verdict"]).to_pylist()
    sizes = {row["case_id"]: size_of(row) for row in rows if row["case_id"] in card.cluster.cases}
    few = sorted(set(sizes) - {card.drawn})[:6]
    for case_id in few:
        shutil.copyfile(failing / card.evidence, evidence_path(failing, case_id, card.cluster.backend))
    for case_id in set(sizes) - set(few):
        evidence_path(failing, case_id, card.cluster.backend).unlink(missing_ok=True)
    (again,) = [one for one in cards(read_digest(failing)) if one.number == card.number]
    assert sizes[again.drawn] == min(sizes[case_id] for case_id in few) < max(sizes[case_id] for case_id in few)


def test_links_lead_from_cards_to_squares_and_back(tmp_path: Path) -> None:
    made = make_run(tmp_path / "run", Recipe(verdicts=HALF))
    (card,) = cards(read_digest(made))
    assert (card.drawn, card.picture, card.evidence, card.programs) == ("", None, "", ()), "it left nothing to draw"
    assert card.undrawn == "no case of it left its output in the folder of the run"
    page = page_of(made, tmp_path)
    ids, targets = set(re.findall(r'\bid="([^"]+)"', page)), re.findall(r'href="#([^"]+)"', page)
    assert len(card.squares) == len(OPERATORS) * len(ASPECTS)
    assert card.squares.total() == card.cluster.counts.failing
    assert set(targets) <= ids
    assert targets.count("suspect-1") == len(card.squares)
    assert page.count('class="number bad" id=') == len(card.squares)


def test_a_run_that_conforms_has_none_of_it_nor_a_crash_where_nothing_is_claimed(run_of: RunOf, tmp_path: Path) -> None:
    page = page_of(run_of(honest(VALUE)), tmp_path)
    assert not re.search('id="wrong"|class="failure|<svg class="plane', page)
    assert "Geometries that were judged" in page
    page = page_of(run_of(CRASH), tmp_path)
    assert len(re.findall("One case fails: [A-Za-z0-9]+ float[0-9]+: the call ended by signal", page)) == 1
    assert page.count("<figure>") or "No picture: the call gave no output." in page


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_a_browser_goes_from_a_card_to_its_evidence(failing: Path, width: int) -> None:
    write_run_page(read_digest(failing), failing / "index.html")
    with chromium() as browser:
        visit = Visit(browser, width)
        visit.open(failing / "index.html")
        page = visit.page
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        first = page.locator(".suspect, .failure").first
        assert first.bounding_box()["y"] < 900
        for link in page.locator(".suspect a[href^='evidence/']").all():
            assert (failing / link.get_attribute("href")).is_file()
        assert not visit.complaints
