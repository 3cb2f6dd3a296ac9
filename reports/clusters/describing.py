"""What is said of clusters: what fails, when, and what speaks for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from poolproof.reports.clusters.cluster import FailureCluster, FailureKind
from poolproof.reports.clusters.conditions import MIN_FAILING
from poolproof.reports.rows.failures import message
from poolproof.reports.rows.text import count_of, spelled_value
from poolproof.reports.rows.verdicts import Verdict

SCOPES = {"operator": "{}", "dtype": "{}", "aspect": "aspect {}"}
"""Columns of what a run may be narrowed to, with how that is told."""


def describe(cluster: FailureCluster) -> str:
    """Say what fails, when, and what speaks for each term.

    "every case with A and B fails (2 of 2, and 12 of 12 further ones, by interval); otherwise alike, 4 with not A and 9
    with not B conform". What a narrowed run has only one of stands first: "MaxPool3dWithArgmaxBackward, aspect
    precision: every case ...".
    """
    counts = cluster.counts
    if not cluster.has_condition:
        return _unexplained(cluster)
    condition = f"with {_listed(map(str, cluster.terms))}" if cluster.terms else f"held to {cluster.checks}"
    whole = "every" if not counts.exceptions else "nearly every" if counts.is_sharp else ""
    scope = f"{', '.join(SCOPES[column].format(value) for column, value in cluster.scope)}: " if cluster.scope else ""
    subject = f"{scope}{whole or 'some'} {f'case {condition} fails' if whole else f'cases {condition} fail'}"
    ends = {"": (counts.failing, counts.conforming), " further ones": counts.further}
    numbers = [f"{fail:,} of {fail + conform:,}{what}" for what, (fail, conform) in ends.items() if fail + conform]
    by = f", {_mostly(cluster.kinds)}" if cluster.terms else ""
    lines = [f"{subject} ({', and '.join(numbers)}{by})"]
    if cluster.terms:
        pairs = zip(cluster.terms, counts.contrast, strict=True)
        alike = "" if len(cluster.terms) == 1 else "otherwise alike, "
        lines.append(f"{alike}{_listed(f'{number:,} with {term.contrary}' for term, number in pairs)} conform")
    if counts.others:
        lines.append(f"{count_of(counts.others, 'other case')} {'fails' if counts.others == 1 else 'fail'}")
    return "; ".join(lines)


def headline(found: Sequence[FailureCluster]) -> str:
    """Say how many things are wrong, and how many failing cases none of them explains; empty where nothing fails.

    A condition that many conforming cases meet only goes with what is wrong, which may be more than one thing.
    """
    causes = [cluster for cluster in found if cluster.has_condition]
    kinds = Counter[FailureKind]()
    for cluster in found:
        kinds.update({} if cluster.has_condition else dict(cluster.kinds))
    unexplained = kinds.total()
    unsearched = sum({cluster.backend: cluster.unsearched for cluster in found}.values())
    more = f"; {_failing(unsearched)} besides, not searched" if unsearched else ""
    if not causes and 0 < unexplained < MIN_FAILING:
        return f"{_failing(unexplained)}: {_told(found[0])}{more}"
    if not causes:
        return f"{_failing(unexplained)}: {_ends(kinds.most_common())}{more}" if unexplained else ""
    wrong = "One thing is wrong" if len(causes) == 1 else f"{len(causes)} things are wrong"
    if not all(cluster.counts.is_sharp for cluster in causes):
        wrong = f"At least {wrong.lower()}"
    besides = f", and {_failing(unexplained)} that {'this does' if len(causes) == 1 else 'they do'} not explain"
    return wrong + (besides if unexplained else "") + more


def asides(cluster: FailureCluster) -> list[str]:
    """List what the probe found, what fails, and what was seen beside each threshold."""
    beside = []
    for bound in cluster.bounds:
        conforms = "" if bound.conforms is None else f", {spelled_value(bound.conforms)} conforms"
        beside.append(f"{bound.feature}: {spelled_value(bound.fails)} fails{conforms}")
    return [*cluster.probed, f"what fails: {kinds_of(cluster)}", *filter(None, ["; ".join(beside)])]


def kinds_of(cluster: FailureCluster) -> str:
    """Count how its cases end, the most frequent first: "interval (31), crashed (2)"."""
    return _ends(cluster.kinds)


def probe_lines(cluster: FailureCluster, probes: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[str, ...]:
    """Say what the probe found of a cluster's sums that no declared model admits, each with its evidence.

    "the probe of float16: no model admits this rounding: toward zero (predicts 3047 of 3047 sums of two)". Where exact
    data do not arrive, nothing follows from others.
    """
    for account in probes.get(cluster.backend, ()) if cluster.is_about_sums else ():
        seen = {each["trait"]: each for each in account["observations"]}
        arrive = seen.get("exact data", {}).get("found") == "right"
        if arrive and (account["operator"], account["dtype"]) == cluster.place:
            said = []
            for sentence in account["disagreements"]:
                told = [each["evidence"] for each in seen.values() if f"{each['trait']}: {each['found']}" in sentence]
                if not sentence.startswith("declared "):  # that, the failing cases have said
                    said.append("".join([sentence, *(f" ({evidence})" for evidence in told if evidence)]))
            if account["model"] not in ("", account["declared"]):
                said.append(f"{account['model']} admits all that was seen, declared is {account['declared']}")
            return tuple(f"the probe of {' in '.join(cluster.place)}: {sentence}" for sentence in said)
    return ()


def _listed(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _told(cluster: FailureCluster) -> str:
    """Say what is wrong with its smallest case: of a few cases nothing tells what brings them about."""
    return f"{' '.join(cluster.place)}: {message(cluster.smallest)}"


def _failing(number: int) -> str:
    return "one case fails" if number == 1 else f"{number:,} cases fail"


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
    number = cluster.counts.failing or cluster.counts.further[0]
    failing = f"{_failing(number)} ({cluster.checks})"
    if len(cluster.members) < MIN_FAILING:
        return f"{failing}: {_told(cluster)}"
    return f"{failing} and {cluster.counts.conforming:,} conform: nothing was found that tells them apart"
