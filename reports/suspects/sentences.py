"""A suspect in one sentence: the condition, and how many cases on either side of it fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poolproof.reports.rows.verdicts import Verdict
from poolproof.reports.suspects.search import LEAST_FAILING
from poolproof.reports.suspects.terms import spelled_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from poolproof.reports.suspects.suspect import Bound, Suspect
    from poolproof.reports.suspects.terms import Term

_MOST_TIES = 3
"""Of the conditions that do as well."""


def sentence(suspect: Suspect) -> str:
    """With a condition: "every case with A and B fails (212 of 212), none of 3,101 others does".

    The others are cases that conform, held to the same checks, and failing ones that are not explained yet.
    """
    if not suspect.is_claimed:
        return _unexplained(suspect)
    if not suspect.terms:
        return f"every case held to {_checks(suspect)} fails ({suspect.failing:,} of {suspect.failing:,})"
    return f"{_inside(suspect)}, {_outside(suspect)}"


def headline(found: Sequence[Suspect]) -> str:
    """How many things are wrong, and how many failing cases none of them explains; empty where nothing fails."""
    things = sum(each.is_claimed for each in found)
    unexplained = sum(each.failing for each in found if not each.is_claimed)
    if not things:
        return f"{_failing(unexplained)}, and no condition was found that tells which" if unexplained else ""
    wrong = "One thing is wrong" if things == 1 else f"{things} things are wrong"
    besides = f", and {_failing(unexplained)} that {'this does' if things == 1 else 'they do'} not explain"
    return wrong + (besides if unexplained else "")


def _failing(number: int) -> str:
    return "one case fails" if number == 1 else f"{number:,} cases fail"


def asides(suspect: Suspect) -> list[str]:
    """What is known besides: what fails, what was seen beside each threshold, and other conditions that do as well."""
    return [f"what fails: {kinds_of(suspect)}", *_beside(suspect), *_alike(suspect)]


def kinds_of(suspect: Suspect) -> str:
    """How its cases end and in how many, the most frequent first: "interval (31), crashed (2)"."""
    return ", ".join(f"{_ending(*kind)} ({number:,})" for kind, number in suspect.kinds)


def _ending(verdict: str, check: str) -> str:
    return check if verdict == Verdict.VIOLATES else verdict


def _beside(suspect: Suspect) -> list[str]:
    return ["; ".join(map(_seen, suspect.bounds))] if suspect.bounds else []


def _seen(bound: Bound) -> str:
    conforms = "" if bound.conforms is None else f", {spelled_value(bound.conforms)} conforms"
    return f"{bound.feature}: {spelled_value(bound.fails)} fails{conforms}"


def _alike(suspect: Suspect) -> list[str]:
    """Terms that the same cases have in place of one of the condition's."""
    others = dict.fromkeys(str(term) for tie in suspect.ties for term in tie if term not in suspect.terms)
    told = ", ".join(list(others)[:_MOST_TIES])
    return [f"or, which the same cases have: {told}"] if told else []


def spelled(terms: Iterable[Term]) -> str:
    """A condition in words."""
    *others, last = map(str, terms)
    return f"{', '.join(others)} and {last}" if others else last


def _inside(suspect: Suspect) -> str:
    met, condition = suspect.failing + suspect.conforming, spelled(suspect.terms)
    if not suspect.conforming:
        return f"every case with {condition} fails ({met:,} of {met:,})"
    return f"{suspect.failing:,} of {met:,} cases with {condition} fail"


def _outside(suspect: Suspect) -> str:
    others = suspect.failing_others + suspect.conforming_others
    if not others:
        return "and there are no others"
    verb = "does" if not suspect.conforming else "do"
    if not suspect.failing_others:
        return f"none of {others:,} others {verb}"
    return f"{suspect.failing_others:,} of {others:,} others {'does' if suspect.failing_others == 1 else 'do'}"


def _unexplained(suspect: Suspect) -> str:
    if suspect.failing == 1:
        return f"one case fails ({_checks(suspect)}): too few to tell what brings it about"
    if suspect.failing < LEAST_FAILING:
        return f"{suspect.failing} cases fail ({_checks(suspect)}): too few to tell what brings them about"
    return (
        f"{suspect.failing:,} cases fail ({_checks(suspect)}), and nothing was found that they have in common and "
        f"{suspect.conforming_others:,} conforming ones lack"
    )


def _checks(suspect: Suspect) -> str:
    return ", ".join(dict.fromkeys(check for (_, check), _ in suspect.kinds))
