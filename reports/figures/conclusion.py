"""Conclusion of a run: one overall verdict, with the sentences that say why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from poolproof.reports.figures.refusals import named
from poolproof.reports.rows.text import count_of, duration
from poolproof.reports.rows.verdicts import Overall, gravest
from poolproof.reports.waivers.review import STALE, Review


@dataclass(frozen=True)
class Conclusion:
    """The overall verdict of a run. ``totals`` counts cases as `tables.counts` does.

    ``planned`` and ``missing`` count the cases that had to be judged and those of them that were not. ``narrowed`` says
    how much of its plan was to be judged at all, empty for a whole plan. ``further`` counts the cases that were asked
    besides, to narrow down what is wrong; no other number does.
    """

    overall: Overall
    reasons: tuple[str, ...]
    totals: Mapping[str, int]
    planned: int
    missing: int
    narrowed: str = ""
    further: int = 0

    @property
    def further_text(self) -> str:
        """Say how many further cases were run; empty if none."""
        return f"{count_of(self.further, 'further case')} asked to narrow down what is wrong" if self.further else ""

    def to_record(self) -> dict[str, Any]:
        """Return the JSON object of the bundle."""
        return {
            "verdict": self.overall.word,
            "exit_status": int(self.overall),
            "reasons": list(self.reasons),
            "cases": dict(self.totals),
            "planned": self.planned,
            "missing": self.missing,
            "narrowed": self.narrowed,
            "further": self.further,
        }


def conclude(
    counts: pd.DataFrame,
    coverage: pd.DataFrame,
    never_run: pd.DataFrame,
    reviews: Sequence[Review],
    run: Mapping[str, Any],
    further: int = 0,
) -> Conclusion:
    """Derive the conclusion from verdict counts, coverage, what was only refused and the waivers' states.

    A run that has deviations and gaps violates; the sentences name both.
    """
    totals = {str(name): int(count) for name, count in counts.sum().items()}
    deviations = [*_deviations(totals), *_stale_waivers(reviews, run)]
    gaps = [*_raised(totals), *_refused(totals, coverage, never_run), *_unjudged(totals, coverage)]
    gaps += [] if run["finished"] else ["the run has not finished"]
    overall = gravest({Overall.VIOLATES: deviations, Overall.INCOMPLETE: gaps})
    missing, planned = int(coverage["missing"].sum()), int(coverage["planned"].sum())
    return Conclusion(overall, (*deviations, *gaps), totals, planned, missing, _narrowed(run, planned), further)


def _deviations(totals: Mapping[str, int]) -> list[str]:
    if not totals["violates"]:
        return []
    crashed = f", {totals['crashed']:,} of them by a crash or a time-out" if totals["crashed"] else ""
    return [f"deviating and not waived: {totals['violates']:,} of {count_of(totals['judged'], 'judged case')}{crashed}"]


def _raised(totals: Mapping[str, int]) -> list[str]:
    raised = {
        "the suite itself raised an exception": totals["suite_errors"],
        "an adapter raised an exception or gave no outcome": totals["adapter_errors"],
    }
    return [
        f"{what}, which says nothing about the implementation: in {count_of(number, 'case')}"
        for what, number in raised.items()
        if number
    ]


def _stale_waivers(reviews: Sequence[Review], run: Mapping[str, Any]) -> list[str]:
    stale = [f"{review.waiver.id} ({review.state})" for review in reviews if review.state in STALE]
    if not stale or not run["strict_waivers"]:
        return []
    return [f"stale waivers, about which this run is strict: {', '.join(stale)}"]


def _refused(totals: Mapping[str, int], coverage: pd.DataFrame, never_run: pd.DataFrame) -> list[str]:
    """Name the refusals that no document allows, and what was never run for them."""
    refused = totals["undocumented"]
    if not refused:
        return []
    cases = f"{refused:,} of {count_of(int(coverage['planned'].sum()), 'planned case')}"
    only = f"; never run, only refused: {named(never_run)}" if len(never_run) else ""
    return [f"refused, though no document of the implementation is known that allows it: {cases}{only}"]


def _unjudged(totals: Mapping[str, int], coverage: pd.DataFrame) -> list[str]:
    """Say what is missing for other reasons than a refusal."""
    missing = (coverage["missing"] - coverage["refused"]).clip(lower=0)
    if missing.sum():
        planned, groups = int(coverage["planned"].sum()), count_of(int((missing > 0).sum()), "group")
        return [f"not judged: {int(missing.sum()):,} of {count_of(planned, 'planned case')}, in {groups}"]
    return [] if totals["judged"] or totals["undocumented"] else ["no case was judged"]


def _narrowed(run: Mapping[str, Any], planned: int) -> str:
    """Say what options, ``-k``, a shard, a budget or single cases have left of the plan, as far as the record tells."""
    whole, selection = run.get("plan_cases", 0), run.get("selection", {})
    shard = f", shard {selection['shard']}" if "shard" in selection else ""
    if selection.get("lines"):
        return f"narrowed: {count_of(planned, 'single case')}, nothing of plan {run['plan']}{shard}"
    budget = run.get("budget", {})
    beyond = sum(budget.get("beyond", {}).values())
    of_plan = planned - beyond
    part = f"narrowed: {of_plan:,} of {count_of(whole, 'case')} of plan {run['plan']}" if of_plan < whole else ""
    if beyond:
        part = f"{part}{' and ' if part else ''}{count_of(beyond, 'case')} beyond {'it' if part else 'the plan'}"
    return part + shard + _allotted(budget)


def _allotted(budget: Mapping[str, Any]) -> str:
    """Say how much of the blocks a time budget was enough for."""
    parts = budget.get("asked", {})
    if not parts and "beyond" not in budget:
        return ""
    took, budgeted = duration(budget["took"]), duration(budget["seconds"])
    smallest = min((count / total for count, total in parts.values()), default=1.0)
    return f", in {took} of a budget of {budgeted}: at least 1 case and {100 * smallest:.1f} % of each block"
