"""The page on precision says of a run what its rows say."""

import re
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from forging import rewrite
from poolproof.references.accumulation import NATIVE
from poolproof.references.operators import OPERATORS
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.figures.precision import (
    HISTOGRAM,
    Multiplicity,
    agreements,
    backend_comparisons,
    errors_by_dtype,
    precision_by_model,
    worst_searched,
)
from poolproof.reports.figures.quantities import QUANTITIES
from poolproof.reports.figures.tables import Record
from poolproof.reports.pages import publishing
from poolproof.reports.pages.precision import error_over_multiplicity, logarithmic_width, write_precision_page
from poolproof.reports.pages.publishing import PAGES, publish
from poolproof.reports.pages.run import write_run_page
from poolproof.reports.rows.checks import BESIDE_PLAN, SEARCH, block_beside_plan
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import RowWriter, having, read_rows, write_run
from poolproof.reports.rows.text import percent
from poolproof.suites.cases.generation import generate
from poolproof.suites.cases.strategies import cases
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.plan.aspects import CASE_ASPECTS
from reports_browser import DESK, PHONE, Visit, chromium
from reports_made_up import Recipe, made_up_record
from scatter import Scatter
from scatter_backends import truncating
from switchable_backend import Switchable, Switches

OPERATOR = "MaxPool2dWithIndicesBackward"
BACKENDS = {"honest": Scatter(), "cutting": truncating(), "native": Switchable(Switches(NATIVE), declared=NATIVE)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Precision cases of one operator in two dtypes on three backends, one of which cuts instead of rounding."""
    folder = tmp_path_factory.mktemp("precision")
    rows = RowWriter(folder, "main")
    aspect = replace(CASE_ASPECTS["precision"], checks=("interval",))
    for dtype in ("float32", "float16"):
        for case in generate(cases.make(OPERATORS[OPERATOR], dtype, "int64", aspect.profile), 48, seed=5):
            for name, backend in BACKENDS.items():
                question = CaseQuestion(case, aspect, "block")
                rows.append(question.judge(backend) | {"backend": name, "product": "", "worker": "main"})
    rows.close()
    account = {"operator": OPERATOR, "dtype": "float16", "memory_format": "contiguous", "observations": []}
    told = account | {"model": "", "declared": "acc32", "disagreements": ["no model admits this rounding: toward zero"]}
    probes = {"cutting": [told], "honest": [account | {"model": "acc32", "disagreements": []}]}
    record = {"backends": {name: {} for name in BACKENDS}, "mandatory": [], "probes": probes}
    write_run(folder, made_up_record(Recipe()) | record)
    return folder


Groups = dict[tuple[str, str], Record]


def groups_of(run: Path) -> Groups:
    """What is found of each backend and dtype, in the order in which it is shown."""
    return {(one["backend"], one["dtype"]): one for one in precision_by_model(run)}


@pytest.fixture(scope="module")
def groups(run: Path) -> Groups:
    return groups_of(run)


def test_groups_are_those_of_the_run_in_order(run: Path, groups: Groups, tmp_path: Path) -> None:
    models = {"cutting": "acc32", "honest": "acc32", "native": "native"}
    expected = [(backend, dtype, model) for backend, model in models.items() for dtype in ("float32", "float16")]
    assert [(*group, one["model"]) for group, one in groups.items()] == expected
    for one in groups.values():
        assert sum(one["counts"][column] for column, _ in HISTOGRAM) == one["counts"]["n"] > 1000
        assert one["cases"] > 25
    page = write_run_page(read_digest(run), tmp_path / "index.html").read_text(encoding="utf-8")
    drawn = re.findall(r"<figcaption>([^<]*)</figcaption><svg class=.drawing.", page)
    assert drawn == [f"{backend}: {dtype}, {model}" for backend, dtype, model in expected]


def test_a_truncating_kernel_has_wrong_rows_and_a_correct_one_none(groups: Groups) -> None:
    wrong = {name: groups[name, "float16"]["wrong"] for name in BACKENDS}
    assert wrong["honest"] == wrong["native"] == 0 < 5 < wrong["cutting"]
    assert abs(groups["honest", "float16"]["bias_ulp"]) < 0.1
    worst = groups["native", "float16"]["worst"]
    margins = [row["margin_min"] for row in worst]
    assert len(worst) == 3 and margins == sorted(margins) and 0.0 <= margins[0] < 0.9
    assert all(OPERATOR in row["case"] for row in worst)


@pytest.mark.parametrize("aspect", BESIDE_PLAN)
def test_cases_beside_the_plan_are_none_of_them(run: Path, tmp_path: Path, aspect: str) -> None:
    more = Path(shutil.copytree(run, tmp_path / "run"))
    further = {"aspect": aspect, "block": block_beside_plan(aspect, "precision")}
    rewrite(more, lambda rows: rows + [row | further | {"case_id": "f" + row["case_id"]} for row in rows[:40]])
    for figures in (precision_by_model, agreements, backend_comparisons):
        assert figures(more) == figures(run)
    told, planned = (read_digest(folder).precision for folder in (more, run))
    assert told.equals(planned)


def test_the_worst_case_of_a_search_stands_beside_the_plan(run: Path, groups: Groups, tmp_path: Path) -> None:
    further = {"aspect": SEARCH, "block": block_beside_plan(SEARCH, "precision")}
    errors = {"a": 1.5, "b": 3.5, "c": 3.5, "d": None}

    def searched(rows: list[Row]) -> list[Row]:
        alike = [row for row in rows if (row["backend"], row["dtype"]) == ("native", "float16")]
        right = next(row for row in alike if row["verdict"] == "conforms")
        classes = {"k_cells": [5, 0, 1], "k_bound": [0.0, 0.0, 4.0]}
        of_search = [
            right | further | classes | {"case_id": case_id, "k_error": [0.0, 0.0, error]}
            for case_id, error in errors.items()
        ]
        return [*rows, *of_search, of_search[0] | {"case_id": "e", "verdict": "violates", "k_error": [0.0, 0.0, 9.0]}]

    more = Path(shutil.copytree(run, tmp_path / "run"))
    rewrite(more, searched)
    found = precision_by_model(more)
    ((backend, (line,)),) = worst_searched(more, found).items()
    (planned,) = (one.error for one in groups["native", "float16"]["multiplicities"] if one.most == 4)
    names = ("dtype", "model", "label", "planned", "error", "bound", "case_id")
    assert (backend, *(line[name] for name in names)) == ("native", "float16", "native", "3-4", planned, 3.5, 4.0, "b")
    assert worst_searched(run, found) == {}
    text = write_precision_page(read_digest(more), tmp_path / "precision.html").read_text(encoding="utf-8")
    assert (
        f'<td class="number">{planned:.3g}</td><td class="number">3.5</td><td class="number">4</td><td>b</td>' in text
    )
    assert 'href="#search"' in text


def test_errors_stay_below_their_bounds_in_every_class_and_are_together_by_dtype(groups: Groups) -> None:
    for (backend, _), found in groups.items():
        assert backend == "cutting" or all(each.error <= each.bound for each in found["multiplicities"])
        assert sum(each.cells for each in found["multiplicities"]) > 500
    one = groups["native", "float16"]
    bounds = {each.label: each.bound for each in one["multiplicities"]}
    assert bounds["2"] <= 0.5 < bounds["3-4"]
    least, many = one["multiplicities"][0], Multiplicity(2048, 3, 0.1, 0.2)
    others = (replace(least, cells=7, error=100.0), many)
    other = one | {"operator": "AdaptiveMaxPool2dBackward", "multiplicities": others}
    alone, together = (errors_by_dtype(found)["native"][0][2] for found in ([one], [one, other]))
    assert alone == one["multiplicities"]
    assert together == (replace(least, cells=least.cells + 7, error=100.0), *one["multiplicities"][1:], many)


def test_standards_are_counted_against_the_interval(run: Path, groups: Groups) -> None:
    said = {(one["backend"], one["standard"]): one for one in agreements(run)}
    blind = said["cutting", "ecosystem-2026-09"]
    assert blind["wrong"] == groups["cutting", "float16"]["wrong"] + groups["cutting", "float32"]["wrong"]
    assert blind["passed_wrong"] > 5 and blind["miss"] is not None
    binary = said["native", "msprobe-binary"]
    is_right = having("backend", ["native"]) & having("dtype", ["float16"]) & having("verdict", ["conforms"])
    failed = read_rows(run, ["standards_failed"], is_right)["standards_failed"].to_pylist()
    assert binary["failed_right"]["float16"] == sum("msprobe-binary" in (names or ()) for names in failed) > 3
    assert binary["false_alarm"] is not None
    assert said["honest", "msprobe-binary"]["passed_wrong"] == 0


def test_two_backends_are_held_against_the_exact_sums(run: Path, groups: Groups) -> None:
    found = {(one["first"], one["second"], one["dtype"]): one for one in backend_comparisons(run)}
    one = found["honest", "native", "float16"]
    assert one["cases"] == groups["native", "float16"]["cases"]
    assert one["first_nearer"] > one["second_nearer"] and one["exact"][0] > one["exact"][1]
    assert found["cutting", "honest", "float16"]["wrong"][0] == groups["cutting", "float16"]["wrong"]
    same = found["honest", "native", "float32"]
    assert same["same_bits"] == same["cases"]


def test_the_page_is_one_file_and_says_it_all(run: Path) -> None:
    page = write_precision_page(read_digest(run), run / "precision.html")
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=\"(?!index\.html|#)", text)
    assert text.count("<svg") == 6
    for words in ("ecosystem-2026-09", "outside the interval", "no model admits this rounding: toward zero"):
        assert words in text
    assert "The probe confirms the declaration of honest." in text
    assert "poolproof replay --backend native" in text


def test_a_run_without_backwards_has_no_page(tmp_path: Path, run: Path) -> None:
    RowWriter(tmp_path, "main").close()
    write_run(tmp_path, read_digest(run).run | {"probes": {}})
    written = publish(read_digest(tmp_path), tmp_path)
    assert "precision.html" not in {*written, *(path.name for path in tmp_path.iterdir())}
    assert "precision.html" not in written["index.html"].read_text(encoding="utf-8")


def test_pages_may_be_written_in_any_order(tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = read_digest(run)
    for name in ("there", "back"):
        (tmp_path / name).mkdir()
    there = publish(digest, tmp_path / "there")
    monkeypatch.setattr(publishing, "PAGES", dict(reversed(PAGES.items())))
    back = publish(digest, tmp_path / "back")
    assert set(there) == set(back) == set(PAGES)
    for name in ("index.html", "precision.html", "summary.md"):
        assert there[name].read_bytes() == back[name].read_bytes()
    assert 'href="precision.html"' in there["index.html"].read_text(encoding="utf-8")


def test_the_page_fits_a_phone_and_a_desk(run: Path) -> None:
    page = write_precision_page(read_digest(run), run / "precision.html")
    with chromium() as browser:
        for width, scheme in product((PHONE, DESK), ("light", "dark")):
            visit = Visit(browser, width, scheme)
            visit.open(page)
            assert (visit.overflow() <= 0, visit.complaints, len(visit.requests)) == (True, [], 1)


def test_drawings_stay_inside_their_frame_and_shares_never_round_to_nothing_or_all() -> None:
    classes = [(1, 5, 0.0, 0.0), (2, 5, 0.25, 0.5), (4, 9, 2.0**40, 2.0**41)]
    text = str(error_over_multiplicity([Multiplicity(*each) for each in classes], "a <title>"))
    assert "a &lt;title&gt;" in text
    assert "<svg" not in error_over_multiplicity([Multiplicity(*classes[0])], "axes of nothing")
    assert all(float(y) >= 0.0 for y in re.findall(r'\by1?="([-0-9.]+)"', text))
    assert text.count('class="bound"') == 2
    shares = [percent(share) for share in (0.0, 1.0, 0.99999, 1.6e-6, 1e-9)]
    assert shares == ["0 %", "100 %", "> 99.9 %", "0.00016 %", "< 0.0001 %"]
    assert [logarithmic_width(share) for share in (1.0, 0.0, 1e-20)] == [100.0, 0.0, 1.5]
    assert 80 < logarithmic_width(0.1) < 90


def quantities_of(rows: list[Row]) -> list[float | None]:
    """The `QUANTITIES` of right rows by their definitions, one row after the other."""
    cells, errors = (
        sum(row["n"] for row in rows),
        [error for row in rows for error in row["k_error"] if error is not None],
    )
    rounded = [row for row in rows if row["max_ulp"] <= 1.0 and row["n_inexact"]]
    inexact = sum(row["n_inexact"] for row in rounded)
    return [
        *(100.0 * sum(row[name] for row in rows) / cells for name in ("n_bitexact", "n_single_valued")),
        max(errors),
        sum(row["bias_ulp"] * row["n_inexact"] for row in rounded) / inexact if inexact else None,
        min((row["margin_min"] for row in rows if row["margin_min"] is not None), default=None),
    ]


def test_a_quantity_is_the_same_wherever_it_is_told_and_what_its_definition_says(run: Path, groups: Groups) -> None:
    table, rows = read_digest(run).precision, read_rows(run).to_pylist()
    names = [quantity.column for quantity in QUANTITIES]
    for (backend, dtype), one in groups.items():
        line = table.loc[(backend, one["operator"], dtype, one["model"]), names]
        assert [*line.astype(object).where(line.notna(), None)] == [one[name] for name in names]
        right = [row for row in rows if (row["backend"], row["dtype"]) == (backend, dtype) and row["n"]]
        expected = quantities_of([row for row in right if row["verdict"] == "conforms"])
        assert [one[name] for name in names] == pytest.approx(expected)
    line = table.loc["native", OPERATOR, "float16", "native"]
    assert line["max_ulp"] > 10.0 * line["largest_error"], "sums that cancel do not drown what is told"
    assert abs(line["bias_ulp"]) < 0.1


def test_waived_cases_are_told_apart(run: Path, tmp_path: Path) -> None:
    def waived(row: Row) -> Row:
        is_covered = row["verdict"] == "violates" and row["dtype"] == "float16"
        return row | ({"verdict": "waived", "waivers": ["cuts"]} if is_covered else {})

    folder = Path(shutil.copytree(run, tmp_path / "run"))
    rewrite(folder, lambda rows: [waived(row) for row in rows if row["backend"] == "cutting"])
    write_run(folder, read_digest(run).run | {"backends": {"cutting": {}}, "probes": {}})
    text = write_precision_page(read_digest(folder), tmp_path / "precision.html").read_text(encoding="utf-8")
    half = groups_of(folder)["cutting", "float16"]
    assert half["waived"] == half["wrong"] > 5
    assert f'<span class="tag waived">{half["wrong"]} cases outside the interval, waived</span>' in text
    assert "outside the interval</span>" not in text
