"""Sentences about clusters: when cases fail, how many, and which similar ones pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from poolproof.reports.clusters.cluster import FailureCluster, FailureKind
from poolproof.reports.clusters.conditions import MIN_FAILING
from poolproof.reports.clusters.terms import HAS, LACKS
from poolproof.reports.rows.checks import SURVIVAL
from poolproof.reports.rows.features import MASKING
from poolproof.reports.rows.text import count_of, spelled_value
from poolproof.reports.rows.verdicts import Verdict

SCOPES = {"operator": "{}", "dtype": "{}", "aspect": "aspect {}"}
"""Columns that a run may be narrowed to, with their text."""

_MOST_CLAUSES, _MOST_ASPECTS = 4, 3
"""Most clauses and most aspects in a sentence."""


def describe(cluster: FailureCluster) -> str:
    """Return sentences: when cases fail, how many, and which similar cases pass.

    "Fails when W >= 2: 221 of 221 cases (check interval). All 155 cases with W < 2 pass." If a narrowed run has one
    value only, that comes first: "MaxPool3dWithArgmaxBackward, aspect precision: fails when ...".
    """
    counts = cluster.counts
    if not cluster.has_condition:
        sentences = [_unexplained(cluster)]
    else:
        ends = {"case": (counts.failing, counts.conforming), "further case": counts.further}
        numbers = [f"{fail:,} of {count_of(fail + more, what)}" for what, (fail, more) in ends.items() if fail + more]
        ways = f" ({_mostly(cluster.kinds)})" if cluster.terms and not cluster.is_refusal else ""
        sentences = [f"{_when(cluster)}: {' and '.join(numbers)}{ways}", *_passing(cluster)]
        if counts.others:
            sentences.append(f"{_failing(counts.others, 'other ')}, too")
    text = f"{'. '.join(map(_capital, sentences))}."
    scope = ", ".join(SCOPES[column].format(value) for column, value in cluster.scope if value)
    return f"{scope}: {text[0].lower()}{text[1:]}" if scope else text


def _when(cluster: FailureCluster) -> str:
    """Return how failing and the condition are related.

    It is a correlation if many cases that meet it pass, or if about as many others fail as it explains. If many cases
    pass, all failing cases may still meet it.
    """
    counts, verb = cluster.counts, "Is refused" if cluster.is_refusal else "Fails"
    if not cluster.terms:
        checks = f"checks {cluster.checks} judge" if ", " in cluster.checks else f"check {cluster.checks} judges"
        judges = "" if SURVIVAL in cluster.checks else f" that {checks}"
        return f"{'Nearly every' if counts.exceptions else 'Every'} case{judges} {verb.lower()}"
    hidden = [term for term in cluster.terms if term.relation == LACKS and term.feature in MASKING]
    shown = [term for term in cluster.terms if term not in hidden]
    terms = _listed(map(str, shown or hidden))
    terms += f", except with {_listed(term.feature for term in hidden)}" if shown and hidden else ""
    condition = f"{'with' if any(term.relation in (HAS, LACKS) for term in shown or hidden) else 'when'} {terms}"
    if counts.is_sharp and 2 * counts.others < counts.failing:
        return f"Nearly always {verb.lower()} {condition}" if counts.exceptions else f"{verb} {condition}"
    if not counts.elsewhere:
        return f"{verb} only {condition}"
    return f"Goes with {terms}"


def _passing(cluster: FailureCluster) -> Iterable[str]:
    """Yield sentences on passing cases: those that meet all terms but one, or that the broken checks do not judge."""
    pairs = zip(cluster.terms, cluster.counts.contrast, strict=True)
    alike = [f"{number:,} with {term.contrary}" for term, number in pairs]
    if len(alike) > 1:
        yield f"Similar cases pass: {_listed(alike)}"
    elif alike:
        number, _, contrary = alike[0].partition(" ")
        yield f"{'' if cluster.counts.elsewhere else 'All '}{number} cases {contrary} pass"
    elif cluster.passing:
        aspects = [f"{number:,} of aspect {aspect}" for aspect, number in cluster.passing[:_MOST_ASPECTS]]
        left = sum(passing for _, passing in cluster.passing[_MOST_ASPECTS:])
        aspects += [f"{left:,} of other aspects"] if left else []
        yield f"All cases pass that it does not judge: {_listed(aspects)}"


def tells_a_case(found: Sequence[FailureCluster]) -> bool:
    """Tell whether the headline is about the first cluster's smallest case: few cases fail, without a condition."""
    return 0 < _number_unexplained(found) <= MIN_FAILING and not any(cluster.has_condition for cluster in found)


def tells_a_cluster(found: Sequence[FailureCluster]) -> bool:
    """Return whether the headline is the sentence about the first cluster: no other one has a condition, or exists."""
    return sum(cluster.has_condition for cluster in found) == 1 or (len(found) == 1 and not tells_a_case(found))


