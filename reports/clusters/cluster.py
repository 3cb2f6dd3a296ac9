"""A cluster of failing cases with one condition, as far as rows tell it, and what is said of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from poolproof.reports.clusters.conditions import MIN_FAILING, SHARP
from poolproof.reports.clusters.places import LiesAt, place_of, told
from poolproof.reports.clusters.terms import Term, feature_column
from poolproof.reports.rows.failures import smallest_case
from poolproof.reports.rows.features import Value, features_of
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import count_of, spelled_value
from poolproof.reports.rows.verdicts import Verdict

FailureKind = tuple[str, str]
"""Verdict and first violated check."""

SCOPES = {"operator": "{}", "dtype": "{}", "aspect": "aspect {}"}
"""Columns of what a run may be narrowed to, with how that is told."""


@dataclass(frozen=True)
class Bound:
    """A threshold between two values: cases that meet the rest of the condition fail at one and conform at the other.

    ``conforms`` is None where no conforming case meets the rest.
    """

    feature: str
    fails: int
    conforms: int | None


@dataclass(frozen=True, eq=False)
class FailureCluster:
    """Failing cases of a backend that one root cause may explain.

    terms
        The condition, all of which holds; empty where every case fails, or nearly every one of a kind, and where none
        was found (`has_condition`).
    failing, conforming
        Cases of the plan that meet it, which fail, and which conform though they were held to the same checks.
    further
        As many numbers of further cases, which diagnosis made from failing ones.
    contrast
        For each term the cases of the plan that meet all others and not it, and conform.
    failing_others
        Failing cases of the plan that do not meet it, those of other clusters left out.
    ties
        Conditions of as many terms that the same cases meet.
    bounds
        For each threshold the observed values beside it.
    kinds
        (verdict, first violated check) of the failing cases with their numbers, the most frequent first.
    margin
        Bits by which the condition explains more than chance would give one of its length, all those tried considered:
        chance gives as much with a probability below 2**-margin.
    smallest
        The failing row whose case (`failures.smallest_case`) is smallest, of those that were made smaller if there are.
    cases
        The ids of all its failing cases.
    astray
        What became of gradients, with the number of decodable cases in which it did, the most frequent first.
    ends
        (end of an axis, whether the element that is named lies there), with the number of failing cases like that.
    scope
        (column, value) of what all cases of the plan have in common that were compared: of others it says nothing.
    probed
        What the probe says of its operator and dtype that deviates.
    """

    backend: str
    has_condition: bool
    failing: int
    kinds: tuple[tuple[FailureKind, int], ...]
    smallest: Row
    cases: frozenset[str]
    terms: tuple[Term, ...] = ()
    conforming: int = 0
    further: tuple[int, int] = (0, 0)
    contrast: tuple[int, ...] = ()
    failing_others: int = 0
    ties: tuple[tuple[Term, ...], ...] = ()
    bounds: tuple[Bound, ...] = ()
    margin: float = 0.0
    astray: tuple[tuple[str, int], ...] = ()
    ends: tuple[tuple[LiesAt, int], ...] = ()
    scope: tuple[tuple[str, str], ...] = ()
    probed: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        return self.has_condition and not self.exceptions and not self.failing_others

    @property
    def exceptions(self) -> int:
        """Count the cases that meet the condition and conform."""
        return self.conforming + self.further[1]

    @property
    def is_sharp(self) -> bool:
        """Return whether hardly a case conforms that meets the condition: it causes failure, not only goes with it."""
        failing = self.failing + self.further[0]
        return failing >= SHARP * (failing + self.exceptions)

    @property
    def name(self) -> str:
        """Return a name that is equal for equal conditions."""
        if self.has_condition and not self.terms:
            return f"{self.backend} and {_checks(self)}"
        return " and ".join([self.backend, *map(str, self.terms or sorted(self.cases)[:1])])

    @property
    def place(self) -> tuple[str, str]:
        """Return operator and dtype of its smallest case."""
        return str(self.smallest["operator"]), str(self.smallest["dtype"])

    @property
    def is_about_sums(self) -> bool:
        """Return whether its sums deviate, more often than anything else: the probe may tell how they are added."""
        return self.kinds[0][0] == (Verdict.VIOLATES, "interval")

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the cases to begin with, the smallest first: the later ones are sure to meet the condition."""
        return tuple(dict.fromkeys((smallest_case(self.smallest), str(self.smallest["case"]))))

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(term.feature for term in self.terms)

    @property
    def thresholds(self) -> tuple[tuple[int, Bound], ...]:
        """Return (number of a term, the bound of its threshold) of those that can be narrowed."""
        narrow = [bound for bound in self.bounds if bound.conforms is not None]
        return tuple((self.features.index(bound.feature), bound) for bound in narrow)

    def met(self, row: Row) -> tuple[bool, ...]:
        """Return which of its terms a row, judged or not, meets; what only an answer has counts as met."""
        values = self._features(row)

        def holds(term: Term) -> bool:
            return bool(term.holds(feature_column(term.feature, [values[term.feature]])).all())

        return tuple(term.feature not in values or holds(term) for term in self.terms)

    def value(self, row: Row, feature: str) -> int | None:
        value = self._features(row).get(feature)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def _features(self, row: Row) -> dict[str, Value]:
        return features_of(row | {"product": self.smallest.get("product")})

    @property
    def sentence(self) -> str:
        """Say what fails, when, and what speaks for each term.

        "every case with A and B fails (2 of 2, and 12 of 12 further ones, by interval), in the last row of grad_input;
        otherwise alike, 4 with not A and 9 with not B conform". Further ones, which were made from failing cases, are
        counted apart. What a narrowed run has only one of stands first: "MaxPool3dWithArgmaxBackward, aspect precision:
        every case ...".
        """
        if not self.has_condition:
            return _unexplained(self)
        condition = f"with {_listed(map(str, self.terms))}" if self.terms else f"held to {_checks(self)}"
        whole = "every" if not self.exceptions else "nearly every" if self.is_sharp else ""
        scope = f"{', '.join(SCOPES[column].format(value) for column, value in self.scope)}: " if self.scope else ""
        subject = f"{scope}{whole or 'some'} {f'case {condition} fails' if whole else f'cases {condition} fail'}"
        ends = {"": (self.failing, self.conforming), " further ones": self.further}
        counts = [f"{fail:,} of {fail + conform:,}{what}" for what, (fail, conform) in ends.items() if fail + conform]
        by = f", {_mostly(self.kinds)}" if self.terms else ""
        lines = [f"{subject} ({', and '.join(counts)}{by}){place_of(self.ends)}"]
        if self.terms:
            pairs = zip(self.terms, self.contrast, strict=True)
            alike = "" if len(self.terms) == 1 else "otherwise alike, "
            lines.append(f"{alike}{_listed(f'{number:,} with {term.contrary}' for term, number in pairs)} conform")
        if self.failing_others:
            lines.append(
                f"{count_of(self.failing_others, 'other case')} {'fails' if self.failing_others == 1 else 'fail'}"
            )
        return "; ".join(lines)


