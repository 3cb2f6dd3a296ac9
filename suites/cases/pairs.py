"""Cases in which classes of factors (`poolproof.reports.rows.factors`) meet that can meet: any two, and any three.

Three are those of factors that matter most. The cases are stored, because to find them takes
minutes: `studies/pairs.py` completes them where an operator or a class is new.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from poolproof.references.operators import Operator
from poolproof.reports.rows.factors import Scope
from poolproof.reports.rows.meetings import TOGETHER, FactorCoverage, choose, space_of
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.huge import CHEAPEST
from poolproof.suites.cases.targets import ACCEPTANCE, Target

LARGE, LARGEST = 1 << 20, 1 << 22
"""`cost_of` a case, as stored, above which smaller plans leave it out: in most dtypes, and in the cheapest.

In every dtype, large cases would take half of the total time. Without them, a dtype has 88 to 98 % of its pairs.
Without the largest, the cheapest dtype has 99 to 100 %.
"""


def row_of(case: Case) -> dict[str, Any]:
    """Return the row that the features of a case are read from."""
    recipes = {"gradient": case.recipe("grad_output"), "indices": case.recipe("indices"), "values": case.recipe("self")}
    names = {name: getattr(case, name) for name in ("operator", "dtype", "index_dtype")}
    return {"case": case.to_json()} | names | recipes


def cost_of(case: Case) -> int:
    """Add up what a case holds and looks at: bytes of its tensors, and cells of its windows."""
    return case.memory_bytes() + case.planes * case.plane_windows * case.taps


def file_of(operator: Operator, size: int) -> Path:
    return Path(__file__).parent / f"stored_{TOGETHER[size]}" / f"{operator.name}.jsonl.gz"


def stored(operator: Operator, size: int) -> list[str]:
    """Return the lines of the cases of a list."""
    return gzip.decompress(file_of(operator, size).read_bytes()).decode().splitlines()


def _targets(size: int, scope: Scope, dtype: str, index_dtype: str) -> list[Target]:
    """List the cases of a scope in a dtype of indices: each is in one of those that the scope has."""
    most = LARGEST if dtype == CHEAPEST else LARGE
    return [
        Target(TOGETHER[size], replace(case, dtype=dtype), plan_cases=ACCEPTANCE if cost > most else 0)
        for case, cost in _visiting(scope, size)
        if case.index_dtype == index_dtype
    ]


pairs, triples = partial(_targets, 2), partial(_targets, 3)
"""Of triples what visits one besides the cases of pairs."""


@cache
def _visiting(scope: Scope, size: int) -> tuple[tuple[Case, int], ...]:
    """Choose the stored cases that a scope has and in which classes meet that meet in none before.

    Some of those of pairs meet no pair in this scope, but triples. Beside each stands its `cost_of`. The case is a
    copy, without the tables of axes that a measured one keeps: of all lists these take a gigabyte.
    """
    chosen = _chosen(scope, space_of(scope).visiting(size), size)
    return tuple((replace(case), cost_of(case)) for case in chosen)


def _chosen(scope: Scope, numbers: Iterable[int], size: int) -> Iterator[Case]:
    lines = [line for each in TOGETHER if each <= size for line in stored(scope.operator, each)]
    for case in (Case.read(json.loads(lines[number])) for number in numbers):  # a test checks that all can be
        yield case if case.index_dtype in scope.index_dtypes else replace(case, index_dtype=scope.index_dtypes[0])


def completing(coverage: FactorCoverage, dtype: str) -> Iterator[Case]:
    """Choose the stored cases that visit the pairs that a coverage leaves open, and count them there."""
    space, left = coverage.space, coverage.meetings(2).left
    for case in _chosen(space.scope, choose(space.stored(max(TOGETHER)), left | left.T), max(TOGETHER)):
        coverage.add(row_of(case))
        yield replace(case, dtype=dtype)
