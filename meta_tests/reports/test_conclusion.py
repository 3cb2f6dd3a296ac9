"""The overall verdict: what makes a run conform, violate or be incomplete, and that rows alone decide."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from forging import rewrite
from poolproof.reports.figures.coverage import NEVER_ASKED
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.figures.tables import skip_reasons, with_violated
from poolproof.reports.pages.run import write_run_page, write_run_summary
from poolproof.reports.rows.arrow import SCHEMA
from poolproof.reports.rows.failures import KIND, kind_of, replay_line, what_failed
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import write_run
from poolproof.reports.rows.verdicts import BY_GRAVITY, FAILED, SKIPPED, Overall, Verdict, gravest
from reports_made_up import Recipe, made_up_record, made_up_rows, make_run, shown, write_rows
from sessions import poolproof

CELL = ("MaxPool2dWithIndicesBackward", "float32", "values")


@pytest.mark.parametrize(
    ("recipe", "overall"),
    [
        *(
            (Recipe(verdicts={CELL: [verdict]}), overall)
            for verdict, overall in (
                ("conforms", Overall.CONFORMS),
                ("refused as documented", Overall.CONFORMS),
                ("refused undocumented", Overall.INCOMPLETE),
                ("waived", Overall.CONFORMS),
                ("violates", Overall.VIOLATES),
                ("crashed", Overall.VIOLATES),
                ("timed out", Overall.VIOLATES),
                ("not run", Overall.INCOMPLETE),
                ("not supported", Overall.INCOMPLETE),
                ("suite error", Overall.INCOMPLETE),
                ("adapter error", Overall.INCOMPLETE),
            )
        ),
        (Recipe(record={"finished": None}), Overall.INCOMPLETE),
        (Recipe(cases=0), Overall.INCOMPLETE),
    ],
)
def test_one_case_decides_and_show_says_it(tmp_path: Path, recipe: Recipe, overall: Overall) -> None:
    assert read_digest(make_run(tmp_path, recipe)).conclusion.overall is overall
    result = poolproof("show", tmp_path)
    assert result.exit_code == overall
    assert f"{overall.word.upper()} (exit status {int(overall)})" in result.output


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ([], ""),
        (["a"], "1 case failed in an earlier run and passes now: a"),
        (["b", "a"], "2 cases failed in an earlier run and pass now: a, b"),
        ([*"abcdefg"], "7 cases failed in an earlier run and pass now: a, b, c, d, e and 2 more"),
    ],
)
def test_cases_that_an_earlier_run_failed_are_told(tmp_path: Path, ids: list[str], told: str) -> None:
    row = made_up_rows(Recipe(cases=1)).slice(0, 1).to_pylist()[0] | {"aspect": "search"}
    mended = [row | {"case_id": name, "failed_before": True} for name in ids]
    write_rows(tmp_path, pa.Table.from_pylist([row, *mended], schema=SCHEMA))
    write_run(tmp_path, made_up_record(Recipe()))
    digest = read_digest(tmp_path)
    assert digest.conclusion.mended_text == told
    page, summary = write_run_page(digest, tmp_path / "run.html"), write_run_summary(digest, tmp_path / "run.md")
    for text in (page.read_text(), summary.read_text(), shown(digest, width=1000)):
        assert told in text and ("earlier run" in text) == bool(told)


def test_a_deviation_outweighs_a_gap_and_both_are_told(tmp_path: Path) -> None:
    conclusion = read_digest(make_run(tmp_path, Recipe(verdicts={CELL: ["violates", "not run"]}))).conclusion
    assert conclusion.overall is Overall.VIOLATES
    assert conclusion.reasons == (
        "1 of 71 judged cases fail",
        "not judged: 1 of 72 planned cases, in 1 group",
    )


@pytest.mark.parametrize(
    ("verdict", "what"),
    [
        ("suite error", "the suite itself raised an exception"),
        ("adapter error", "an adapter raised an exception or gave no outcome"),
    ],
)
def test_an_exception_is_told_as_one_everywhere(tmp_path: Path, verdict: str, what: str) -> None:
    digest = read_digest(make_run(tmp_path, Recipe(verdicts={CELL: [verdict]})))
    sentence = f"{what} in 1 case: no verdict on the implementation"
    assert digest.conclusion.reasons[0] == sentence
    summary, page = write_run_summary(digest, tmp_path / "summary.md"), write_run_page(digest, tmp_path / "index.html")
    assert all(sentence[1:] in text for text in (shown(digest, 400), summary.read_text(), page.read_text()))


def test_refusals_of_the_search_are_not_counted_beside_the_plan(tmp_path: Path) -> None:
    make_run(tmp_path, Recipe(verdicts={CELL: ["refused undocumented"] * 4}))

    def with_search(rows: list[Row]) -> list[Row]:
        refused = [row for row in rows if row["verdict"] == "refused undocumented"]
        beside = {"aspect": "search", "block": "search-values"}
        return [*rows, *(row | beside | {"case_id": f"{n:012x}"} for n in range(100) for row in refused)]

    rewrite(tmp_path, with_search)
    (reason,) = read_digest(tmp_path).conclusion.reasons
    assert reason.endswith(": 4 of 72 planned cases")


def test_a_class_of_calls_that_was_only_refused_is_a_gap_that_is_named(tmp_path: Path) -> None:
    verdicts = ["refused undocumented", "conforms", "refused undocumented", "refused as documented"]
    classes = iter([["padding"], ["dilation"], ["padding", "dilation"], ["ceil_mode"]])
    make_run(tmp_path, Recipe(verdicts={CELL: verdicts}))
    in_cell = {"operator": CELL[0], "dtype": CELL[1], "aspect": CELL[2]}.items()
    rewrite(
        tmp_path, lambda rows: [row | ({"classes": next(classes)} if in_cell <= row.items() else {}) for row in rows]
    )
    digest = read_digest(tmp_path)
    assert digest.conclusion.overall is Overall.INCOMPLETE
    sentence = (
        "refused without a known document that allows it: 2 of 72 planned cases; "
        "never run, only refused: padding of MaxPool2dWithIndicesBackward (float32)"
    )
    assert digest.conclusion.reasons == (sentence,)
    assert digest.never_run[["class", "refused"]].to_dict("records") == [{"class": "padding", "refused": 2}]
    assert "r1 u2" in shown(digest, 400)
    summary = write_run_summary(digest, tmp_path / "summary.md").read_text()
    assert sentence in summary
    assert "| torch-cpu | MaxPool2dWithIndicesBackward | float32 | padding | 2 |" in summary
    page = write_run_page(digest, tmp_path / "index.html").read_text()
    assert "2 refused undocumented" in page and "1 refused as documented" in page
    documented = read_digest(make_run(tmp_path / "other", Recipe(verdicts={CELL: ["refused as documented"] * 2})))
    assert "72 of 72 planned cases judged, none deviates. 2 calls refused as documented" in shown(documented, 400)
    summary = write_run_summary(documented, tmp_path / "summary.md").read_text()
    assert "Refused as documented, so never run: 2 calls." in summary


def test_a_summary_calls_nobody(tmp_path: Path) -> None:
    digest = read_digest(make_run(tmp_path, Recipe(record={"plan": "for @somebody\u202e"})))
    summary = write_run_summary(digest, tmp_path / "summary.md").read_text()
    assert "for @<!-- -->somebody" in summary and "\\u202e" in summary and "@somebody" not in summary


def test_a_run_that_conforms_says_how_many_deviate_and_are_waived(tmp_path: Path) -> None:
    digest = read_digest(make_run(tmp_path, Recipe(verdicts={CELL: ["waived", "waived"]})))
    text, summary = shown(digest, 400), write_run_summary(digest, tmp_path / "summary.md").read_text()
    assert all("70 conform, 2 deviate and are waived by" in each for each in (text, summary))
    assert not any("none deviates" in each for each in (text, summary))


def test_calls_that_nobody_planned_are_told_and_are_none_of_the_planned_cases(tmp_path: Path) -> None:
    plain = Recipe(operators=[CELL[0]], dtypes=[CELL[1]], aspects=[CELL[2]], cases=3)
    beside = replace(plain, aspects=[CELL[2], "neighbours"], verdicts={(*CELL[:2], "neighbours"): ["waived"] * 3})
    digest = read_digest(make_run(tmp_path, replace(beside, record={"mandatory": made_up_record(plain)["mandatory"]})))
    said = "3 of 3 planned cases judged, 3 conform, 3, among them 3 calls beside the plan, deviate and are waived by"
    assert said in shown(digest, 400)
    assert "3 cases judged, 3 planned" in write_run_page(digest, tmp_path / "index.html").read_text()


def test_a_budget_leaves_no_more_judged_cases_than_it_planned(tmp_path: Path) -> None:
    whole = read_digest(make_run(tmp_path, Recipe(verdicts={CELL: ["conforms", "waived"]}))).conclusion
    totals = dict(whole.totals) | {"judged": 7}
    assert replace(whole, totals=totals, planned=10, unasked=6).judged == 4, "three are neighbours"
    assert replace(whole, totals=totals, planned=0, unasked=0).judged == 7


def test_a_summary_writes_large_numbers_as_all_else_does(tmp_path: Path) -> None:
    recipe = Recipe(operators=[CELL[0]], dtypes=[CELL[1]], aspects=[CELL[2]], cases=1234)
    summary = write_run_summary(read_digest(make_run(tmp_path, recipe)), tmp_path / "summary.md").read_text()
    assert "All 1,234 cases that had to be judged were judged" in summary


def test_a_cell_without_any_row_is_a_gap(tmp_path: Path) -> None:
    planned = {"backend": "torch-cpu", "operator": "Other", "dtype": "float32", "index_dtype": "int64"}
    recipe = Recipe(record={"mandatory": [planned | {"aspect": "values", "planned": 5}]})
    digest = read_digest(make_run(tmp_path, recipe))
    assert digest.conclusion.overall is Overall.INCOMPLETE
    assert digest.gaps[["missing", "because"]].to_dict("records") == [{"missing": 5, "because": NEVER_ASKED}]
    # Cells may be told apart by any column.
    cells = [{"backend": "torch-cpu", "route": "contiguous", "planned": 72}, {"route": "channels_last", "planned": 1}]
    digest = read_digest(make_run(tmp_path / "routes", Recipe(record={"mandatory": cells})))
    assert digest.coverage["missing"].to_list() == [0, 1]


@pytest.mark.parametrize(("width", "shows_aspects"), [(80, False), (140, True)])
def test_the_table_fits_the_terminal(tmp_path: Path, width: int, shows_aspects: bool) -> None:
    aspects = ("values", "precision", "special_values", "layouts", "determinism", "scale")
    digest = read_digest(make_run(tmp_path, Recipe(aspects=aspects, verdicts={CELL: ["violates"]})))
    table = shown(digest, width).split("cases judged;")[0]
    assert "…" not in table
    assert "24 ✗1" in table
    assert ("determinism" in table) == shows_aspects


# Which verdict outweighs which, and what a kind of failure is.

CRASHED = {"backend": "b:C", "operator": "o", "verdict": "crashed", "checks_violated": ["survival"], "case": '{"a":1}'}
WRONG = CRASHED | {"verdict": "violates", "checks_violated": ["interval", "state"], "shrunk": '{"a":0}'}


def test_rows_of_a_list_that_are_no_cases_are_counted_by_reason() -> None:
    reasons = [
        "row 1 of a (b).csv (x): average pooling",
        "row 2 of a (b).csv (y (z)): average pooling",
        "row of another kind",
    ]
    columns = {"backend": "b", "verdict": str(Verdict.NOT_RUN)}
    rows = pa.Table.from_pylist([columns | {"reason": reason} for reason in reasons])
    counted = skip_reasons(rows)
    assert dict(zip(counted["reason"], counted["count"], strict=True)) == {
        "average pooling": 2,
        "row of another kind": 1,
    }


def test_the_graver_outweighs() -> None:
    assert set(BY_GRAVITY) == set(Overall)
    for graver, lighter in combinations(BY_GRAVITY, 2):
        assert gravest({lighter: True, graver: True}) is graver
        assert gravest({lighter: ["a cause"], graver: []}) is lighter
    assert gravest({}) is Overall.CONFORMS
    for verdict in Verdict:
        assert (verdict.overall is Overall.VIOLATES) is (verdict in FAILED)
        assert (verdict.overall is Overall.INCOMPLETE) is (verdict in SKIPPED)
        assert Overall.of_word(verdict.overall.word) is verdict.overall


def test_a_row_and_a_table_of_rows_agree_on_the_kind() -> None:
    rows = [CRASHED, WRONG]
    table = with_violated(pd.DataFrame(rows))
    assert [tuple(line) for line in table[list(KIND)].to_numpy()] == [kind_of(row) for row in rows]
    assert [what_failed(row) for row in rows] == ["crashed", "interval, state"]
    assert replay_line(WRONG) == """poolproof replay --backend b:C '{"a":0}'"""
