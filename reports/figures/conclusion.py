"""What a whole run amounts to: one overall verdict, with the sentences that say why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from poolproof.reports.figures.refusals import named
from poolproof.reports.rows.verdicts import Overall, gravest
from poolproof.reports.waivers.review import STALE, Review


@dataclass(frozen=True)
class Conclusion:
    """The overall verdict of a run. ``totals`` counts cases as `tables.verdict_counts` does.

    ``planned`` and ``missing`` count the cases that had to be judged and those of them that were not. ``narrowed``
    says how much of its plan was to be judged at all, empty for a whole plan. ``further`` counts the cases that were
    asked besides, to narrow down what is wrong; no other number does.
    """

    overall: Overall
    reasons: tuple[str, ...]
    totals: Mapping[str, int]
    planned: int
    missing: int
    narrowed: str = ""
    further: int = 0

    @property
    def further_told(self) -> str:
        """How many cases were asked besides, empty if none."""
        return f"{count_of(self.further, 'further case')} asked to narrow down what is wrong" if self.further else ""

    def to_record(self) -> dict[str, Any]:
        """As JSON holds it, in the bundle and elsewhere."""
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
    """From the verdict counts, the coverage of the mandatory groups, what was only refused and the waivers' states.

    A run that has deviations and gaps violates; the sentences name both.
    """
    totals = {str(name): int(count) for name, count in counts.sum().items()}
    deviations = [*_deviations(totals), *_stale_waivers(reviews, run)]
    gaps = [*_raised(totals), *_refused(totals, coverage, never_run), *_unjudged(totals, coverage), *_unfinished(run)]
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
    """The refusals that no document allows, and what was never run for them."""
    refused = totals["undocumented"]
    if not refused:
        return []
    cases = f"{refused:,} of {count_of(int(coverage['planned'].sum()), 'planned case')}"
    only = f"; never run, only refused: {named(never_run)}" if len(never_run) else ""
    return [f"refused, though no document of the implementation is known that allows it: {cases}{only}"]


def _unjudged(totals: Mapping[str, int], coverage: pd.DataFrame) -> list[str]:
    """What is missing for other reasons than a refusal, which is told apart."""
    missing = (coverage["missing"] - coverage["refused"]).clip(lower=0)
    if missing.sum():
        planned, groups = int(coverage["planned"].sum()), count_of(int((missing > 0).sum()), "group")
        return [f"not judged: {int(missing.sum()):,} of {count_of(planned, 'planned case')}, in {groups}"]
    return [] if totals["judged"] or totals["undocumented"] else ["no case was judged"]


def _narrowed(run: Mapping[str, Any], planned: int) -> str:
    """What options, ``-k``, a shard, a budget or single cases have left of the plan, as far as the record tells."""
    whole, asked = run.get("plan_cases", 0), run.get("selection", {})
    shard = f", shard {asked['shard']}" if "shard" in asked else ""
    if asked.get("lines"):
        return f"narrowed: {count_of(planned, 'single case')}, nothing of plan {run['plan']}{shard}"
    budget = run.get("budget", {})
    beyond = sum(budget.get("beyond", {}).values())
    of_plan = planned - beyond
    part = f"narrowed: {of_plan:,} of {count_of(whole, 'case')} of plan {run['plan']}" if of_plan < whole else ""
    if beyond:
        part = f"{part}{' and ' if part else ''}{count_of(beyond, 'case')} beyond {'it' if part else 'the plan'}"
    return part + shard + _allotted(budget)


def _allotted(budget: Mapping[str, Any]) -> str:
    """What a budget of time left of the blocks that it was not enough for."""
    parts = budget.get("asked", {})
    if not parts and "beyond" not in budget:
        return ""
    told = f", in {duration(budget['took'])} of a budget of {duration(budget['seconds'])}"
    least = min((asked / of for asked, of in parts.values()), default=1.0)
    return f"{told}: at least 1 case and {100 * least:.1f} % of each block"


def _unfinished(run: Mapping[str, Any]) -> list[str]:
    return [] if run["finished"] else ["the run has not finished"]


def duration(seconds: float) -> str:
    """A time in words: ``12 s``, ``10 min``, ``1 min 30 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return " ".join(f"{number} {unit}" for number, unit in ((minutes, "min"), (rest, "s")) if number) or "0 s"


def count_of(number: int, thing: str) -> str:
    """A number with its noun: ``1 case``, ``2,000 cases``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
