"""How many different things are wrong, and under which condition each: failing rows by what they have in common.

One cause breaks several checks, in several operators and dtypes. So the rows that fail are first looked at together:
the best condition among them takes the failing rows that meet it, whatever they break, as one suspect; what is left is
looked at again. What no condition is claimed for stays together as one suspect without, for each way to fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from poolproof.reports.rows.checks import SURVIVAL
from poolproof.reports.rows.failures import is_shrunk, smallest_case
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.reports.suspects.facts import cells, leading_of, read_case, windows_of
from poolproof.reports.suspects.features import READ, feature_table
from poolproof.reports.suspects.search import LEAST_FAILING, Condition, best_condition
from poolproof.reports.suspects.sentences import sentence
from poolproof.reports.suspects.terms import AtLeast, Below, Column, Mask, Term, columns_of

MOST_SUSPECTS = 8
"""With a condition, of one backend: more is not looked for."""

MOST_CONFORMING = 20_000
"""Rows of one backend that speak against a condition: more would tell the same, in gigabytes."""

NEEDED = tuple(dict.fromkeys((*READ, "backend", "verdict", "checks_judged", "checks_violated", "case_id", "shrunk")))
"""Columns of the rows that are looked at."""

Kind = tuple[str, str]
"""Verdict and first violated check."""


@dataclass(frozen=True)
class Bound:
    """A threshold between two values: cases that meet the rest of the condition fail at one and conform at the other.

    ``conforms`` is None where no conforming case meets the rest.
    """

    feature: str
    fails: int
    conforms: int | None


@dataclass(frozen=True, eq=False)
class Suspect:
    """One thing that is wrong with a backend, as far as can be told from the rows.

    terms
        The condition, all of which holds; empty where every case fails, or where none is claimed (`is_claimed`).
    failing, conforming
        Cases that meet it, which fail, and which conform though they were held to the same checks.
    failing_others, conforming_others
        Those that do not meet it, failing ones of earlier suspects left out.
    ties
        Conditions of as many terms that the same cases meet.
    bounds
        For each threshold the observed values beside it.
    kinds
        (verdict, first violated check) of the failing cases with their numbers, the most frequent first.
    margin
        Bits by which the condition tells more than one of the same length would by chance, all those tried considered:
        chance gives as much with a probability below 2**-margin.
    smallest
        The failing row whose case (`failures.smallest_case`) is smallest, of those that were made smaller if there are.
    cases
        The ids of all failing cases that are this suspect's.
    """

    backend: str
    is_claimed: bool
    terms: tuple[Term, ...]
    failing: int
    conforming: int
    failing_others: int
    conforming_others: int
    ties: tuple[tuple[Term, ...], ...]
    bounds: tuple[Bound, ...]
    kinds: tuple[tuple[Kind, int], ...]
    margin: float
    smallest: Row
    cases: frozenset[str] = frozenset()

    @property
    def is_exact(self) -> bool:
        """Every case that meets the condition fails, and no other does."""
        return self.is_claimed and not self.conforming and not self.failing_others

    @property
    def sentence(self) -> str:
        """What fails, under which condition, with the numbers of both sides."""
        return sentence(self)


def suspects(rows: pd.DataFrame) -> tuple[Suspect, ...]:
    """What is wrong with the backends of some rows, for each backend what explains most failing cases first.

    Empty where none fails. Rows that are waived, refused or were not judged count for nothing; of those that conform
    `MOST_CONFORMING` at most are looked at.
    """
    told = rows[rows["verdict"].isin([*FAILED, Verdict.CONFORMS])].reset_index(drop=True)
    failing = told[told["verdict"].isin(FAILED)]
    backends = failing["backend"].value_counts().index
    return tuple(suspect for backend in backends for suspect in _of_backend(told[told["backend"] == backend]))


def _of_backend(rows: pd.DataFrame) -> list[Suspect]:
    search = _Search(_fewer(rows[_speaks(rows)]).reset_index(drop=True))
    return sorted(search.suspects(), key=lambda suspect: (not suspect.is_claimed, -suspect.failing))


def _speaks(rows: pd.DataFrame) -> list[bool]:
    """Which rows fail, or conform to a check that a failing one breaks: of contracts there are ten times as many."""
    failing = rows["verdict"].isin(FAILED)
    broken = {_kind(*row)[1] for row in zip(rows["verdict"][failing], rows["checks_violated"][failing], strict=True)}
    if SURVIVAL in broken:
        return [True] * len(rows)
    return [
        fails or not broken.isdisjoint(_checks(judged))
        for fails, judged in zip(failing, rows["checks_judged"], strict=True)
    ]


def _fewer(rows: pd.DataFrame) -> pd.DataFrame:
    """All that fail, and of very many others those with the least ids, which are hashes: always the same."""
    conforming = rows["case_id"][~rows["verdict"].isin(FAILED)]
    if len(conforming) <= MOST_CONFORMING:
        return rows
    left_out = conforming.sort_values(kind="stable").index[MOST_CONFORMING:]
    return rows.drop(index=left_out)


class _Search:
    """The rows of one backend, and which failing ones no suspect has yet."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self._rows = rows
        self._failing = rows["verdict"].isin(FAILED).to_numpy()
        self._kinds = [_kind(*row) for row in zip(rows["verdict"], rows["checks_violated"], strict=True)]
        self._judged = [frozenset(_checks(checks)) for checks in rows["checks_judged"]]
        self._columns = columns_of(feature_table(rows))
        self._left = self._failing.copy()

    def suspects(self) -> Iterator[Suspect]:
        for _ in range(MOST_SUSPECTS):
            found = self._next()
            if found is None:
                break
            yield found
        yield from self._unexplained()

    def _next(self) -> Suspect | None:
        """The one that explains most of what is left; None where nothing is left, or nothing can be claimed."""
        tried: list[tuple[Suspect, Mask]] = []
        for group in self._groups():
            tried += filter(None, [self._look(group)])
            if tried and tried[0][0].is_exact:
                break  # nothing explains more
        if not tried:
            return None
        suspect, taken = max(tried, key=lambda found: found[0].margin)
        self._left &= ~taken
        return suspect

    def _groups(self) -> Iterator[Mask]:
        """What is left as a whole, and its most frequent kind, where there are others."""
        if not self._left.any():
            return
        yield self._left.copy()
        kinds = Counter(self._kinds[number] for number in np.flatnonzero(self._left))
        if len(kinds) > 1:
            most = kinds.most_common(1)[0][0]
            yield self._left & np.array([kind == most for kind in self._kinds])

    def _look(self, group: Mask) -> tuple[Suspect, Mask] | None:
        """The suspect that a group of failing rows leads to, with the failing rows that it takes."""
        asked = np.flatnonzero(group | self._conforming(group))
        fails = group[asked]
        if fails.all():
            return self._everything(group) if group.sum() >= LEAST_FAILING else None
        columns = [told for column in self._columns if (told := column.at(asked)).tells]
        found = best_condition(columns, fails)
        if found is None or not found.is_claimed:
            return None
        taken = np.zeros(len(self._rows), np.bool_)
        taken[asked[found.mask & fails]] = True
        bounds = _bounds(found, {column.feature: column for column in columns}, fails)
        return self._suspect(found, bounds, taken, fails), taken

    def _conforming(self, group: Mask) -> Mask:
        """The rows that conform and judged a check which some of the group break."""
        broken = {self._kinds[number][1] for number in np.flatnonzero(group)}
        survived = SURVIVAL in broken
        judged = [bool(checks) and (survived or not broken.isdisjoint(checks)) for checks in self._judged]
        return ~self._failing & np.array(judged, np.bool_)

    def _suspect(self, found: Condition, bounds: tuple[Bound, ...], taken: Mask, fails: Mask) -> Suspect:
        return Suspect(
            backend=self._backend,
            is_claimed=True,
            terms=found.terms,
            failing=found.failing,
            conforming=found.conforming,
            failing_others=int(fails.sum()) - found.failing,
            conforming_others=int((~fails).sum()) - found.conforming,
            ties=found.ties,
            bounds=bounds,
            kinds=self._kinds_of(taken),
            margin=found.margin,
            smallest=self._smallest(taken),
            cases=self._cases(taken),
        )

    def _everything(self, group: Mask) -> tuple[Suspect, Mask]:
        """All rows fail that were held to these checks: that is the condition."""
        return self._without_terms(group, is_claimed=True), group

    def _unexplained(self) -> Iterator[Suspect]:
        verdicts = self._rows["verdict"].to_numpy(object)
        for verdict in dict.fromkeys(verdicts[self._left]):
            yield self._without_terms(self._left & (verdicts == verdict), is_claimed=False)

    def _without_terms(self, group: Mask, *, is_claimed: bool) -> Suspect:
        return Suspect(
            backend=self._backend,
            is_claimed=is_claimed,
            terms=(),
            failing=int(group.sum()),
            conforming=0,
            failing_others=0,
            conforming_others=int(self._conforming(group).sum()),
            ties=(),
            bounds=(),
            kinds=self._kinds_of(group),
            margin=0.0,
            smallest=self._smallest(group),
            cases=self._cases(group),
        )

    @property
    def _backend(self) -> str:
        return str(self._rows["backend"].iloc[0])

    def _kinds_of(self, group: Mask) -> tuple[tuple[Kind, int], ...]:
        return tuple(Counter(self._kinds[number] for number in np.flatnonzero(group)).most_common())

    def _cases(self, group: Mask) -> frozenset[str]:
        return frozenset(self._rows["case_id"][group])

    def _smallest(self, group: Mask) -> Row:
        rows = ({str(name): value for name, value in row.items()} for row in self._rows[group].to_dict("records"))
        return min(rows, key=size_of)


