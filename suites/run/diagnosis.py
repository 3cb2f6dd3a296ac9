"""Further cases at the end of a run, which narrow down the conditions of its failures.

A narrowed run has few cases to compare. So the first further cases are of the plan, but outside of the selection: the
same operator with other data, dtypes and sizes. The others differ from a failing case in one respect. First, each
threshold is bisected between failing and conforming values. Then single parameters, dtypes and recipes vary, which may
refute the condition. A `FailureCluster` has the condition; the rows of all cases refine it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise, zip_longest
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from poolproof.backends.base import BackendUnavailable, UnknownBackend
from poolproof.references.optional import optional
from poolproof.reports.clusters.cluster import Bound, FailureCluster
from poolproof.reports.clusters.clustering import clusters_of, open_clusters
from poolproof.reports.rows.checks import CONTRAST, DIAGNOSIS, NARROWING, held_to
from poolproof.reports.rows.failures import smallest_case
from poolproof.reports.rows.features import Value, features_of
from poolproof.reports.rows.io_errors import environment_errors
from poolproof.reports.rows.records import Done
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.varying import Parameter, Record, changed, differing_in_one, parameters
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.blocks import CaseBlock, has_call
from poolproof.suites.plan.lines import CLAIMS, further_question
from poolproof.suites.plan.plans import PLANS, Subject
from poolproof.suites.plan.selection import Selection
from poolproof.suites.run.interrupts import raise_lost_interrupt

ROUNDS = (120, 50, 30)
"""Most cases for one condition in each round; the conditions are computed anew between rounds."""

_BESIDE = 4
"""Distance around a length's value that is tried in steps of 1, e.g. for remainders."""

_CONTRASTS = 80
"""Most cases from outside of the selection, for each operator with failures."""

_CONTRASTS_OF_BLOCK = 20
"""Most of them from one block: its first cases."""

_PROBED = 3
"""Most operators and dtypes of a backend to probe at the end of a run."""

_MOST_TRIED = 3
"""Most cases to try at one value of a threshold: some may be refused."""

Ask = Callable[[CaseQuestion, str], Row]
"""Judges a question on a backend, and records its row."""


def diagnose(
    folder: Path,
    ask: Ask,
    selection: Selection,
    seconds: float,
    done: Done,
    say: Callable[[str], object],
    latest: float = inf,
) -> None:
    """Narrow down the failures of the run of a selection in a folder, by further cases that ``ask`` judges and records.

    It ends at the monotonic time ``latest``. An interrupt ends only the diagnosis. `CannotWrite` is raised if a row
    cannot be recorded.
    """
    known = {case for block, case in done.cases if block.startswith(NARROWING)}

    def find() -> list[FailureCluster]:
        return open_clusters(clusters_of(folder))

    try:
        with environment_errors():
            until = min(latest, time.monotonic() + seconds)
            whole = replace(selection, operators=(), dtypes=(), lines=())
            recorded = {*read_rows(folder, ["case_id"])["case_id"].to_pylist()}
            for question, backend in contrasts(find(), whole, recorded):
                if time.monotonic() >= until:
                    break
                ask(question, backend)
            narrow_down(find, ask, whole.subjects(), seconds, say, known, latest)
            raise_lost_interrupt()
    except KeyboardInterrupt:
        say(f"{DIAGNOSIS} interrupted: the results so far count")
    except (BackendUnavailable, UnknownBackend) as error:
        say(f"no further cases: {error}")


def contrasts(
    clusters: Iterable[FailureCluster], selection: Selection, recorded: Collection[str]
) -> Iterator[tuple[CaseQuestion, str]]:
    """Yield (question, backend) of cases of a whole selection's plan, but none with a recorded id.

    They have the operator of a failing case, any dtype, and the aspect of the failing case or ``values``.
    """
    aspects_of: dict[tuple[str, str], set[str]] = {}
    for cluster in clusters:
        smallest = cluster.smallest
        aspect = held_to(smallest["aspect"], smallest["block"] or "")
        if aspect in CLAIMS:
            aspects_of.setdefault((cluster.backend, smallest["operator"]), {"values"}).add(aspect)
    plan = PLANS.get(selection.plan.name, selection.plan)
    for (backend, operator), aspects in aspects_of.items():
        blocks = [
            next(CaseBlock.holding(aspect.count(plan), subject, aspect, selection.seed), None)
            for subject in selection.subjects()
            for aspect in map(CASE_ASPECTS.get, sorted(aspects))
            if (subject.backend, subject.operator.name) == (backend, operator) and aspect and aspect.covers(subject)
        ]
        drawn = zip_longest(*(block.prefix(_CONTRASTS_OF_BLOCK) for block in blocks if block))
        left = (each for each in chain.from_iterable(drawn) if each and each.case.id not in recorded)
        for each in islice(left, _CONTRASTS):
            yield further_question(each.case, each.aspect.id, CONTRAST), backend


