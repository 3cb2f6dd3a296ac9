"""Precision of a run's results: per operator, dtype and model, beside published standards, and backend by backend.

Only rows with statistics count, of backwards that ran, without cases beside the plan. A row is *right* if it conforms,
*wrong* if an element is outside its interval; one that breaks another claim is neither.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from poolproof.references.summary import ULP_CLASSES
from poolproof.reports.figures.quantities import NEEDED, add_quantities
from poolproof.reports.figures.tables import CONFORMS, DRAWN_AGAIN, PRECISION, Record, precision, records
from poolproof.reports.rows.checks import SEARCH, block_beside_plan
from poolproof.reports.rows.store import having, read_rows
from poolproof.reports.rows.verdicts import Verdict

_GROUP = ("backend", "operator", "dtype", "model")

_ERRORS = (*ULP_CLASSES, "ulp_nonfinite")
HISTOGRAM = tuple(zip(_ERRORS, ("0", "≤ ½", "≤ 1", "≤ 2", "≤ 4", "≤ 8", "≤ 32", "> 32", "not finite"), strict=True))
"""Columns of the histogram of |y - S| in ulps of S, with their ranges."""

_CLASSES = ("k_cells", "k_error", "k_bound")
_COLUMNS = dict.fromkeys((*_GROUP, "case_id", "mere", "repeat_bitwise_equal", *_CLASSES, *PRECISION))
_IS_MEASURED = (pc.field("n") > 0) & pc.field("k_cells").is_valid()
_IS_STEERED = pc.field("block") == block_beside_plan(SEARCH, "precision")
"""Filter for the searches for large errors."""

HAS_STATISTICS = _IS_MEASURED & DRAWN_AGAIN

DTYPES = ("float64", "float32", "float16", "bfloat16")

MAX_WORST = 3
"""Most of the worst cases to show per operator, dtype and model."""


@dataclass(frozen=True)
class Multiplicity:
    """Cells that more than half of ``most`` gradients reach, a power of two, over all right rows.

    ``cells`` is their number. ``error`` and ``bound`` are the largest, in ulps of the larger of the sums of positive
    and of negative gradients.
    """

    most: int
    cells: int
    error: float
    bound: float

    @property
    def label(self) -> str:
        return str(self.most) if self.most <= 2 else f"{self.most // 2 + 1}-{self.most}"

    def with_those_of(self, other: Multiplicity) -> Multiplicity:
        error, bound = max(self.error, other.error), max(self.bound, other.bound)
        return Multiplicity(self.most, self.cells + other.cells, error, bound)


def precision_by_model(folder: Path) -> list[Record]:
    """Return the precision of each operator and dtype on each backend, by its declared accumulation model.

    Each record has the columns of `tables.precision` for right rows (None without any), and:

    - ``wrong``: cases with an element outside its interval; ``waived``: those of them with a waiver
    - ``counts``: the histogram of all cells
    - ``uncertainty``: the bias that chance may cause
    - ``mere``: largest of any right row, like ``max_abs_err`` and ``mare``, as acceptance standards name them
    - ``repeated``: repeated cases; ``differing``: those with other bits; ``spread``: their largest difference in
      representable values
    - ``worst``: right rows closest to their bounds
    """
    table = read_rows(folder, list(_COLUMNS), HAS_STATISTICS)
    groups = add_quantities(table).to_pandas().groupby(list(_GROUP), sort=True)
    of_right = precision(table, _GROUP).reindex(groups.size().index).reset_index()
    models = [combined | _precision(rows) for combined, (_, rows) in zip(records(of_right), groups, strict=True)]
    _add_calls(folder, [row for one in models for row in one["worst"]])
    return sorted(models, key=lambda one: (one["backend"], one["operator"], DTYPES.index(one["dtype"])))


Errors = tuple[str, str, tuple[Multiplicity, ...]]
"""Dtype, accumulation model, and errors by the number of gradients in a cell."""


def errors_by_dtype(found: Sequence[Record]) -> dict[str, list[Errors]]:
    """Return each backend's largest errors and bounds over all operators, per dtype and model."""
    parts = defaultdict[tuple[str, str, str], dict[int, Multiplicity]](dict)
    for one in found:
        for own in one["multiplicities"]:
            merged = parts[one["backend"], one["dtype"], one["model"]]
            merged[own.most] = own.with_those_of(merged[own.most]) if own.most in merged else own
    backends = defaultdict[str, list[Errors]](list)
    for backend, dtype, model in sorted(parts, key=lambda key: (key[0], DTYPES.index(key[1]), key[2])):
        classes = parts[backend, dtype, model]
        backends[backend].append((dtype, model, tuple(classes[most] for most in sorted(classes))))
    return backends


