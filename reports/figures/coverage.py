"""Coverage: the mandatory groups of a run and their rows, and the classes of factors that met in judged calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS
from poolproof.reports.figures.tables import COUNTS as ENDED
from poolproof.reports.figures.tables import DISJOINT, FURTHER, commonest_reasons, counts, records
from poolproof.reports.rows.factors import BY_NAME, Factor, Scope
from poolproof.reports.rows.features import READ_OF_CALL
from poolproof.reports.rows.meetings import TOGETHER, FactorCoverage, share
from poolproof.reports.rows.schema import GROUP
from poolproof.reports.rows.store import having, read_rows
from poolproof.reports.rows.verdicts import JUDGED, Verdict

NEVER_ASKED = "never run"
"""Reason of a case without a row."""

COUNTS = ("planned", "judged", "refused", "unasked", "missing", "because")
"""Columns of a coverage table besides those that identify the groups."""

MandatoryGroup = Mapping[str, Any]
"""A mandatory group: columns with the values of its rows, and ``planned``, the number of rows."""


def group_columns(mandatory: Sequence[MandatoryGroup]) -> list[str]:
    return list(dict.fromkeys(name for group in mandatory for name in group if name != "planned"))


def group_text(line: Mapping[str, Any]) -> str:
    return " ".join(str(value) for name, value in line.items() if name not in COUNTS and value not in (None, ""))


def coverage(rows: pa.Table, mandatory: Sequence[MandatoryGroup], is_used_up: bool = False) -> pd.DataFrame:
    """Return a line per group with the columns `COUNTS`; ``because`` is the commonest reason for missing cases.

    ``refused`` counts the missing cases with a refusal that no document allows. If a budget ``is_used_up``, cases
    without a row are ``unasked``, not missing, if others of their subject and aspect have one.
    """
    needed = {*group_columns(mandatory), "aspect", "block", "verdict", "reason"}
    rows = rows.select([name for name in rows.column_names if name in needed]).filter(~FURTHER)
    by_columns: dict[tuple[str, ...], list[MandatoryGroup]] = {}
    for group in mandatory:
        by_columns.setdefault(tuple(group_columns([group])), []).append(group)
    lines, recorded = [], Counter[tuple[Any, ...]]()
    for columns, groups in by_columns.items():
        ended = {tuple(line[name] for name in columns): line for line in records(counts(rows, columns).reset_index())}
        reasons = commonest_reasons(rows, columns)
        for group in groups:
            key = tuple(group[name] for name in columns)
            ends = Counter({name: ended[key][name] for name in ENDED} if key in ended else {})
            number = sum(ends[name] for name in DISJOINT)
            recorded[_part_of(group)] += number
            line = {"judged": ends["judged"], "refused": ends["undocumented"], "unasked": group["planned"] - number}
            lines.append({**group, **line, "because": reasons.get(key, NEVER_ASKED)})
    for line in lines:
        line["unasked"] = max(line["unasked"], 0) if is_used_up and recorded[_part_of(line)] else 0
        line["missing"] = max(line["planned"] - line["judged"], 0) - line["unasked"]
        line["because"] = line["because"] if line["missing"] else ""
    return pd.DataFrame(lines) if lines else pd.DataFrame(columns=COUNTS)


def _part_of(group: MandatoryGroup) -> tuple[Any, ...]:
    """Return the subject and the aspect of a group, without its block or clause."""
    return tuple(group.get(name) for name in GROUP)


def factor_coverage(folder: Path, run: Mapping[str, Any]) -> dict[tuple[str, str, str], FactorCoverage]:
    """Return the coverage of the calls that ran, by backend, operator and dtype; contract calls do not count."""
    covered: dict[tuple[str, str, str], FactorCoverage] = {}
    was_run = having("verdict", JUDGED - {Verdict.REFUSED}) & pc.field("planes").is_valid()
    rows = read_rows(folder, list(dict.fromkeys(("backend", "verdict", *READ_OF_CALL))), was_run)
    for batch in rows.to_batches():
        for row in batch.to_pylist():
            key = row["backend"], row["operator"], row["dtype"]
            if row["operator"] not in OPERATORS:  # of another version
                continue
            if key not in covered:
                covered[key] = FactorCoverage(scope_of(run, *key))
            covered[key].add(row)
    return covered


def scope_of(run: Mapping[str, Any], backend: str, operator: str, dtype: str) -> Scope:
    """Return the calls that a run could make, by its record."""
    declared = run.get("selection", {}).get("backends", {}).get(backend)
    if declared is None:
        return Scope(OPERATORS[operator], OPERATORS[operator].indices.dtypes)
    has = [line[2] for line in declared["subjects"] if line[:2] == [operator, dtype] and line[3] is None]
    product = PRODUCTS.get(declared["product"])
    abilities = declared["abilities"].get(operator, {}).items()
    able = tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in abilities)
    return Scope(OPERATORS[operator], tuple(has), tuple(declared["tags"]), product, able)


@dataclass(frozen=True)
class ClassGrid:
    """Numbers of calls by the classes of two factors: ``counts`` and ``failing`` have a list per class of ``down``."""

    title: str
    across: Factor
    down: Factor
    counts: list[list[int]]
    failing: list[list[int]]

    def squares(self, line: int) -> Iterator[tuple[int, int]]:
        """Return (calls, failing ones) of each square of a line."""
        return zip(self.counts[line], self.failing[line], strict=True)

    @property
    def most(self) -> int:
        return max(map(max, self.counts))


_GRIDS = (
    ("How large", "plane cells", "N*C"),
    ("Which windows", "kernel cells", "kernel against stride"),
    ("Which adaptive windows", "kernel cells", "output against input"),
)


def grids(covered: Mapping[tuple[str, str, str], FactorCoverage]) -> dict[str, list[ClassGrid]]:
    """Return the grids of each backend; empty if no call has a geometry."""
    by_backend: dict[str, list[ClassGrid]] = {}
    for backend in dict.fromkeys(key[0] for key in covered):
        own = [coverage for key, coverage in covered.items() if key[0] == backend]
        for title, across, down in _GRIDS:
            counts, failing = (
                np.sum([coverage.counts(down, across, only) for coverage in own], axis=0) for only in (False, True)
            )
            if counts.any():
                grid = ClassGrid(title, BY_NAME[across], BY_NAME[down], counts.tolist(), failing.tolist())
                by_backend.setdefault(backend, []).append(grid)
    return by_backend


def meeting_lines(covered: Mapping[tuple[str, str, str], FactorCoverage]) -> list[dict[str, Any]]:
    """Return the covered share of pairs and triples, by backend, operator and dtype."""
    return [
        dict(zip(("backend", "operator", "dtype"), key, strict=True))
        | {name: coverage.meetings(size) for size, name in TOGETHER.items()}
        for key, coverage in covered.items()
    ]


def met_in_all(covered: Mapping[tuple[str, str, str], FactorCoverage]) -> str:
    """Return the covered share of all possible pairs and triples as text; empty if no call has a geometry."""
    if not covered:
        return ""
    shares = []
    for size in TOGETHER:
        met = [coverage.meetings(size) for coverage in covered.values()]
        shares.append(share(sum(each.visited for each in met), sum(each.possible for each in met), size))
    return f"visited: {' and '.join(shares)} of classes of factors"