def probe_sums(folder: Path, say: Callable[[str], object], latest: float = inf) -> dict[str, list[dict[str, Any]]]:
    """Return the probe's accounts of operators and dtypes with deviating sums, by backend; none if unavailable.

    It ends at the monotonic time ``latest``. An interrupt ends only the probe.
    """
    wanted: dict[str, set[tuple[str, str]]] = {}
    records_of = optional("poolproof.suites.probe.command:records_of")
    for cluster in clusters_of(folder) if records_of else ():
        if cluster.is_about_sums and len(wanted.setdefault(cluster.backend, set())) < _PROBED:
            wanted[cluster.backend].add(cluster.place)
    try:
        with environment_errors():
            accounts = {backend: list(records_of(backend, places, latest)) for backend, places in wanted.items()}
            raise_lost_interrupt()
            return accounts
    except KeyboardInterrupt:
        say("probe interrupted: the accumulation model is not known")
        return {}


def narrow_down(
    find: Callable[[], Sequence[FailureCluster]],
    ask: Ask,
    subjects: Sequence[Subject],
    seconds: float,
    say: Callable[[str], object],
    known: set[str],
    latest: float = inf,
) -> None:
    """Search up to ``seconds`` around each condition that ``find`` returns; later rounds take new conditions.

    ``subjects`` are those of the backends. ``say`` prints the number of conditions. ``known`` are ids of cases that
    must not be judged.
    """
    searched: set[str] = set()
    until = 0.0
    for number, cases in enumerate(ROUNDS):
        conditions = [condition for condition in find() if condition.name not in searched]
        begun = [search for condition in conditions if (search := _search_of(condition, ask, subjects, cases, known))]
        if begun and number == 0:
            about = count_of(len(begun), "cause")
            say(f"\njudging further cases for {about}, up to {seconds:g} s each (--diagnose)")
        until = until or min(latest, time.monotonic() + seconds * len(begun))
        for search in begun:
            searched.add(search.condition.name)
            search.until = min(until, time.monotonic() + seconds)
            search.run()


def _search_of(
    condition: FailureCluster, ask: Ask, subjects: Sequence[Subject], cases: int, known: set[str]
) -> ConditionSearch | None:
    """Return a search around the smallest case that meets a condition; None if its failures are not of cases."""
    smallest, aspect = condition.smallest, held_to(condition.smallest["aspect"], condition.smallest["block"] or "")
    able = {
        (subject.operator.name, subject.dtype, subject.index_dtype): subject
        for subject in subjects
        if subject.backend == condition.backend and subject.unsupported is None
    }
    with suppress(CaseError):
        for line in (smallest_case(smallest), str(smallest["case"])) if aspect in CLAIMS else ():
            search = ConditionSearch(condition, Case.from_json(line), aspect, able, ask, cases, known)
            if all(search.met(search.start)):
                return search
    return None


class WantedRange(NamedTuple):
    """Integers from ``low`` to ``high``; nearer to ``best`` is better."""

    best: int
    low: float
    high: float