SIZED = ("operator", "case", "shrunk")
"""Columns that `size_of` reads."""


def size_of(row: Row) -> tuple[bool, float, float, int]:
    """Whether the case of a row was not made smaller, then its elements, its windows, and the length of its line."""
    line, operator = smallest_case(row), str(row["operator"])
    windows = windows_of(operator, case := read_case(line))
    if windows is None:
        return not is_shrunk(row), float("inf"), float("inf"), len(line)
    planes = cells(leading_of(operator, case))
    return not is_shrunk(row), planes * cells(windows.size), planes * cells(windows.count), len(line)


def _kind(verdict: str, violated: Any) -> Kind:
    return verdict, next(iter(_checks(violated)), SURVIVAL)


def _checks(told: Any) -> Sequence[str]:
    """The names of a column of checks, which is empty or no list where none could tell."""
    return () if told is None or isinstance(told, float) else told


def _bounds(found: Condition, columns: dict[str, Column], fails: Mask) -> tuple[Bound, ...]:
    """What was observed beside each threshold among the rows that meet the other terms."""
    made = []
    for number, term in enumerate(found.terms):
        others = [other.holds(columns[other.feature]) for place, other in enumerate(found.terms) if place != number]
        rest = np.logical_and.reduce(others) if others else np.ones(len(fails), np.bool_)
        column = columns[term.feature]
        within, beyond = column.distinct(found.mask & fails), column.distinct(rest & ~fails & ~term.holds(column))
        match term:
            case AtLeast():
                made.append(Bound(term.feature, int(within[0]), int(beyond[-1]) if len(beyond) else None))
            case Below():
                made.append(Bound(term.feature, int(within[-1]), int(beyond[0]) if len(beyond) else None))
            case _:
                pass
    return tuple(made)
