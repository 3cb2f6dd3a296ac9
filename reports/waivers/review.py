"""Review of a run's waivers: which were used, and which their owners must look at."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from poolproof.reports.rows.failures import kind_of
from poolproof.reports.rows.verdicts import FAILED, JUDGED, Verdict
from poolproof.reports.waivers import Waiver, matches_any

REVIEWED = ("backend", "operator", "verdict", "checks_violated", "waivers")
"""Columns that a review needs, besides those of the waivers' scopes."""


class State(StrEnum):
    """Result of a run for a waiver."""

    USED = "used"
    EXPIRED = "expired"
    UNMATCHED = "unmatched"
    NOT_NEEDED = "no longer needed"
    ELSEWHERE = "elsewhere"


STALE = frozenset({State.EXPIRED, State.UNMATCHED, State.NOT_NEEDED})
"""States that a strict run does not accept."""

_WHOLE_OPERATORS = {"backend", "operator", "product", "dtype", "index_dtype"}
"""Columns that do not single out calls of an operator."""


@dataclass(frozen=True)
class Review:
    """A waiver's state and its number of cases: those it covers, or would cover had it not expired.

    Unmatched: its backend is in the run, and no judged case is in its scope. No longer needed: such cases were judged,
    and none needed it. Elsewhere: its backend or version is not in this run. ``kinds`` is the number of kinds of
    failure it covers: operator, and all violations. ``is_asked``: whether its operators were judged at all.
    """

    waiver: Waiver
    state: State
    cases: int
    kinds: int = 0
    is_asked: bool = True

    @property
    def is_wide(self) -> bool:
        """Whether it names no checks, and is about whole operators or covers failures of several kinds."""
        return not self.waiver.checks and (self.waiver.scope.keys() <= _WHOLE_OPERATORS or self.kinds > 1)

    @property
    def description(self) -> str:
        return f"{self.state}, wide" if self.is_wide else str(self.state)


def review(
    waivers: Iterable[Waiver], rows: pa.Table, environments: Mapping[str, Mapping[str, str]], today: date
) -> list[Review]:
    """Return the state of each waiver in a run; ``environments`` maps its backends to their descriptions.

    ``rows`` have the columns `REVIEWED`, and those in the scopes of the waivers that are `concerned`.
    """
    verdicts = rows["verdict"].to_numpy()
    judged, failed = np.isin(verdicts, list(JUDGED)), np.isin(verdicts, list(FAILED))
    uses, kinds = Counter(pc.list_flatten(rows["waivers"]).to_pylist()), _kinds(rows)
    reviews = []
    for waiver in waivers:
        here = _backends(waiver, environments)
        of_operators = scope = np.isin(rows["backend"].to_numpy(), here)
        for column, patterns in waiver.scope.items() if here else ():
            scope = scope & (matching := _matching(rows[column], patterns))
            of_operators = of_operators & matching if column == "operator" else of_operators
        cases = uses[waiver.id]
        if not here:
            state = State.ELSEWHERE
        elif waiver.has_expired(today):
            state, cases = State.EXPIRED, int((scope & failed).sum())
        elif cases:
            state = State.USED
        else:
            state = State.NOT_NEEDED if (scope & judged).any() else State.UNMATCHED
        reviews.append(Review(waiver, state, cases, len(kinds[waiver.id]), bool((of_operators & judged).any())))
    return reviews


def _kinds(rows: pa.Table) -> Mapping[str, set[tuple[str, ...]]]:
    """Return the kinds of failure among the rows that each waiver covers."""
    kinds = defaultdict[str, set[tuple[str, ...]]](set)
    waived = rows.filter(pc.equal(rows["verdict"], str(Verdict.WAIVED))).select(list(REVIEWED))
    for row in waived.to_pylist():
        for waiver in row["waivers"] or ():
            kinds[waiver].add(kind_of(row))
    return kinds


def _backends(waiver: Waiver, environments: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [backend for backend, environment in environments.items() if waiver.concerns(backend, environment)]


def concerned(waivers: Iterable[Waiver], environments: Mapping[str, Mapping[str, str]]) -> list[Waiver]:
    """Return the waivers that can cover anything on these backends."""
    return [waiver for waiver in waivers if _backends(waiver, environments)]


def scope_columns(waivers: Iterable[Waiver]) -> list[str]:
    return list(dict.fromkeys(column for waiver in waivers for column in waiver.scope))


def _matching(column: pa.ChunkedArray, patterns: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return the mask of values that match; each distinct value is tested once."""
    if pa.types.is_list(column.type):
        lists = [None if words is None else tuple(words) for words in column.to_pylist()]
        matches_of = {words: matches_any(None if words is None else [*words], patterns) for words in {*lists}}
        return np.array([matches_of[words] for words in lists], bool)
    encoded = column.combine_chunks().dictionary_encode("encode")
    matching = np.array([matches_any(value, patterns) for value in encoded.dictionary.to_pylist()], bool)
    return matching[encoded.indices.to_numpy()]
