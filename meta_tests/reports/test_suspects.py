"""What failing cases have in common is found, in made-up tables and in real runs, and nothing where nothing is."""

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poolproof.references.layouts import CONTIGUOUS, LAYOUTS, MemoryLayout, extent
from poolproof.reports.clusters import FailureCluster, cluster_failures, clustering, clusters_of, describe, headline
from poolproof.reports.clusters.cluster import Bound
from poolproof.reports.clusters.conditions import best_condition
from poolproof.reports.clusters.terms import LACKS, Term, feature_column
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.history.entries import add, read_entries
from poolproof.reports.history.trends import issue_histories
from poolproof.reports.rows.failures import message
from poolproof.reports.rows.features import READ, feature_table, features_of, geometry_of
from poolproof.reports.rows.features import TensorLayout as Named
from poolproof.reports.rows.schema import COLUMNS
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.suites.cases.case import Case
from reports_made_up import ASPECTS, OPERATORS, Recipe, make_run
from shared_runs import FAILING, RealRun, RunOf
from shares import a_share
from suspect_rows import Row, failing, made_up


def found(rows: list[Row]) -> tuple[FailureCluster, ...]:
    return cluster_failures(rows)


def planes(row: Row) -> int:
    shape = json.loads(row["case"])["shape"]
    return int(shape[0] * shape[1])


def dilated(row: Row) -> bool:
    case = json.loads(row["case"])
    return max(case["kernel_size"]) > 1 and case["dilation"] == [2]


def chance(row: Row) -> float:
    """A number in [0, 1) that the row does not tell."""
    return int(row["case_id"][:2], 16) / 256


WIDTHS = {"float32": 4, "float16": 2}


