"""Cases in which every pair of classes of factors (`poolproof.reports.rows.factors`) meets that can meet.

They are stored, for to find them takes minutes; `studies/pairs.py` finds them anew.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from poolproof.references.operators import Operator
from poolproof.reports.rows.factors import FACTORS, Scope, classes_of
from poolproof.reports.rows.features import features_of
from poolproof.reports.rows.meetings import space_of
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.completing import cost_of, row_of
from poolproof.suites.cases.targets import Target

SMOKE, ACCEPTANCE = 40, 1000
"""``plan_cases`` from which on pairs are asked, the large ones only from the second.

A run of fewer cases than the smoke plan has is meant to be quick.
"""

LARGE = 1 << 22
"""`cost_of` a case from which on it waits: one in thirty of them, which would take a quarter of the time of all."""

_FOLDER = Path(__file__).with_name("stored_pairs")
_PLACES = {own: place for place, own in enumerate((factor.name, name) for factor in FACTORS for name in factor.classes)}


def pairs(scope: Scope, dtype: str, index_dtype: str) -> list[Target]:
    """List the cases of a scope in a dtype of indices: each is in one of those that the scope has."""
    return [
        Target("pairs", replace(case, dtype=dtype), plan_cases=ACCEPTANCE if cost_of(case) > LARGE else SMOKE)
        for case in _visiting(scope)
        if case.index_dtype == index_dtype
    ]


def file_of(operator: Operator) -> Path:
    return _FOLDER / f"{operator.name}.jsonl"


@cache
def _visiting(scope: Scope) -> tuple[Case, ...]:
    """Choose the stored cases that a scope has and in which classes meet that meet in none before."""
    space, chosen = space_of(scope), []
    met = np.zeros((len(_PLACES), len(_PLACES)), np.bool_)
    for case in map(Case.from_json, file_of(scope.operator).read_text(encoding="utf-8").splitlines()):
        if case.index_dtype not in scope.index_dtypes:
            case = replace(case, index_dtype=scope.index_dtypes[0])
        own = classes_of(features_of(row_of(case)))
        places = [_PLACES[each] for each in own.items() if each[1] is not None]
        visited = np.ix_(places, places)
        if not space.excluded(own) and not met[visited].all():
            met[visited] = True
            chosen.append(case)
    return tuple(chosen)
