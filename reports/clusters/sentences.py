"""A cluster in one sentence: the condition, and how many cases on either side of it fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poolproof.reports.clusters.conditions import MIN_FAILING
from poolproof.reports.rows.text import spelled_value
from poolproof.reports.rows.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from poolproof.reports.clusters.cluster import FailureCluster
    from poolproof.reports.clusters.terms import Term

_MAX_TIES = 3
"""Ties that are named."""


def sentence(cluster: FailureCluster) -> str:
    """Describe a cluster: "every case with A and B fails (212 of 212), none of 3,101 others does".

    The others are cases that conform, held to the same checks, and failing ones that are not explained yet.
    """
    if not cluster.has_condition:
        return _unexplained(cluster)
    if not cluster.terms:
        return f"every case held to {_checks(cluster)} fails ({cluster.failing:,} of {cluster.failing:,})"
    return f"{_inside(cluster)}, {_outside(cluster)}"


def headline(found: Sequence[FailureCluster]) -> str:
    """Say how many things are wrong, and how many failing cases none of them explains; empty where nothing fails."""
    causes = sum(cluster.has_condition for cluster in found)
    unexplained = sum(cluster.failing for cluster in found if not cluster.has_condition)
    if not causes:
        return f"{_failing(unexplained)}, and no condition was found that tells which" if unexplained else ""
    wrong = "One thing is wrong" if causes == 1 else f"{causes} things are wrong"
    besides = f", and {_failing(unexplained)} that {'this does' if causes == 1 else 'they do'} not explain"
    return wrong + (besides if unexplained else "")


def _failing(number: int) -> str:
    return "one case fails" if number == 1 else f"{number:,} cases fail"


def asides(cluster: FailureCluster) -> list[str]:
    """List what fails, what was seen beside each threshold, and other conditions that do as well."""
    return [f"what fails: {kinds_of(cluster)}", *_bounds(cluster), *_alike(cluster)]


def kinds_of(cluster: FailureCluster) -> str:
    """Count how its cases end, the most frequent first: "interval (31), crashed (2)"."""
    endings = [
        (check if verdict == Verdict.VIOLATES else verdict, number) for (verdict, check), number in cluster.kinds
    ]
    return ", ".join(f"{ending} ({number:,})" for ending, number in endings)


def _bounds(cluster: FailureCluster) -> list[str]:
    bounds = []
    for bound in cluster.bounds:
        conforms = "" if bound.conforms is None else f", {spelled_value(bound.conforms)} conforms"
        bounds.append(f"{bound.feature}: {spelled_value(bound.fails)} fails{conforms}")
    return ["; ".join(bounds)] if bounds else []


def _alike(cluster: FailureCluster) -> list[str]:
    """Name terms that the same cases have in place of one of the condition's."""
    others = dict.fromkeys(str(term) for tie in cluster.ties for term in tie if term not in cluster.terms)
    names = ", ".join(list(others)[:_MAX_TIES])
    return [f"or, which the same cases have: {names}"] if names else []


def spelled(terms: Iterable[Term]) -> str:
    """Describe a condition."""
    *others, last = map(str, terms)
    return f"{', '.join(others)} and {last}" if others else last


def _inside(cluster: FailureCluster) -> str:
    met, condition = cluster.failing + cluster.conforming, spelled(cluster.terms)
    if not cluster.conforming:
        return f"every case with {condition} fails ({met:,} of {met:,})"
    return f"{cluster.failing:,} of {met:,} cases with {condition} fail"


def _outside(cluster: FailureCluster) -> str:
    others = cluster.failing_others + cluster.conforming_others
    if not others:
        return "and there are no others"
    verb = "does" if not cluster.conforming else "do"
    if not cluster.failing_others:
        return f"none of {others:,} others {verb}"
    return f"{cluster.failing_others:,} of {others:,} others {'does' if cluster.failing_others == 1 else 'do'}"


def _unexplained(cluster: FailureCluster) -> str:
    if cluster.failing == 1:
        return f"one case fails ({_checks(cluster)}): too few to tell what brings it about"
    if cluster.failing < MIN_FAILING:
        return f"{cluster.failing} cases fail ({_checks(cluster)}): too few to tell what brings them about"
    return (
        f"{cluster.failing:,} cases fail ({_checks(cluster)}), and nothing was found that they have in common and "
        f"{cluster.conforming_others:,} conforming ones lack"
    )


def _checks(cluster: FailureCluster) -> str:
    return ", ".join(dict.fromkeys(check for (_, check), _ in cluster.kinds))