def windows_of(row: Row) -> int:
    return int(row["windows"] // planes(row))


def terms_of(suspect: FailureCluster) -> list[str]:
    return sorted(map(str, suspect.terms))


def counted(suspect: FailureCluster) -> tuple[int, ...]:
    counts = suspect.counts
    return counts.failing, counts.conforming, counts.others, *counts.contrast


@pytest.mark.parametrize(
    ("fails", "terms"),
    [
        (dilated, ["dilation > 1"]),
        (lambda row: "gradients with NaN" in row["data"], ["gradients with NaN"]),
        (lambda row: planes(row) % 8 > 0, ["N*C mod 8 != 0"]),
        (lambda row: row["elements"] * WIDTHS[row["dtype"]] % 32 > 0, ["bytes of grad_input mod 32 != 0"]),
        (lambda row: windows_of(row) % 8 > 0, ["windows per plane mod 8 != 0"]),
        (lambda row: dilated(row) and row["dtype"] == "float16", ["dilation > 1", "half precision"]),
        (lambda row: row["route"] != "tiles", ["route among normal, scatter"]),
    ],
    ids=["a flag", "data", "a remainder", "bytes", "windows", "two terms", "a set of words"],
)
def test_a_cause_is_named_and_counted(fails: Callable[[Row], bool], terms: list[str]) -> None:
    rows = failing(made_up(), fails)
    number = sum(map(fails, rows))
    (suspect,) = found(rows)
    assert suspect.is_exact
    assert terms_of(suspect) == terms
    assert counted(suspect)[:3] == (number, 0, 0)
    beside = suspect.counts.contrast
    assert len(terms) > 1 or beside == (300 - number,)
    pairs = [f"{number} with {term.contrary}" for term, number in zip(suspect.terms, beside, strict=True)]
    when = "when" if any(word in terms[0] for word in (" != ", " among ")) else "with"
    alike = f"All {pairs[0].replace(' ', ' cases ', 1)} pass."
    assert describe(suspect) == (
        f"Fails {when} {' and '.join(map(str, suspect.terms))}: {number} of {number} cases (check interval). "
        f"{alike if len(terms) == 1 else 'Similar cases pass: ' + ' and '.join(pairs) + '.'}"
    )
    assert describe(suspect).count("scatter") <= 1, "a list is said once"
    assert suspect.kinds == ((("violates", "interval"), number),)


def test_what_is_asked_of_one_operator_alone_is_said_of_that_one() -> None:
    """Cases of the other one conform, and were not held to the check that all cases of the first break."""
    fails, conforms = "MaxPool2dWithIndicesBackward", {"checks_judged": ["written"]}
    rows = failing(made_up(), lambda row: row["operator"] == fails)
    (suspect,) = found([row if row["operator"] == fails else row | conforms for row in rows])
    number = sum(row["operator"] == fails for row in rows)
    assert describe(suspect) == f"{fails}: every case that check interval judges fails: {number} of {number} cases."


def test_numbers_have_thresholds_with_what_was_observed_beside_them() -> None:
    (suspect,) = found(failing(made_up(), lambda row: planes(row) >= 64))
    assert suspect.is_exact
    numbers = {planes(row) for row in made_up()}
    fails, conforms = min(number for number in numbers if number >= 64), max(n for n in numbers if n < 64)
    assert suspect.bounds == (Bound("N*C", fails, conforms),)
    few = failing(made_up(), lambda row: planes(row) in (12, 13, 33, 34))
    assert not any("among" in describe(suspect) for suspect in found(few))
    # A number is said rather than its remainder.
    rows = [row for row in made_up() if planes(row) == 36 or planes(row) % 64 != 36]
    (suspect,) = found(failing(rows, lambda row: planes(row) == 36))
    assert terms_of(suspect) == ["N*C = 36"]


@pytest.mark.thorough
def test_not_all_that_meet_it_fail() -> None:
    rows = failing(made_up(), lambda row: "gradients with NaN" in row["data"] and row["case_id"][0] in "01234567")
    (suspect,) = found(rows)
    assert terms_of(suspect) == ["gradients with NaN"]
    assert suspect.counts.conforming > 0 and not suspect.is_exact
    assert headline([suspect]) == describe(suspect)
    fail, conform = suspect.counts.failing, suspect.counts.conforming
    told = f"Fails only with gradients with NaN: {fail} of {fail + conform} cases (check interval). All "
    assert describe(suspect).startswith(told)
    # With others that fail it only goes with them, and so it does where it explains hardly more than it leaves.
    some = failing(rows, lambda row: "gradients with NaN" not in row["data"] and row["case_id"][0] in "01")
    assert describe(found(some)[0]).startswith("Goes with ")
    exact = failing(made_up(600), dilated)
    others = [row for row in exact if row["verdict"] == "conforms"][: sum(map(dilated, exact)) * 2 // 3]
    assert describe(found(failing(exact, lambda row: row in others))[0]).startswith("Goes with dilation > 1: ")


@pytest.mark.thorough
def test_several_checks_that_one_cause_breaks_are_one_suspect_and_two_causes_two() -> None:
    rows = failing(failing(made_up(), dilated), lambda row: dilated(row) and planes(row) % 2 == 0, "written")
    (suspect,) = found(rows)
    assert suspect.is_exact
    assert {kind for kind, _ in suspect.kinds} == {("violates", "interval"), ("violates", "written")}
    rows = failing(failing(made_up(800), dilated), lambda row: not dilated(row) and planes(row) >= 90, "written")
    first, second = found(rows)
    assert terms_of(first) == ["dilation > 1"]
    assert [bound.feature for bound in second.bounds] == ["N*C"]
    assert first.counts.failing + second.counts.failing == sum(row["verdict"] == "violates" for row in rows)
    assert first.is_exact and second.is_exact


def test_a_term_takes_contrast_that_diagnosis_did_not_make() -> None:
    """Whatever fails is dilated; of what is not, the plan has nothing, or too little."""
    rows = failing(made_up(), dilated)
    for kept in (0, 2, 3):
        plain = [row for row in rows if not dilated(row)]
        made = [row | {"aspect": "diagnosis", "block": "diagnosis-values"} for row in plain[kept:]]
        (suspect,) = found([row for row in rows if dilated(row)] + plain[:kept] + made)
        assert ("dilation > 1" in terms_of(suspect)) == (kept == 3)
    assert describe(suspect).endswith(" All 3 cases with dilation 1 pass.")
    # Cases of the plan and further ones are counted apart.
    made = [row | {"aspect": "diagnosis", "block": "diagnosis-values"} if n % 3 else row for n, row in enumerate(rows)]
    (suspect,) = found(made)
    number = sum(dilated(row) and row["aspect"] != "diagnosis" for row in made)
    further = sum(map(dilated, made)) - number
    counts = f"{number} of {number} cases and {further} of {further} further cases (check interval). "
    assert describe(suspect).startswith(f"Fails with dilation > 1: {counts}")


def test_neighbours_of_one_failing_case_are_no_condition_of_the_others() -> None:
    """What one failing case of the plan has, and all that diagnosis made of it, the other failing ones have not."""
    rows = [row | {"route": "plain"} for row in made_up()]
    made = [row | {"aspect": "diagnosis", "block": "diagnosis-values", "route": "rare"} for row in made_up(60, seed=1)]
    for of_plan in (1, 2):
        rows[:4] = [row | {"route": "rare" if n < of_plan else "plain"} for n, row in enumerate(rows[:4])]
        failed = failing(rows[:4] + made, lambda _: True)
        routes = [term for suspect in found(failed + rows[4:]) for term in suspect.terms if term.feature == "route"]
        assert bool(routes) == (of_plan == 2)


def test_a_symptom_of_nearly_all_that_were_held_to_it_is_said_without_a_condition() -> None:
    rows = made_up(40)
    (suspect,) = found(failing(rows, lambda row: row not in rows[:2]))
    assert describe(suspect) == "Nearly every case that check interval judges fails: 38 of 40 cases."
    # Of two checks that together break nearly every case each may break too few.
    half = failing(failing(rows, lambda row: row in rows[4:22]), lambda row: row in rows[22:], "written")
    (suspect,) = found([row | {"checks_judged": ["interval", "written"]} for row in half])
    assert describe(suspect) == "Nearly every case that checks written, interval judge fails: 36 of 40 cases."


def test_a_narrowed_run_speaks_of_no_more_than_it_asked() -> None:
    rows = [row | {"aspect": "layouts"} for row in made_up()]
    (suspect,) = found(failing(rows, dilated))
    assert describe(suspect).startswith("aspect layouts: fails with dilation > 1: ")
    one = [row | {"dtype": "float16"} for row in rows if row["operator"] == rows[0]["operator"]]
    (suspect,) = found(failing(one, dilated))
    assert describe(suspect).startswith(f"{rows[0]['operator']}, float16, aspect layouts: fails with dilation > 1: ")


def test_a_cause_names_scenarios_that_fail_of_those_that_were_asked() -> None:
    """What fails in two scenarios of seventeen is no feature of a call."""
    rows = [row | {"clause": f"way.{number % 17}"} for number, row in enumerate(made_up(51))]
    (suspect,) = found(failing(rows, lambda row: row["clause"] in ("way.3", "way.9") and chance(row) < 0.8))
    clauses = dict(Counter(row["clause"] for row in suspect.members))
    told = [f"{name} ({clauses[name]} of 3 cases)" for name in sorted(clauses, key=lambda name: -clauses[name])]
    number = sum(clauses.values())
    assert describe(suspect) == f"{number} cases fail (check interval), in 2 of 17 clauses: {' and '.join(told)}."


def test_what_passes_besides_is_said_where_nearly_every_case_fails() -> None:
    (suspect,) = found(failing(made_up(30), lambda _: True))
    passing = (("contract", 29), ("phases", 4), ("values", 3), ("ends", 2), ("huge", 1))
    told = describe(replace(suspect, passing=passing[:2]))
    assert told.endswith("All cases pass that it does not judge: 29 of aspect contract and 4 of aspect phases.")
    assert describe(replace(suspect, passing=passing)).endswith(", 3 of aspect values and 3 of other aspects.")


def test_a_condition_that_is_not_sharp_has_no_term_that_excludes_little() -> None:
    def terms(exclude: int) -> list[str]:
        kinds = [("abc", True)] * 107 + [("abc", False)] * 80 + [("ac", False)] * exclude + [("ab", False)] * exclude
        kinds += [("bc", False)] * 260
        columns = {name: feature_column(name, [name in features for features, _ in kinds]) for name in ("a", "b", "c")}
        failing = np.array([fails for _, fails in kinds])
        condition = best_condition(columns, failing, np.ones(len(kinds), np.bool_))
        return [] if condition is None else sorted(map(str, condition[0]))

    assert (terms(38), terms(160)) == (["a"], ["a", "b", "c"])


def test_data_that_hide_a_fault_are_no_cause() -> None:
    (suspect,) = found(failing(made_up(), dilated))
    terms = (*suspect.terms, Term("gradients with -0.0", LACKS))
    told = describe(replace(suspect, condition=terms, counts=replace(suspect.counts, contrast=(155, 22))))
    assert told.startswith("Fails with dilation > 1, except with gradients with -0.0: ")
    told = describe(replace(suspect, condition=terms[1:], counts=replace(suspect.counts, contrast=(22,))))
    assert told.startswith("Fails with no gradients with -0.0: ")


def test_a_legal_call_that_is_refused_is_told_from_others() -> None:
    rows = [{**dict.fromkeys(READ), "case": '{"tensors":{}}', "clause": clause} for clause in ("", "2d-bwd.plane")]
    assert [features_of(row)["a legal call"] for row in rows] == [True, False]


def test_refusals_have_causes_as_failures_do() -> None:
    rows = [row | {"verdict": "refused undocumented"} if dilated(row) else row for row in made_up()]
    assert not found(rows)
    (suspect,) = cluster_failures(rows, failed={Verdict.UNDOCUMENTED})
    number = sum(map(dilated, rows))
    assert describe(suspect) == (
        f"Is refused with dilation > 1: {number} of {number} cases. All {300 - number} cases with dilation 1 pass."
    )
    few = [row | {"verdict": "refused undocumented"} if number == 0 else row for number, row in enumerate(made_up())]
    (suspect,) = cluster_failures(few, failed={Verdict.UNDOCUMENTED})
    assert describe(suspect).endswith(": 1 case is refused.")


def test_a_guess_that_another_case_or_the_probe_excludes_is_not_printed() -> None:
    guess = "; declared acc32; all of it would be right as native"
    rows = [row | {"reason": f"got 1, expected 2{guess}"} for row in failing(made_up(), dilated)]
    (suspect,) = found(rows)
    assert suspect.message == f"got 1, expected 2{guess}"
    assert replace(suspect, probed=("the probe of it: native admits all",)).message.endswith(guess)
    assert replace(suspect, probed=("the probe of it: no model admits this",)).message == "got 1, expected 2"
    same_place = [row for row in suspect.members[1:] if (row["operator"], row["dtype"]) == suspect.place]
    same_place[0]["reason"] = "got 3, expected 4"
    assert suspect.message == "got 1, expected 2"


def test_the_clause_of_a_call_is_quoted_with_what_came_of_it() -> None:
    row = {"reason": "the call ended by signal SIGFPE", "clause": "2d-bwd.stride.positive"}
    statement = "Every value of stride is at least 1."
    assert message(row | {"statement": statement}) == f"{row['reason']}; 2d-bwd.stride.positive: {statement}"
    quoted = {
        "reason": f"got 0, expected 161002; c: {statement} Here all is as in the legal call 'base'",
        "statement": statement,
    }
    assert message(row | quoted) == quoted["reason"]
    of_two = {"reason": "got 0; 2d-bwd.stride.positive: stride.", "statement": f"{statement} It comes before: another."}
    assert message(row | of_two) == of_two["reason"]
    assert message({"reason": "legal", "clause": "", "statement": "Legal: drawn."}) == "legal"


def test_all_none_and_too_few() -> None:
    rows = made_up()
    assert not found(rows)
    (suspect,) = found(failing(made_up(30), lambda _: True))
    assert describe(suspect) == "Every case that check interval judges fails: 30 of 30 cases." and suspect.has_condition
    (suspect,) = found(failing(rows, lambda row: row is rows[17]))
    told = f"{rows[17]['operator']} {rows[17]['dtype']}: broken interval"
    place = f"{rows[17]['operator']}, {rows[17]['dtype']}, aspect {rows[17]['aspect']}"
    assert describe(suspect) == f"{place}: one case fails (check interval)."
    assert headline([suspect]) == f"One case fails: {told}"
    assert suspect.smallest["case_id"] == rows[17]["case_id"]
    # Calls of a contract have no dtype.
    (suspect,) = found(
        failing([row | {"dtype": ""} for row in rows], lambda row: row["case_id"] == rows[17]["case_id"])
    )
    assert describe(suspect) == f"{rows[17]['operator']}, aspect {rows[17]['aspect']}: one case fails (check interval)."
    assert headline([suspect]) == f"One case fails: {rows[17]['operator']}: broken interval"
    # Whatever they have in common.
    broken = [row | {"gradient": "cancellation"} if number in (17, 60) else row for number, row in enumerate(rows)]
    (suspect,) = found(failing(broken, lambda row: row["gradient"] == "cancellation"))
    assert not suspect.has_condition
    assert headline([suspect]).startswith("2 cases fail: ") and suspect.smallest["reason"] in headline([suspect])
    # Deaths are held against all that survived.
    (suspect,) = found([row | {"verdict": "crashed"} if dilated(row) else row for row in rows])
    assert suspect.is_exact and suspect.kinds[0][0] == ("crashed", "survival")


@pytest.mark.parametrize("seed", a_share(range(5)))
def test_chance_is_no_condition(seed: int) -> None:
    chosen = set(random.Random(seed).sample(range(300), 12))
    rows = made_up(seed=seed)
    numbers = {row["case_id"]: number for number, row in enumerate(rows)}
    (suspect,) = found(failing(rows, lambda row: numbers[row["case_id"]] in chosen))
    assert not suspect.has_condition
    assert suspect.counts.failing == 12
    assert describe(suspect).endswith(" pass, without a known condition.")
    assert headline([suspect]) == describe(suspect)
    assert headline([suspect, suspect]).endswith("cases fail, and no condition was found")


def test_only_rows_that_judged_the_check_speak_against_a_condition() -> None:
    """Half of the rows judge `repeat`; what they have in common besides is not seen in the others."""
    rows = made_up()
    asked = [row | {"checks_judged": ["interval", "repeat"]} if row["dtype"] == "float16" else row for row in rows]
    broken = failing(asked, lambda row: row["dtype"] == "float16" and dilated(row), "repeat")
    (suspect,) = found(broken)
    assert terms_of(suspect) == ["dilation > 1"] and suspect.is_exact
    assert suspect.counts.contrast[0] == sum(row["dtype"] == "float16" and not dilated(row) for row in rows)


def test_what_was_not_judged_or_is_waived_or_of_another_backend_says_nothing() -> None:
    rows = failing(made_up(), dilated)
    (alone,) = found(rows)
    for verdict in ("waived", "refused as documented", "not run", "suite error"):
        others = [row | {"verdict": verdict} for row in made_up(seed=1)]
        (suspect,) = found([*rows, *others])
        assert counted(suspect) == counted(alone), verdict
        assert not found([*made_up(), *others]), verdict
    other = [row | {"backend": "other"} for row in failing(made_up(), lambda row: planes(row) >= 64)]
    told = {suspect.backend: str(suspect.terms[0]) for suspect in found([*rows, *other])}
    assert told.keys() == {"mine", "other"} and told["mine"] == "dilation > 1"


def test_windows_are_those_of_the_reference() -> None:
    lines = [
        {"operator": "MaxPool2dWithIndices", "shape": [2, 7, 9], "kernel_size": [3], "ceil_mode": True},
        {"operator": "MaxPool3dWithArgmax", "shape": [1, 1, 7, 8, 9], "kernel_size": [2, 3, 4], "stride": [3, 2, 5]}
        | {"padding": [1, 1, 2], "dilation": [1, 2, 1], "ceil_mode": True},
        {"operator": "MaxPool2dWithMask", "shape": [1, 5, 5], "kernel_size": [2, 2], "stride": [4], "padding": [1]},
        {"operator": "AdaptiveMaxPool3d", "shape": [1, 4, 5, 6], "output_size": [2, 3, 4]},
    ]
    for line in [*lines, *(json.loads(row["case"]) for row in made_up(60))]:
        case = Case.from_record(line)
        windows = geometry_of(case.operator, json.loads(case.to_json()))
        assert windows is not None
        assert windows.size == case.spatial_shape
        assert windows.count == tuple(axis.windows for axis in case.axes)
        if not windows.is_adaptive:
            lasts = [int(axis.positions[-1, -1]) + 1 - axis.size for axis in case.axes]
            assert list(windows.beyond) == lasts


def test_layouts_are_told_by_their_names_and_columns_by_theirs() -> None:
    shape = (2, 3, 4, 5, 6)
    dense = CONTIGUOUS.place(shape, 3).strides
    for name, layout in LAYOUTS.items():
        placed, named = MemoryLayout(name).place(shape, 3), Named(name)
        assert named.repeats == bool(layout.shared), name
        assert named.has_offset == (placed.start > 0), name
        assert named.has_gaps == (placed.strides != dense and extent(shape, placed.strides) > 0), name
    assert set(READ) <= {column.name for column in COLUMNS}
    rows = [{"case": "{", "operator": "MaxPool2dWithMask", "clause": "c", "dtype": "", "aspect": "x"}]
    assert feature_table(rows) == {"operator": ["MaxPool2dWithMask"], "clause": ["c"]}, "no case"


@pytest.mark.parametrize(
    ("layout", "gaps", "others"),
    [
        ("contiguous", "", ""),
        ("stepped_n2", "batch items", ""),
        ("narrowed_c", "batch items", ""),
        ("stepped_c2", "planes", ""),
        ("narrowed_h", "slices", ""),
        ("padded_rows", "rows", ""),
        ("sliced+3", "cells", ""),
        ("channels_last", "batch items, cells", "planes"),
        ("transposed_nc", "planes", "batch items"),
        ("expanded_n", "", "batch items"),
        ("expanded_h", "slices", "rows, repeated"),
        ("nhwc", "", ""),
        ("nhwc_stepped_c2", "planes", ""),
        ("damaged", "", ""),
    ],
)
def test_steps_from_neighbour_to_neighbour_are_told(layout: str, gaps: str, others: str) -> None:
    """``gaps`` are larger than what neighbours fill, ``others`` smaller."""
    call = {"operator": "MaxPool3dWithArgmax", "shape": [2, 3, 4, 5, 6], "kernel_size": [2]}
    for tensor, kind in (("self", "an input"), ("out", "an output")):
        line = json.dumps(call | {"layouts": {tensor: layout}})
        told = features_of({"operator": call["operator"], "case": line, "dtype": "float32"})
        assert {word for word in _WORDS if told[f"a gap between {word} of {kind}"]} == set(
            filter(None, gaps.split(", "))
        )
        uneven = {word for word in _WORDS if told[f"{word} of {kind} not side by side"]}
        repeated = {"repeated"} if told[f"cells of a plane of {kind} repeated"] else set()
        assert uneven | repeated == set(filter(None, f"{gaps}, {others}".split(", ")))


_WORDS = ("batch items", "planes", "slices", "rows", "cells")


@pytest.mark.parametrize(("size", "count", "rounds"), [(10, 5, False), (7, 13, True), (64, 1000, True)])
def test_bounds_of_adaptive_windows_that_float32_rounds_are_told(size: int, count: int, rounds: bool) -> None:
    case = {"operator": "AdaptiveMaxPool2d", "shape": [1, 1, size], "output_size": [1, count]}
    row = {"operator": case["operator"], "case": json.dumps(case), "dtype": "float32"}
    assert features_of(row)["window bounds that float32 rounds"] == rounds


@pytest.mark.parametrize("real", FAILING, ids=lambda real: real.name)
@pytest.mark.thorough
def test_every_failing_case_of_a_real_run_belongs_to_a_suspect(real: RealRun, run_of: RunOf) -> None:
    rows = read_rows(run_of(real)).to_pylist()
    failed, told = [row["case_id"] for row in rows if row["verdict"] in FAILED], found(rows)
    assert sum(number for suspect in told for _, number in suspect.kinds) == len(failed)
    assert 1 <= len(told) <= 2
    assert {suspect.smallest["case_id"] for suspect in told} <= set(failed)


@pytest.mark.thorough
def test_what_makes_a_part_of_many_rows_fail_is_said() -> None:
    """In half precision some calls wait for others: among all rows, most of which are float32, it hides."""

    def waits(row: Row) -> bool:
        return row["dtype"] == "float16" and (planes(row) < 30 or chance(row) < 0.4)

    first, *_ = found(failing(made_up(1_000), waits))
    assert first.counts.is_sharp
    assert terms_of(first) == ["N*C < 30", "half precision"]


def test_of_very_many_rows_some_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of failing and of conforming ones as many; the headline counts the failing ones that are left."""
    digest = read_digest(make_run(tmp_path, Recipe(verdicts=WRONG)))
    (everything,) = clusters_of(digest.folder)
    monkeypatch.setattr(clustering, "MAX_SEARCHED", 20)
    (some,) = digest.clusters
    assert terms_of(some) == terms_of(everything) and some.cases < everything.cases
    assert counted(some) == (20, 0, 0, 20)
    left = everything.counts.failing - 20
    assert headline([some]) == f"{describe(some)} {left} more cases fail, not searched for causes."


@pytest.mark.thorough
def test_what_no_row_tells_is_one_suspect_and_not_one_for_each_thing_that_goes_with_it() -> None:
    def fails(row: Row) -> bool:
        """By chance, which is frequent where planes are many, and where windows are far apart."""
        is_far = json.loads(row["case"])["stride"][-1] == 3
        return chance(row) < (0.55 if planes(row) >= 60 else 0.45 if is_far else 0.01)

    rows = failing(made_up(800), fails)
    number = sum(map(fails, rows))
    claimed, *others = found(rows)
    assert claimed.has_condition and not any(each.has_condition for each in others)
    assert sum(len(each.cases) for each in (claimed, *others)) == number
    assert len(claimed.cases) > claimed.counts.failing
    assert describe(claimed).endswith(f" {claimed.counts.others} other cases fail, too.")


def test_what_fails_in_another_way_is_another_suspect_however_vague() -> None:
    rows = failing(made_up(800), lambda row: planes(row) >= 60 and chance(row) < 0.6)
    rows = failing(rows, lambda row: planes(row) < 40 and dilated(row) and chance(row) > 0.5, "repeat")
    claimed = [each.kinds[0][0][1] for each in found(rows) if each.has_condition]
    assert sorted(claimed) == ["interval", "repeat"]


@pytest.mark.thorough
def test_a_term_that_does_away_with_most_exceptions_is_said() -> None:
    rows = failing(made_up(1600), lambda row: dilated(row) and planes(row) >= 2)
    rows[next(number for number, row in enumerate(rows) if row["verdict"] == "violates")]["verdict"] = "conforms"
    (suspect,) = found(rows)
    assert terms_of(suspect) == ["N*C >= 2", "dilation > 1"]
    assert (suspect.counts.conforming, suspect.counts.others) == (1, 0)


def test_inputs_and_outputs_of_a_call_are_told_apart() -> None:
    forward, backward = "MaxPool2dWithIndices", "MaxPool2dWithIndicesBackward"
    for operator, layouts, strided in (
        (forward, {"out": "sliced"}, {"a strided output", "a strided out"}),
        (forward, {"indices": "sliced+3"}, {"a strided output", "strided indices"}),
        (forward, {"self": "sliced"}, {"a strided input", "a strided self"}),
        (backward, {"indices": "sliced"}, {"a strided input", "strided indices"}),
        (backward, {"grad_input": "sliced"}, {"a strided output", "a strided grad_input"}),
        (backward, {"grad_output": "contiguous_slice"}, set()),
    ):
        case = {"operator": operator, "shape": [1, 2, 4, 4], "kernel_size": [2], "layouts": layouts}
        told = feature_table([{"case": json.dumps(case), "operator": operator}])
        assert {name for name, (value,) in told.items() if "strided" in name and value} == strided


# What is wrong over a history: it begins, stays, ends, and comes back.

WRONG = {(operator, "float16", aspect): ["violates"] * 4 for operator in OPERATORS for aspect in ASPECTS}
BEGAN, DAY = 1_800_000_000.0, 86_400.0


@pytest.mark.parametrize(
    ("days", "failing_days", "expected"),
    [
        pytest.param(["smoke"] * 3, (1, 2), (1, 2, None, 2), id="stays"),
        pytest.param(["smoke"] * 4, (0, 1), (0, 1, 2, 2), id="is gone"),
        pytest.param(["smoke"] * 3, (0, 2), (2, 2, None, 1), id="comes back and begins anew"),
        pytest.param(["smoke", "smoke", "acceptance"], (1,), (1, 1, None, 1), id="another plan ends nothing"),
        pytest.param(["smoke"], (), None, id="nothing was wrong"),
    ],
)
def test_the_course_of_an_issue(
    tmp_path: Path, days: list[str], failing_days: tuple[int, ...], expected: tuple[int | None, ...] | None
) -> None:
    """Of one run a day, each of a plan; first, last and first good day, and on how many days it was wrong."""
    for day, plan in enumerate(days):
        began = {"plan": plan, "finished": BEGAN + day * DAY + 60}
        verdicts, product = (WRONG, f"A{day}") if day in failing_days else ({}, "A9")
        recipe = Recipe({"npu": product}, seed=day, started=BEGAN + day * DAY, verdicts=verdicts, record=began)
        add(tmp_path / "history", make_run(tmp_path / f"run{day}", recipe))
    courses = issue_histories(read_entries(tmp_path / "history"))
    if expected is None:
        assert courses == []
        return
    (course,) = courses
    times = [None if time is None else round((time - BEGAN) / DAY) for time in (course.since, course.last, course.gone)]
    assert (*times, course.runs) == expected
    assert course.condition == ("dtype",)
    assert course.sentence.startswith("Fails when dtype = float16: ")
    assert course.products == [f"A{day}" for day in failing_days if day >= times[0]]


def test_what_a_narrower_run_does_not_ask_is_not_gone(tmp_path: Path) -> None:
    narrowed = {"plan_cases": 720}
    for day, (verdicts, more) in enumerate([(WRONG, {}), ({}, narrowed), ({}, {})]):
        began = {"finished": BEGAN + day * DAY + 60, **more}
        recipe = Recipe(seed=day, started=BEGAN + day * DAY, verdicts=verdicts, record=began)
        add(tmp_path / "history", make_run(tmp_path / f"run{day}", recipe))
        (course,) = issue_histories(read_entries(tmp_path / "history"))
        assert (course.is_unseen, course.gone is not None) == (day > 0, day == 2)
