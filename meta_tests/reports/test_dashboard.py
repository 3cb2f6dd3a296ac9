"""The dashboard as people use it: from the matrix to a failing case, by mouse and keyboard, on desks and phones."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from poolproof.reports.history import dashboard
from poolproof.reports.history.dashboard import write_dashboard
from poolproof.reports.history.entries import add, read_entries
from poolproof.reports.history.trends import Trends
from poolproof.reports.pages.charts import Trend, trend_charts
from poolproof.reports.rows.verdicts import Overall
from reports_browser import DESK, PHONE, Visit, broken_links, chromium
from reports_made_up import Recipe, make_run
from sessions import poolproof

pytest.importorskip("duckdb")

RUNS = 40
FAILING = ("MaxPool2dWithIndicesBackward", "float32", "values")
GONE = ("MaxPool3dWithArgmaxBackward", "float16", "precision")
BASE = Recipe(operators=(FAILING[0], GONE[0]), aspects=("values", "precision"))


def recipe(number: int) -> Recipe:
    """Runs of two implementations in turn; the last two of them fail, crash and leave something out."""
    backends = {"aclnn": "A2"} if number % 2 else {"torch-cpu": ""}
    verdicts = {GONE: ["violates"]} if number in (20, 21) else {}
    if number >= RUNS - 2:
        verdicts = {FAILING: ["violates", "crashed"], ("MaxPool3dWithArgmaxBackward", "float32", "values"): ["not run"]}
    return replace(BASE, backends=backends, started=1.79e9 + number * 43200.0, verdicts=verdicts)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    for number in range(RUNS):
        run = make_run(tmp_path_factory.mktemp("run"), recipe(number), evidence=number >= RUNS - 2)
        add(folder, run)
    return folder


@pytest.fixture(scope="module")
def site(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site") / "dashboard"
    write_dashboard(read_entries(history), site)
    return site


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


def test_from_the_matrix_to_a_case(site: Path, browser: Any) -> None:
    visit = Visit(browser, DESK)
    visit.open(site / "index.html")
    section = visit.page.locator("section", has=visit.page.locator("#aclnn-A2"))
    square = section.get_by_role("link", name="MaxPool2dWithIndicesBackward float32: 8 judged, 2 violated")
    assert square.inner_text() == "✗ 2"
    square.click()
    assert visit.page.locator("figure svg").count() == 4
    visit.page.get_by_role("link", name="interval: case").click()
    assert visit.page.locator("h1").inner_text().startswith("MaxPool2dWithIndicesBackward float32, case ")
    assert "poolproof replay --backend aclnn" in visit.page.locator("pre").first.inner_text()
    assert visit.page.get_by_text("python evidence/call.py").is_visible()
    titles = visit.page.locator("figcaption").all_inner_texts()
    assert titles == ["exact sum", "got", "got − exact sum", "windows that send there"]
    cells_and_a_frame = visit.page.locator("figure").nth(0).locator("svg rect")
    assert cells_and_a_frame.count() == 12 * 16 + 1
    assert "Red frames are around wrong cells." in visit.page.locator("main").inner_text()
    visit.page.get_by_role("link", name="dashboard").click()
    assert visit.page.locator("#trends").is_visible()
    assert not visit.complaints
    assert all(url.startswith("file://") for url in visit.requests)


def test_by_keyboard_alone(site: Path, browser: Any) -> None:
    visit = Visit(browser, DESK)
    visit.open(site / "index.html")
    for wanted in ("float32: 8 judged, 2 violated", "case"):
        for _ in range(60):
            visit.page.keyboard.press("Tab")
            focused = "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
            if wanted in visit.page.evaluate(focused):
                break
        outline = visit.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        with visit.page.expect_navigation():
            visit.page.keyboard.press("Enter")
    assert "/cases/" in visit.page.url


@pytest.mark.parametrize("width", [DESK, PHONE])
@pytest.mark.parametrize(("scheme", "background"), [("light", "rgb(252, 252, 250)"), ("dark", "rgb(21, 24, 27)")])
def test_every_kind_of_page_fits(site: Path, browser: Any, width: int, scheme: str, background: str) -> None:
    inner = (next(site.glob(pattern)) for pattern in ("cases/aclnn*values*", "squares/aclnn*2d*float32*"))
    for page in (site / "index.html", *inner):
        visit = Visit(browser, width, scheme)
        visit.open(page)
        assert visit.overflow() <= 0, page
        assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == background
        assert not visit.complaints, page


def test_what_changed_is_told_and_leads_to_its_case(site: Path, browser: Any) -> None:
    visit = Visit(browser, DESK)
    visit.open(site / "index.html")
    colour = "getComputedStyle(document.querySelector('figure svg.trend text')).fill"
    before = visit.page.evaluate(colour)
    visit.page.emulate_media(color_scheme="dark")
    visit.page.wait_for_function(f"{colour} !== '{before}'")
    change = visit.page.locator("section.change", has_text="aclnn A2")
    lines = change.locator("li").all_inner_texts()
    assert sorted(line.split(" Max")[0] for line in lines) == ["newly failing", "newly failing", "newly not judged"]
    change.get_by_role("link").first.click()
    assert "/cases/aclnn-A2-" in visit.page.url


def test_the_site_stays_small_and_whole(site: Path) -> None:
    pages = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    assert len(pages) == 1 + 8 + 4, [page.name for page in pages]
    for page, text in pages.items():
        assert len(text) < 150_000, page
        assert not re.search(r'(?:src|href)="(?:https?:)?//', text), page
        assert (">150, 42<" in text) == (page.parent.name == "cases"), "lists of numbers"
    assert not broken_links(site)


def test_failures_that_are_left_out_are_counted(history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poolproof.reports.history.dashboard.MAX_CASES", 1)
    write_dashboard(read_entries(history), tmp_path / "site")
    square = next((tmp_path / "site" / "squares").glob("aclnn*2d*float32*")).read_text(encoding="utf-8")
    assert "and 1 more kind" in square
    assert not broken_links(tmp_path / "site")


@pytest.mark.parametrize("most", [10, 12])
def test_few_points_of_a_long_history_keep_the_worst(history: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr("poolproof.reports.history.trends.MAX_POINTS", most)
    trends = Trends(read_entries(history))
    points = trends.overall.groupby("backend")["runs"]
    assert points.size().to_list() == [most, most]
    assert points.max().to_list() == [2, 2]
    assert points.sum().to_list() == [RUNS // 2, RUNS // 2]
    gone = trends.squares[(trends.squares["operator"] == GONE[0]) & (trends.squares["dtype"] == GONE[1])]
    assert gone.groupby("backend")["passed"].min().to_list() == [87.5, 87.5]


def test_a_narrowed_run_leaves_the_other_squares_as_they_were(tmp_path: Path) -> None:
    add(tmp_path / "h", make_run(tmp_path / "all", replace(BASE, verdicts={FAILING: ["violates"]})))
    narrowed = replace(BASE, operators=BASE.operators[1:], started=BASE.started + 60.0)
    add(tmp_path / "h", make_run(tmp_path / "part", narrowed))
    current = Trends(read_entries(tmp_path / "h")).current
    assert current.groupby("operator")["violates"].sum().to_dict() == {BASE.operators[0]: 1, BASE.operators[1]: 0}
    assert current["run"].nunique() == 2


def test_a_line_of_a_trend_joins_runs_that_were_asked_alike(tmp_path: Path) -> None:
    asked = ([], ["--cases 2"], [f"--operator {GONE[0]}"], [], ["--cases 2"])
    for number, options in enumerate(asked):
        operators = BASE.operators[1:] if number == 2 else BASE.operators
        record = {"selection": {"options": options}, "plan_cases": 64 if options else 32}
        made = replace(BASE, operators=operators, started=BASE.started + number * 60.0, record=record)
        add(tmp_path / "h", make_run(tmp_path / f"run{number}", made))
    entries = read_entries(tmp_path / "h")
    trends, names = Trends(entries), [*entries.runs["run"]]
    lines = trends.overall.groupby("asked")["runs"].sum().to_dict()
    assert lines == {"smoke": 2, "smoke --cases 2": 2, f"smoke --operator {GONE[0]}": 1}
    squares = trends.squares.groupby(["operator", "asked"])["runs"].sum().to_dict()
    assert squares[GONE[0], "smoke"] == 6, "whatever other operators were asked"
    assert squares[FAILING[0], "smoke"] == squares[FAILING[0], "smoke --cases 2"] == 4
    assert trends.last_two[["before", "last"]].to_numpy().tolist() == [[names[1], names[4]]]
    write_dashboard(entries, tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "torch-cpu (smoke, narrowed)" in page and "smoke --cases 2" in page
    assert '<span class="note" title="narrowed: 32 of 64 cases of plan smoke (--cases 2)">narrowed</span>' in page
    squares = [path.read_text(encoding="utf-8") for path in (tmp_path / "site" / "squares").iterdir()]
    said = r"<strong>conforms in part</strong>\s*<span>narrowed: 32 of 64 cases of plan smoke \(--cases 2\)</span>"
    assert len(squares) == 4 and all(re.search(said, square) for square in squares)


def test_runs_of_two_seeds_have_lines_of_their_own_and_no_case_in_common(tmp_path: Path) -> None:
    for number, seed in enumerate((0, 0, 2)):
        made = replace(BASE, started=BASE.started + number * 60.0, seed=seed)
        add(tmp_path / "h", make_run(tmp_path / f"run{number}", made))
    entries = read_entries(tmp_path / "h")
    assert Trends(entries).overall.groupby("seed")["runs"].sum().to_dict() == {0: 2, 2: 1}
    write_dashboard(entries, tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "The two runs have no case in common (seeds 0 and 2)." in page and "<p>Nothing.</p>" not in page
    assert "smoke, seed 0" in page and "smoke, seed 2" in page
    told = poolproof("compare", tmp_path / "run1", tmp_path / "run2").output
    assert "no case in common (seeds 0 and 2)" in told


def test_a_folder_with_anything_else_is_refused(tmp_path: Path) -> None:
    add(tmp_path / "history", make_run(tmp_path / "run"))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "thesis.txt").write_text("precious")
    result = poolproof("dashboard", tmp_path / "history", "-o", tmp_path / "site")
    assert (result.exit_code, "is not empty" in result.output) == (Overall.COULD_NOT_RUN, True)


def test_a_dashboard_is_replaced_and_so_is_one_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(tmp_path / "history", make_run(tmp_path / "run"))
    entries, site = read_entries(tmp_path / "history"), tmp_path / "site"
    with monkeypatch.context() as broken:
        broken.setattr(dashboard, "Trends", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_dashboard(entries, site)
    assert write_dashboard(entries, site).exists()
    (site / "cases" / "old.html").write_text("old")
    assert poolproof("dashboard", tmp_path / "history", "-o", site).exit_code == 0
    assert not (site / "cases" / "old.html").exists()


def test_a_trend_without_a_point_is_no_empty_chart() -> None:
    point = {
        "series": "a",
        "library": "a",
        "asked": "smoke",
        "time": 0.0,
        "passed": 100.0,
        "implementation": "a",
        "runs": 1,
    }
    forward, backward = [point | {"microseconds": 3.0}], [point | {"microseconds": 3.0, "exact": 99.0, "margin": 0.5}]
    trends = (*dashboard.TRENDS, dashboard.LEAST_MARGIN)
    assert [len(trend_charts(trends, points)) for points in ([], forward, backward)] == [0, 2, 4]


def test_lines_stay_inside_their_chart_and_join_what_was_asked_alike() -> None:
    point = {"library": "", "implementation": "a", "runs": 1}
    asked = [(3.6e6 * number, "ab"[number % 2], ("smoke", "soak")[number // 4]) for number in range(8)]
    points = [
        point | {"time": time, "series": name, "asked": plan, "passed": 97.0 + time / 3.6e6 / 4}
        for time, name, plan in asked
    ]
    for trend in (dashboard.TRENDS[0], Trend("passed", "from zero", least_span=0.0)):
        (chart,) = trend_charts([trend], points)
        assert chart.legend == {"a": 1, "b": 2}
        assert str(chart.picture).count("<polyline") == 4
        width, height = map(float, re.findall(r'viewBox="0 0 (\S+) (\S+)"', chart.picture)[0])
        places = re.findall(r'cx="(\S+)" cy="(\S+)"', chart.picture)
        assert len(places) == 8
        assert all(0 < float(x) < width and 0 < float(y) < height for x, y in places)
