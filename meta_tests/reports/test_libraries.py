"""Two libraries are never one line: histories, dashboards and comparisons tell builds apart by their content."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from poolproof.reports.figures.comparison import compare
from poolproof.reports.history.dashboard import write_dashboard
from poolproof.reports.history.entries import add, read_entries
from poolproof.reports.history.trends import IMPLEMENTATION, MAX_LIBRARIES, Trends
from poolproof.reports.rows.environment import library_of, library_text
from poolproof.reports.rows.store import read_run
from poolproof.suites.isolation.environment import identify
from reports_made_up import Recipe, make_run

pytest.importorskip("duckdb")

BASE = Recipe(backends={"aclnn": "A2"}, operators=("MaxPool2dWithIndicesBackward",), dtypes=("float32",))


@pytest.fixture
def builds(tmp_path: Path) -> list[Path]:
    """Two builds of a library of one name that differ in a byte, and the first of them elsewhere."""
    paths = [tmp_path / folder / "libopapi.so" for folder in ("one", "other", "elsewhere")]
    for path, content in zip(paths, (b"\0", b"\1", b"\0"), strict=True):
        path.parent.mkdir()
        path.write_bytes(content)
    return paths


def test_a_library_that_is_gone_is_named(tmp_path: Path) -> None:
    odd = tmp_path / "two\nlines.so"
    odd.write_bytes(b"\0")
    gone, listed = f"{tmp_path}/jit.so (deleted)", str(odd).replace("\n", "\\012")  # as /proc/self/maps lists them
    found = identify([gone, listed])
    assert found["library jit.so (deleted)"] == f"mapped, and no longer there, {gone}"
    assert found[r"library two\012lines.so"].startswith("sha256:6e340b9c")
    assert library_of(found)


def runs_of(libraries: Sequence[Path], folder: Path) -> list[Path]:
    """A run of the same plan on each library, a day apart."""
    runs = []
    for number, path in enumerate(libraries):
        recipe = replace(BASE, started=1.8e9 + 86400 * number)
        environment = {"product": "A2"} | identify([str(path)])
        runs.append(make_run(folder / str(number), replace(recipe, record={"backends": {"aclnn": environment}})))
    return runs


def trends_of(runs: Sequence[Path], folder: Path) -> Trends:
    for run in runs:
        add(folder / "history", run)
    return Trends(read_entries(folder / "history"))


def test_two_builds_are_two_lines_and_one_that_moved_is_the_same(builds: list[Path], tmp_path: Path) -> None:
    first, second, moved = [library_of(identify([str(path)])) for path in builds]
    assert first == moved
    trends = trends_of(runs_of(builds[:2], tmp_path / "two"), tmp_path / "two")
    last = trends.last_two.set_index("library")
    assert (last.loc[first, "before"], last.loc[second, "before"]) == ("", last.loc[first, "last"])
    trends = trends_of(runs_of(builds, tmp_path), tmp_path)
    assert trends.overall.groupby("library").size().to_dict() == {first: 2, second: 1}
    assert trends.squares.groupby("library").size().to_dict() == {first: 2, second: 1}
    assert set(trends.current["library"]) == {first, second}
    assert len(trends.overall[list(IMPLEMENTATION)].drop_duplicates()) == 2


def test_a_comparison_says_which_library_each_side_judged(builds: list[Path], tmp_path: Path) -> None:
    runs = runs_of(builds[:2], tmp_path)
    comparison = compare(*runs)
    told = tuple(library_of(read_run(run)["backends"]["aclnn"]) for run in runs)
    assert comparison.libraries == tuple(f"aclnn (library {name})" for name in told)
    assert told[0] != told[1]


def test_the_dashboard_shows_the_newest_libraries_and_counts_the_older(tmp_path: Path) -> None:
    for number in range(MAX_LIBRARIES + 2):
        environment = {"product": "A2", "library libopapi.so": f"sha256:{str(number) * 64}, /opt/libopapi.so"}
        recipe = replace(BASE, started=1.8e9 + 86400 * number, record={"backends": {"aclnn": environment}})
        add(tmp_path / "history", make_run(tmp_path / str(number), recipe))
    page = write_dashboard(read_entries(tmp_path / "history"), tmp_path / "site").read_text(encoding="utf-8")
    assert page.count('<table class="matrix') == MAX_LIBRARIES
    assert "2 older libraries have only trends." in page
    assert len(list((tmp_path / "site" / "squares").iterdir())) == MAX_LIBRARIES


def test_what_a_library_is() -> None:
    base = {f"library {name}.so": f"sha256:{digit * 64}, /opt/{name}.so" for name, digit in (("a", "1"), ("b", "2"))}
    wheel = {"wheel mine": f"1.0, RECORD sha256:{'3' * 64}"}
    reinstalled = {"wheel mine": f"1.0, RECORD sha256:{'4' * 64}"}
    newer = {"wheel mine": f"1.1, RECORD sha256:{'3' * 64}"}
    assert library_of(base | wheel) == library_of(base | reinstalled)
    several = [base, base | wheel, base | newer, base | {"library b.so": f"sha256:{'5' * 64}, /opt/b.so"}]
    assert len({library_of(environment) for environment in several}) == len(several)
    assert library_text("mine", base | wheel).endswith(", of 2 files)")
    assert library_text("mine", {}) == library_text("mine", {"mine": "1.0"}) == "mine"
    one = {"library a.so": f"sha256:{'ab' * 32}, /opt/a.so"}
    assert library_text("mine", one) == "mine (library abababababab)"