def _listed(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


_MAX_TIES = 3


def headline(found: Sequence[FailureCluster]) -> str:
    """Say how many things are wrong, and how many failing cases none of them explains; empty where nothing fails.

    A condition that many conforming cases meet only goes with what is wrong, which may be more than one thing.
    """
    causes = sum(cluster.has_condition for cluster in found)
    kinds = Counter[FailureKind]()
    for cluster in found:
        kinds.update({} if cluster.has_condition else dict(cluster.kinds))
    unexplained = kinds.total()
    if not causes:
        return f"{_failing(unexplained)}: {_ends(kinds.most_common())}" if unexplained else ""
    wrong = "One thing is wrong" if causes == 1 else f"{causes} things are wrong"
    if not all(cluster.is_sharp for cluster in found if cluster.has_condition):
        wrong = f"At least {wrong.lower()}"
    besides = f", and {_failing(unexplained)} that {'this does' if causes == 1 else 'they do'} not explain"
    return wrong + (besides if unexplained else "")


def _failing(number: int) -> str:
    return "one case fails" if number == 1 else f"{number:,} cases fail"


def symptoms(cluster: FailureCluster) -> list[str]:
    """List what became of gradients as far as they can be read, where elements are wrong, and what the probe found."""
    lines = []
    if cluster.astray:
        (way, number), cases = cluster.astray[0], sum(count for _, count in cluster.astray)
        lines.append(f"in {number:,} of {count_of(cases, 'decodable case')} {way}")
    return [*lines, *told(cluster.ends), *cluster.probed[:1]]


def asides(cluster: FailureCluster) -> list[str]:
    """List its symptoms, what fails, what was seen beside each threshold, and conditions that do as well."""
    lines = [*symptoms(cluster), *cluster.probed[1:], f"what fails: {kinds_of(cluster)}"]
    beside = []
    for bound in cluster.bounds:
        conforms = "" if bound.conforms is None else f", {spelled_value(bound.conforms)} conforms"
        beside.append(f"{bound.feature}: {spelled_value(bound.fails)} fails{conforms}")
    if beside:
        lines.append("; ".join(beside))
    if alike := dict.fromkeys(str(term) for tie in cluster.ties for term in tie if term not in cluster.terms):
        lines.append(f"or, which the same cases have: {', '.join(list(alike)[:_MAX_TIES])}")
    return lines


def kinds_of(cluster: FailureCluster) -> str:
    """Count how its cases end, the most frequent first: "interval (31), crashed (2)"."""
    return _ends(cluster.kinds)


def _ends(kinds: Iterable[tuple[FailureKind, int]]) -> str:
    endings = [(check if verdict == Verdict.VIOLATES else verdict, number) for (verdict, check), number in kinds]
    return ", ".join(f"{ending} ({number:,})" for ending, number in endings)


def _mostly(kinds: Sequence[tuple[FailureKind, int]]) -> str:
    """Say how most of the cases end: "by interval", "most by a crash", "by written and others"."""
    (verdict, check), number = kinds[0]
    by = {Verdict.CRASHED: "a crash", Verdict.TIMED_OUT: "a time-out"}.get(Verdict(verdict), check)
    others = sum(number for _, number in kinds) - number
    return f"most by {by}" if 0 < others < number else f"by {by}{' and others' if others else ''}"


def _unexplained(cluster: FailureCluster) -> str:
    """Say of cases that no condition explains how many there are, of the plan unless only further ones fail."""
    number = cluster.failing or cluster.further[0]
    failing = f"{_failing(number)} ({_checks(cluster)})"
    if len(cluster.cases) < MIN_FAILING:
        return f"{failing}: too few to tell what brings {'it' if number == 1 else 'them'} about"
    return f"{failing} and {cluster.conforming:,} conform: nothing was found that tells them apart"


def _checks(cluster: FailureCluster) -> str:
    return ", ".join(dict.fromkeys(check for (_, check), _ in cluster.kinds))