def worst_searched(folder: Path, found: Sequence[Record]) -> dict[str, list[Record]]:
    """Return each backend's largest searched error, per dtype, model and class of `Multiplicity`.

    ``error`` and ``bound`` are of one correct case, in ulps. ``planned`` is the plan's largest error in ``found``, a
    result of `precision_by_model`; None if the plan has no such cell.
    """
    columns = ["backend", "dtype", "model", "case_id", *_CLASSES]
    rows = read_rows(folder, columns, _IS_MEASURED & _IS_STEERED & CONFORMS).to_pandas().explode(list(_CLASSES))
    classes = rows.assign(number=rows.groupby(level=0).cumcount())
    classes = classes[(classes["k_cells"] > 0) & (classes["number"] > 0)].dropna(subset=["k_error"])
    kind = ["backend", "dtype", "model", "number"]
    worst = classes.sort_values(["k_error", "case_id"], ascending=[False, True]).drop_duplicates(kind)
    lines = records(worst.rename(columns={"k_error": "error", "k_bound": "bound"}))
    planned = {
        (backend, dtype, model, one.most): one.error
        for backend, errors in errors_by_dtype(found).items()
        for dtype, model, multiplicities in errors
        for one in multiplicities
    }
    for line in lines:
        about = Multiplicity(2 ** line["number"], 0, line["error"], line["bound"])
        key = (line["backend"], line["dtype"], line["model"], about.most)
        line |= {"label": about.label, "planned": planned.get(key)}
    _add_calls(folder, lines)
    lines.sort(key=lambda line: (line["backend"], DTYPES.index(line["dtype"]), line["model"], line["number"]))
    return {backend: list(own) for backend, own in groupby(lines, itemgetter("backend"))}


def _precision(rows: pd.DataFrame) -> Record:
    right, wrong = rows[rows["verdict"] == Verdict.CONFORMS], rows[rows["n_reject"] > 0]
    inexact = int(right["inexact"].sum())
    worst = right[right["margin_min"].notna()].nsmallest(MAX_WORST, "margin_min", keep="first")
    repeated = rows[rows["repeat_n"] > 0]
    differing = repeated[~repeated["repeat_bitwise_equal"].astype(bool)]
    return {
        "cases": len(rows),
        "wrong": len(wrong),
        "waived": int((wrong["verdict"] == Verdict.WAIVED).sum()),
        "counts": {name: int(rows[name].sum()) for name in ("n", *_ERRORS)},
        "uncertainty": 1.0 / math.sqrt(inexact) if inexact else 0.0,
        "mere": _largest(right["mere"]),
        "repeated": len(repeated),
        "differing": len(differing),
        "spread": _largest(differing["repeat_max_ulp_spread"]) or 0.0,
        "multiplicities": tuple(_multiplicities(right)),
        "worst": records(worst[["case_id", "backend", "largest_error", "margin_min"]]),
    }


def _largest(values: pd.Series) -> float | None:
    return float(values.max()) if values.notna().any() else None


def _multiplicities(rows: pd.DataFrame) -> Iterator[Multiplicity]:
    """Combine the classes of ceil(log2 k) over all rows; each row has a list of classes."""
    if rows.empty:
        return
    lists = pd.DataFrame({name: np.concatenate(rows[name].to_list()) for name in _CLASSES})
    lists = lists.replace({"k_bound": {np.inf: 0.0}})
    number = np.concatenate([np.arange(len(cells)) for cells in rows["k_cells"]])
    classes = lists.groupby(number).agg({"k_cells": "sum", "k_error": "max", "k_bound": "max"}).fillna(0.0)
    for number, cells, error, bound in classes[classes["k_cells"] > 0].itertuples(name=None):
        yield Multiplicity(2**number, int(cells), error, bound)