@dataclass
class ConditionSearch:
    """A search around the failing case ``start``, by at most ``left`` cases, before the monotonic time ``until``."""

    condition: FailureCluster
    start: Case
    aspect: str
    subjects: Mapping[tuple[str, str, str], Subject]
    ask: Ask
    left: int
    known: set[str]
    until: float = 0.0

    def run(self) -> None:
        """Narrow each threshold, then judge neighbours."""
        self.known.add(self.start.id)
        thresholds = [number for number, term in enumerate(self.condition.terms) if term.is_threshold]
        for number, bound in zip(thresholds, self.condition.bounds, strict=True):
            if bound.conforms is not None:
                self._narrow(number, bound, bound.conforms)
        for case in self._neighbours():
            if self._has_room and self._can_call(case):
                self._judged(case)

    def _neighbours(self) -> Iterator[Case]:
        """Yield the cases that differ from the first in one respect, which may refute the condition."""
        start, profile = self.start, CASE_ASPECTS.get(self.aspect, CASE_ASPECTS["values"]).profile
        dtypes = [each[1:] for each in self.subjects if each[0] == start.operator]
        changes: list[Record] = [{"dtype": dtype, "index_dtype": index_dtype} for dtype, index_dtype in dtypes]
        changes += [{"values": word} for word in profile.values]
        if start.api.is_backward:
            changes += [{"gradient": word} for word in profile.gradients]
            changes += [{"indices": word} for word in profile.indices]
        yield from filter(None, (changed(start, change) for change in changes))
        for parameter in parameters(start):
            value = parameter.value
            yield from filter(None, map(parameter.with_value, (value + 1, value - 1, 2 * value, value // 2)))
        yield from differing_in_one(start)

    @property
    def _has_room(self) -> bool:
        return self.left > 0 and time.monotonic() < self.until

    def _narrow(self, number: int, bound: Bound, conforms: int) -> None:
        """Bisect between failing and conforming values, while cases in between can be made.

        The case that conformed may be of another kind, so a case like the failing one must conform there first.
        """
        fails = bound.fails
        farther = (-inf, conforms) if conforms < fails else (conforms, inf)
        seen = self._outcome_at(number, bound.feature, WantedRange(conforms, *farther))
        if seen and seen[1]:
            return
        while seen and abs(fails - conforms) > 1 and self._has_room:
            low, high = sorted((fails, conforms))
            seen = self._outcome_at(number, bound.feature, WantedRange((low + high) // 2, low + 1, high - 1))
            match seen:
                case value, True:
                    fails = value
                case value, _:
                    conforms = value

    def _outcome_at(self, number: int, feature: str, wanted: WantedRange) -> tuple[int, bool] | None:
        """Judge a case with a feature in a range; return (value, whether it fails), or None if there is none."""
        for base in _plainer(self.start):
            for value, case in self._candidates(base, number, feature, wanted)[:_MOST_TRIED]:
                if (fails := self._fails(case)) is not None:
                    return value, fails
        return None

    def _candidates(self, base: Case, number: int, feature: str, wanted: WantedRange) -> list[tuple[int, Case]]:
        """Return the (value, case) that differ from a case in a parameter and meet all other terms, best first."""
        candidates: list[tuple[int, Case]] = []
        for parameter in parameters(base) if self._has_room else ():
            nearest = _nearest(parameter, lambda case: self._value(case, feature), wanted)
            if nearest is None or not self._can_call(nearest[1]):
                continue
            if all(holds or term == number for term, holds in enumerate(self.met(nearest[1]))):
                candidates.append(nearest)
                if nearest[0] == wanted.best:
                    break
        return sorted(candidates, key=lambda candidate: abs(candidate[0] - wanted.best))

    def _fails(self, case: Case) -> bool | None:
        """Tell whether a case fails with one of 2 seeds (6 if the condition has exceptions); None if unknown."""
        seen: set[bool | None] = set()
        for more in range(6 if self.condition.counts.exceptions else 2):
            if self._has_room and True not in seen:
                seen.add(self._judged(replace(case, seed=case.seed + more)))
        return None if seen <= {None} else True in seen

    def _can_call(self, case: Case) -> bool:
        subject = self.subjects.get((case.operator, case.dtype, case.index_dtype))
        return subject is not None and has_call(subject, case)

    def met(self, case: Case) -> list[bool]:
        """Return which terms of the condition a case meets; terms that only an answer can show count as met."""
        values, terms = self._features(case), self.condition.terms
        return [term.feature not in values or term.is_met_by(values[term.feature]) for term in terms]

    def _value(self, case: Case, feature: str) -> int | None:
        value = self._features(case).get(feature)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def _features(self, case: Case) -> dict[str, Value]:
        described = further_question(case, self.aspect).describe()
        return features_of(described | {"product": self.condition.smallest.get("product")})

    def _judged(self, case: Case) -> bool | None:
        """Judge a case and tell whether it fails; None if it was known, or nothing was learned."""
        if case.id in self.known:
            return None
        self.known.add(case.id)
        self.left -= 1
        verdict = self.ask(further_question(case, self.aspect), self.condition.backend)["verdict"]
        return True if verdict in FAILED else False if verdict == Verdict.CONFORMS else None


def _plainer(case: Case) -> Iterable[Case]:
    variants = [case]
    changes: list[Record] = [{"shape": [1, case.planes, *case.spatial_shape]}, {"layouts": {}}]
    for change in changes:
        variants += [other for base in tuple(variants) if (other := changed(base, change)) is not None]
    return dict.fromkeys(variants)


def _nearest(
    parameter: Parameter, number_of: Callable[[Case], int | None], wanted: WantedRange
) -> tuple[int, Case] | None:
    """Vary a parameter until a number is nearest to the best in a range; return (number, case), None if never in it.

    First it tries values near the parameter's own, and powers of two. Then it bisects where the number passes the best.
    """
    seen: dict[int, tuple[int, Case]] = {}

    def evaluate(value: int) -> int | None:
        case = parameter.with_value(value)
        number = None if case is None else number_of(case)
        if case is not None and number is not None:
            seen[value] = number, case
        return number

    beside = range(parameter.value - _BESIDE, parameter.value + _BESIDE + 1)
    for value in sorted({parameter.low, parameter.most, *beside, *(1 << power for power in range(21))}):
        evaluate(value)
    for low, high in pairwise(sorted(seen)):
        first, last = seen[low][0], seen[high][0]
        if min(first, last) < wanted.best < max(first, last):
            while high - low > 1:
                number = evaluate(middle := (low + high) // 2)
                if number is None or number == wanted.best:
                    break
                low, high = (middle, high) if (number < wanted.best) == (first < last) else (low, middle)
            break
    fitting = [candidate for candidate in seen.values() if wanted.low <= candidate[0] <= wanted.high]
    return min(fitting, key=lambda candidate: abs(candidate[0] - wanted.best), default=None)
