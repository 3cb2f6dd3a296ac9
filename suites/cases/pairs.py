"""Cases in which classes of factors (`poolproof.reports.rows.factors`) meet that can meet: any two, and any three.

Three are those of factors that matter most. They are stored, for to find them takes minutes; `studies/pairs.py` finds
them anew.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path

import numpy as np

from poolproof.references.operators import Operator
from poolproof.reports.rows.factors import FACTORS, Scope, classes_of
from poolproof.reports.rows.features import features_of
from poolproof.reports.rows.meetings import TOGETHER, meeting_in, space_of
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.completing import cost_of, places_of, row_of
from poolproof.suites.cases.huge import CHEAPEST
from poolproof.suites.cases.targets import ACCEPTANCE, Target

LARGE = 1 << 20
"""`cost_of` a case from which on smaller plans ask it in one dtype alone: a quarter of those of pairs.

In every dtype they would take half of the time of all; without them the others have 94 to 98 % of their pairs.
"""

_PLACES = {size: places_of(factor for factor in FACTORS if size < max(TOGETHER) or factor.matters) for size in TOGETHER}


def stored(operator: Operator, size: int) -> Iterator[Case]:
    lines = gzip.decompress(file_of(operator, size).read_bytes()).decode().splitlines()
    return map(Case.from_json, lines)


def file_of(operator: Operator, size: int) -> Path:
    return Path(__file__).parent / f"stored_{TOGETHER[size]}" / f"{operator.name}.jsonl.gz"


def _targets(size: int, scope: Scope, dtype: str, index_dtype: str) -> list[Target]:
    """List the cases of a scope in a dtype of indices: each is in one of those that the scope has."""
    return [
        Target(
            TOGETHER[size],
            replace(case, dtype=dtype),
            plan_cases=ACCEPTANCE if cost_of(case) > LARGE and dtype != CHEAPEST else 0,
        )
        for case in _visiting(scope, size)
        if case.index_dtype == index_dtype
    ]


pairs, triples = partial(_targets, 2), partial(_targets, 3)
"""Of triples what visits one besides the cases of pairs."""


@cache
def _visiting(scope: Scope, size: int) -> tuple[Case, ...]:
    """Choose the stored cases that a scope has and in which classes meet that meet in none before.

    Some of those of pairs meet no pair in this scope, but triples.
    """
    space, places, chosen = space_of(scope), _PLACES[size], list[Case]()
    met = np.zeros((len(places),) * size, np.bool_)
    sizes = range(2, size + 1)
    for case in chain.from_iterable(_visiting(scope, smaller) for smaller in sizes[:-1]):
        met[meeting_in(classes_of(features_of(row_of(case))), places, size)] = True
    for case in chain.from_iterable(stored(scope.operator, each) for each in sizes):
        if case.index_dtype not in scope.index_dtypes:
            case = replace(case, index_dtype=scope.index_dtypes[0])
        own = classes_of(features_of(row_of(case)))
        visited = meeting_in(own, places, size)
        if not space.excluded(own) and not met[visited].all():
            met[visited] = True
            chosen.append(case)
    return tuple(chosen)