def headline(found: Sequence[FailureCluster]) -> str:
    """Say what fails, in one line, empty if nothing does.

    The line is about the case if only a few fail. It is the sentence about the cluster if there is one alone, or one
    with a condition. Else it is the number of conditions: one fault may have several.
    """
    causes = [cluster for cluster in found if cluster.has_condition]
    unexplained = _number_unexplained(found)
    unsearched = sum({cluster.backend: cluster.unsearched for cluster in found}.values())
    more = f"; {_failing(unsearched, 'more ')}, not searched for causes" if unsearched else ""
    if tells_a_cluster(found):
        left = unexplained - found[0].counts.others if causes else 0
        further = (_failing(left, "other ") + " in another way" if left > 0 else "", more.removeprefix("; "))
        return " ".join([describe(found[0]), *(f"{_capital(text)}." for text in further if text)])
    if tells_a_case(found):
        return _capital(f"{_failing(unexplained)}: {' '.join(filter(None, found[0].place))}: {found[0].message}{more}")
    if not causes:
        return _capital(f"{_failing(unexplained)}, and no condition was found{more}") if unexplained else ""
    others = f"; {_failing(unexplained, 'other ')}" if unexplained else ""
    return f"Cases fail under {len(causes)} conditions{others}{more}"


def asides(cluster: FailureCluster) -> list[str]:
    """Return the findings of the probe, the kinds of failures, and the observed values beside each threshold."""
    beside = []
    for bound in cluster.bounds:
        conforms = "" if bound.conforms is None else f", {spelled_value(bound.conforms)} conforms"
        beside.append(f"{bound.feature}: {spelled_value(bound.fails)} fails{conforms}")
    fails = [f"failures: {kinds_of(cluster)}"] if len(cluster.kinds) > 1 else []
    return [*cluster.probed, *fails, *filter(None, ["; ".join(beside)])]


def kinds_of(cluster: FailureCluster) -> str:
    """Return the numbers of its kinds of failures, most frequent first: "interval (31), crashed (2)"."""
    kinds = cluster.kinds
    endings = [(check if verdict == Verdict.VIOLATES else verdict, number) for (verdict, check), number in kinds]
    return ", ".join(f"{ending} ({number:,})" for ending, number in endings)


def probe_lines(cluster: FailureCluster, probes: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[str, ...]:
    """Return the probe's findings on a cluster's sums that no declared model admits, with their evidence.

    "the probe of float16: no model admits this rounding: toward zero (predicts 3047 of 3047 sums of two)". If exact
    data are wrong, other findings do not count.
    """
    for account in probes.get(cluster.backend, ()) if cluster.is_about_sums else ():
        seen = {each["trait"]: each for each in account["observations"]}
        arrive = seen.get("exact data", {}).get("found") == "right"
        if arrive and (account["operator"], account["dtype"]) == cluster.place:
            lines = []
            for sentence in account["disagreements"]:
                shown = [each["evidence"] for each in seen.values() if f"{each['trait']}: {each['found']}" in sentence]
                if not sentence.startswith("declared "):  # these repeat the failing cases
                    lines.append("".join([sentence, *(f" ({evidence})" for evidence in shown if evidence)]))
            if account["model"] not in ("", account["declared"]):
                lines.append(f"{account['model']} admits all observed sums, declared is {account['declared']}")
            return tuple(f"the probe of {' in '.join(cluster.place)}: {sentence}" for sentence in lines)
    return ()


def _listed(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _failing(number: int, other: str = "") -> str:
    return f"one {other}case fails" if number == 1 else f"{number:,} {other}cases fail"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _number_unexplained(found: Iterable[FailureCluster]) -> int:
    return sum(number for cluster in found if not cluster.has_condition for _, number in cluster.kinds)


def _mostly(kinds: Sequence[tuple[FailureKind, int]]) -> str:
    """Return how most of the cases end: "check interval", "mostly a crash", "check written and others"."""
    (verdict, check), number = kinds[0]
    by = {Verdict.CRASHED: "a crash", Verdict.TIMED_OUT: "a time-out"}.get(Verdict(verdict), f"check {check}")
    others = sum(number for _, number in kinds) - number
    return f"mostly {by}" if 0 < others < number else f"{by}{' and others' if others else ''}"


def _unexplained(cluster: FailureCluster) -> str:
    """Return the number of cases without a condition: of the plan, or of further cases if only these fail.

    If each call is about a clause or a scenario, it names the failing ones: they are not a feature of the call.
    """
    counts, ways = cluster.counts, _mostly(cluster.kinds)
    number = counts.failing or counts.further[0]
    verb = f"{count_of(number, 'case')} {'is' if number == 1 else 'are'} refused" if cluster.is_refusal else ""
    failing = verb or f"{_failing(number)} ({ways})"
    if cluster.clauses:
        shown = [f"{name} ({fails:,} of {asked:,} cases)" for name, fails, asked in cluster.clauses[:_MOST_CLAUSES]]
        more = [f"{len(cluster.clauses) - _MOST_CLAUSES} more"] if len(cluster.clauses) > _MOST_CLAUSES else []
        clauses = f"{len(cluster.clauses)} of {count_of(cluster.clauses_asked, 'clause')}"
        return f"{failing}, in {clauses}: {_listed([*shown, *more])}"
    if len(cluster.members) < MIN_FAILING:
        return failing
    return f"{failing} and {counts.conforming:,} pass, without a known condition"