def agreements(folder: Path) -> list[Record]:
    """Return the disagreements of standards and interval, per backend and standard; per backend most first.

    - ``judged``: rows, by dtype; ``failed_right``: the right ones that the standard fails
    - ``wrong``: wrong rows; ``passed_wrong``: those that it passes
    - ``disagreements``: the sum of both
    - ``false_alarm``, ``miss``: a case of either, or None
    """
    columns = ["backend", "dtype", "case_id", "n_reject", "standards_passed", "standards_failed"]
    table = read_rows(folder, columns, HAS_STATISTICS & pc.field("standards_passed").is_valid())
    verdicts = pd.concat([_verdicts(table, "standards_passed", True), _verdicts(table, "standards_failed", False)])
    tables: list[Record] = []
    for (backend, standard), lines in verdicts.groupby(["backend", "standard"], sort=True):
        wrong, passed = lines["n_reject"] > 0, lines["passed"]
        alarms, misses = lines[~wrong & ~passed], lines[wrong & passed]
        about = {"backend": str(backend), "standard": str(standard), "wrong": int(wrong.sum())}
        about |= {"passed_wrong": len(misses), "disagreements": len(alarms) + len(misses)}
        counted = {"judged": _per_dtype(lines), "failed_right": _per_dtype(alarms)}
        tables.append(about | counted | {"false_alarm": _least_wrong(alarms), "miss": _least_wrong(misses)})
    _add_calls(folder, [row for one in tables for row in (one["false_alarm"], one["miss"]) if row])
    return sorted(tables, key=lambda one: (one["backend"], -one["disagreements"]))


def _verdicts(table: pa.Table, column: str, passed: bool) -> pd.DataFrame:
    parents = pc.list_parent_indices(table[column])
    chosen = table.select(["backend", "dtype", "case_id", "n_reject"]).take(parents)
    names = pc.list_flatten(table[column])
    return chosen.append_column("standard", names).to_pandas().assign(passed=passed)


def _per_dtype(lines: pd.DataFrame) -> dict[str, int]:
    return {str(dtype): int(number) for dtype, number in lines.groupby("dtype", sort=True).size().items()}


def _least_wrong(lines: pd.DataFrame) -> Record | None:
    """Return the row with the fewest wrong elements, of these the one of the least id, for a repeatable choice."""
    first = lines.sort_values(["n_reject", "case_id"])[["case_id", "backend"]].head(1)
    return next(iter(records(first)), None)


def backend_comparisons(folder: Path) -> list[Record]:
    """Compare every two backends on their common cases of one operator and dtype, each with the exact sums.

    ``cases`` counts all common cases. ``wrong`` counts those with an element of either backend outside its interval;
    the other numbers leave them out.
    """
    columns = ["backend", "operator", "dtype", "case_id", "output_digest"]
    columns += ["mean_abs_err", "n", "n_bitexact", "n_reject"]
    rows = read_rows(folder, list(dict.fromkeys((*columns, *NEEDED))), HAS_STATISTICS)
    frame = add_quantities(rows).select([*columns, "largest_error"]).to_pandas()
    frame = frame.drop_duplicates(["backend", "case_id"])
    runs = dict(list(frame.groupby("backend")))
    pairs: list[Record] = []
    for first, second in combinations(runs, 2):
        both = runs[first].merge(runs[second], on=["case_id", "operator", "dtype"], suffixes=_SIDES)
        for (operator, dtype), own in both.groupby(["operator", "dtype"], sort=True):
            about = {"first": first, "second": second, "operator": str(operator), "dtype": str(dtype)}
            pairs.append(about | _compare_backends(own))
    return pairs


_SIDES = ("_1", "_2")


def _compare_backends(both: pd.DataFrame) -> Record:
    wrong = [both[f"n_reject{side}"] > 0 for side in _SIDES]
    rows = both[~(wrong[0] | wrong[1])]
    return {
        "cases": len(both),
        "wrong": [int(one.sum()) for one in wrong],
        "same_bits": int((rows["output_digest_1"] == rows["output_digest_2"]).sum()),
        "first_nearer": int((rows["mean_abs_err_1"] < rows["mean_abs_err_2"]).sum()),
        "second_nearer": int((rows["mean_abs_err_2"] < rows["mean_abs_err_1"]).sum()),
        "largest_error": [float(rows[f"largest_error{side}"].max()) for side in _SIDES],
        "exact": [float(rows[f"n_bitexact{side}"].sum() / max(rows[f"n{side}"].sum(), 1)) for side in _SIDES],
    }


def _add_calls(folder: Path, cases: Sequence[Record]) -> None:
    """Add the columns that show a case again."""
    ids = dict.fromkeys(case["case_id"] for case in cases)
    table = read_rows(folder, ["backend", "case_id", "case", "given"], having("case_id", ids))
    calls = {(row["backend"], row["case_id"]): row for row in table.to_pylist()}
    for case in cases:
        case |= calls[case["backend"], case["case_id"]]
