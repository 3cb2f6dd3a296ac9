"""Conclusion of a run: the overall verdict with its reasons, and the calls that were only refused, never run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from poolproof.references.refusals import DECLARED
from poolproof.reports.figures.coverage import NEVER_ASKED
from poolproof.reports.rows.store import having, is_used_up
from poolproof.reports.rows.text import count_of, duration
from poolproof.reports.rows.verdicts import JUDGED, Overall, Verdict, gravest
from poolproof.reports.waivers.review import STALE, Review, State


@dataclass(frozen=True)
class Conclusion:
    """The overall verdict of a run.

    Attributes:
        totals: Numbers of cases, as in `tables.counts`.
        planned: Cases that had to be judged; ``missing`` of them were not.
        narrowed: How much of its plan was to be judged; empty for a whole plan.
        further: Further cases of the diagnosis, which no other number includes.
        waivers: Number of used waivers.
        beyond: Judged cases of further seeds.
    """

    overall: Overall
    reasons: tuple[str, ...]
    totals: Mapping[str, int]
    planned: int
    missing: int
    narrowed: str = ""
    further: int = 0
    waivers: int = 0
    beyond: int = 0
    unasked: int = 0
    """Cases of the plan that a budget left out."""
    mended: tuple[str, ...] = ()
    """Ids of the cases that failed in an earlier run, and pass in this one."""

    @property
    def shown(self) -> tuple[str, Overall]:
        """The word to show, and its overall verdict: "conforms in part" for a narrowed run."""
        return in_part(self.overall.word, self.overall, self.narrowed)

    @property
    def judged(self) -> int:
        """Number of judged planned cases, if there is a plan; calls of aspect `NEIGHBOURS` are not planned."""
        judged = self.totals["judged"] - self.beyond
        return min(judged, self.planned - self.unasked) if self.planned else judged

    @property
    def conforming_text(self) -> str:
        """The numbers of conforming cases, and of deviating ones that are waived."""
        waived = self.totals["waived"]
        if not waived:
            return "none deviates"
        unplanned = self.totals["judged"] - self.beyond - self.judged
        among = f", among them {count_of(unplanned, 'call')} beside the plan," if unplanned else ""
        deviate = f"{waived:,}{among} {'deviates and is' if waived == 1 else 'deviate and are'} waived"
        return f"{self.totals['conforms']:,} conform, {deviate} by {count_of(self.waivers, 'waiver')}"

    @property
    def further_text(self) -> str:
        return f"{count_of(self.further, 'further case')} judged to narrow down the causes" if self.further else ""

    @property
    def mended_text(self) -> str:
        count, more = len(self.mended), len(self.mended) - _MOST_MENDED
        ids = ", ".join(self.mended[:_MOST_MENDED]) + (f" and {more} more" if more > 0 else "")
        passing = "passes" if count == 1 else "pass"
        return f"{count_of(count, 'case')} failed in an earlier run and {passing} now: {ids}" if count else ""

    def to_record(self) -> dict[str, Any]:
        """Return the JSON object of the bundle."""
        numbers = {name: getattr(self, name) for name in ("planned", "missing", "narrowed", "further")}
        ended = {"verdict": self.overall.word, "exit_status": int(self.overall), "reasons": list(self.reasons)}
        return ended | {"cases": dict(self.totals)} | numbers


def conclude(
    counts: pd.DataFrame,
    coverage: pd.DataFrame,
    never_run: pd.DataFrame,
    reviews: Sequence[Review],
    run: Mapping[str, Any],
    further: int = 0,
    beyond: int = 0,
    mended: Sequence[str] = (),
) -> Conclusion:
    """Derive the conclusion from verdict counts, coverage, never run calls and the waivers' states.

    A run with deviations and gaps violates; the reasons name both.
    """
    totals = {str(name): int(count) for name, count in counts.sum().items()}
    missing, planned = int(coverage["missing"].sum()), int(coverage["planned"].sum())
    deviations = list(_deviations(totals, reviews if run["strict_waivers"] else ()))
    gaps = list(_gaps(totals, coverage, never_run, run))
    used = sum(review.state is State.USED for review in reviews)
    gaps += [] if run["finished"] else ["the run has not finished"]
    overall = gravest({Overall.VIOLATES: deviations, Overall.INCOMPLETE: gaps})
    unasked = int(coverage["unasked"].sum())
    left = narrowed(run, planned, unasked, beyond)
    counted = totals, planned, missing, left, further, used, beyond, unasked
    return Conclusion(overall, (*deviations, *gaps), *counted, tuple(mended))


def _deviations(totals: Mapping[str, int], strictly_reviewed: Sequence[Review]) -> Iterator[str]:
    if totals["violates"]:
        crashed = f", {totals['crashed']:,} of them by a crash or a time-out" if totals["crashed"] else ""
        judged = count_of(totals["judged"], "judged case")
        verb = "fails" if totals["judged"] == 1 else "fail"
        yield f"{totals['violates']:,} of {judged} {verb}{crashed}"
    if stale := [f"{review.waiver.id} ({review.state})" for review in strictly_reviewed if review.state in STALE]:
        yield f"stale waivers (--strict-waivers): {', '.join(stale)}"


def _gaps(
    totals: Mapping[str, int], coverage: pd.DataFrame, never_run: pd.DataFrame, run: Mapping[str, Any]
) -> Iterator[str]:
    """Yield sentences on exceptions, refusals that no document allows, and cases missing for other reasons."""
    for what, number in (
        ("the suite itself raised an exception", totals["suite_errors"]),
        ("an adapter raised an exception or gave no outcome", totals["adapter_errors"]),
    ):
        if number:
            yield f"{what} in {count_of(number, 'case')}: no verdict on the implementation"
    only = f"never run, only refused: {named(never_run)}" if len(never_run) else ""
    planned, refused = count_of(int(coverage["planned"].sum()), "planned case"), totals["undocumented"]
    if refused:
        refused = int(coverage["refused"].sum()) or refused  # of the plan; without one in it, those of the search
        allowed = "refused without a known document that allows it"
        yield "; ".join(filter(None, [f"{allowed}: {refused:,} of {planned}", only]))
    elif only:
        yield only
    missing = (coverage["missing"] - coverage["refused"]).clip(lower=0)
    if missing.sum():
        text = f"not judged: {int(missing.sum()):,} of {planned}, in {count_of(int((missing > 0).sum()), 'group')}"
        is_out_of_time = is_used_up(run) and (coverage["because"] == NEVER_ASKED).any()
        is_told = coverage["unasked"].any()  # in the text about a narrowed run
        yield f"{text}, {used_up(run)}" if is_out_of_time and not is_told else text
    elif not totals["judged"] and not refused:
        yield "no case was judged"


def used_up(run: Mapping[str, Any]) -> str:
    return f"budget of {duration(run['budget']['seconds'])} used up"


def narrowed(run: Mapping[str, Any], planned: int, unasked: int = 0, beyond: int = 0) -> str:
    """Return what options, ``-k``, a shard, a budget or single cases left of the plan, as text.

    A budget left ``unasked`` cases of the plan, or allowed ``beyond`` cases after it.
    """
    whole, selection = run.get("plan_cases", 0), run.get("selection", {})
    shard = f", shard {selection['shard']}" if "shard" in selection else ""
    if selection.get("lines"):
        return f"narrowed: {count_of(planned, 'single case')}, nothing of plan {run['plan']}{shard}"
    of_plan = planned - unasked
    options = _options(run)
    more = f" and {len(options) - _MOST_OPTIONS} more" if len(options) > _MOST_OPTIONS else ""
    by = f" ({' '.join(options[:_MOST_OPTIONS])}{more})" if options else ""
    part = f"narrowed: {of_plan:,} of {count_of(whole, 'case')} of plan {run['plan']}{by}" if of_plan < whole else ""
    if unasked:
        part += f", not judged: {unasked:,} of {count_of(planned, 'planned case')}, {used_up(run)}"
    if beyond:
        part += f"{', and ' if part else ''}{count_of(beyond, 'case')} beyond the plan"
    return part + shard


_MOST_OPTIONS = 6
_MOST_MENDED = 5
"""Most ids of mended cases to show."""


def _options(run: Mapping[str, Any]) -> list[str]:
    tests = [f"{count_of(len(run['narrowed']['tests']), 'test')} by -k or id"] if "narrowed" in run else []
    return [*run.get("selection", {}).get("options", ()), *tests]


def asked(run: Mapping[str, Any]) -> str:
    """Return the selection of a run as text, independent of its results and time: plan and options."""
    selection = run.get("selection", {})
    if lines := selection.get("lines"):
        return count_of(len(lines), "single case")
    shard = [f"--shard {selection['shard']}"] if "shard" in selection else []
    timed = ["--budget"] if is_used_up(run) else []
    return " ".join([run["plan"], *_options(run), *shard, *timed])


def is_narrowed(left: str) -> bool:
    """Tell whether the text of `narrowed` leaves out a part of the plan; there may be cases beyond it."""
    return "narrowed: " in left


def in_part(word: str, overall: Overall, left: str) -> tuple[str, Overall]:
    """Return a verdict's word and overall verdict to show: a narrowed run without failures is good "in part"."""
    is_in_part = is_narrowed(left) and overall is Overall.CONFORMS
    return (f"{word} in part", Overall.INCOMPLETE) if is_in_part else (word, overall)


ALL_CALLS = "every call"
"""The class of a line if no call of an operator and dtype ran."""

NEEDED = ("backend", "operator", "dtype", "classes", "verdict", "reason")
"""Columns that `never_run` needs."""

_SUBJECT = ["backend", "operator", "dtype"]
_WAS_CALLED = having("verdict", JUDGED | {Verdict.UNDOCUMENTED})
_IS_REFUSED = having("verdict", {Verdict.UNDOCUMENTED}) | pc.starts_with(pc.field("reason"), DECLARED)
_MAX_NAMED = 3


def never_run(rows: pa.Table) -> pd.DataFrame:
    """Return the classes of calls with undocumented refusals and without a run.

    An adapter may declare that some calls are refused, but not all of an operator and dtype.

    Columns: backend, operator, dtype, class (`ALL_CALLS` if nothing of the dtype ran, instead of its classes), refused,
    because (the commonest reason). Classes that were not drawn have no line.
    """
    called = rows.filter(_WAS_CALLED).select(NEEDED)
    if not called.filter(_IS_REFUSED).num_rows:
        return pd.DataFrame(columns=[*_SUBJECT, "class", "refused", "because"])
    judged = called.to_pandas()
    bare = judged["verdict"] == Verdict.UNDOCUMENTED
    is_refused = bare | judged["reason"].str.startswith(DECLARED)
    ran = ~bare & (judged["verdict"] != Verdict.REFUSED)
    counted = judged.assign(refused=is_refused, ran=ran, bare=bare, reason=judged["reason"].where(is_refused))
    counted["class"] = [[ALL_CALLS, *(() if words is None else words)] for words in judged["classes"]]
    by_class = counted.explode("class", ignore_index=True).groupby([*_SUBJECT, "class"])
    commonest = ("reason", lambda reasons: str(next(iter(reasons.mode()), "")))
    sums = {name: (name, "sum") for name in ("ran", "refused", "bare")}
    lines = by_class.agg(**sums, because=commonest).reset_index()
    is_gap = (lines["bare"] > 0) | ((lines["class"] == ALL_CALLS) & (lines["refused"] > 0))
    lines = lines[(lines["ran"] == 0) & is_gap].drop(columns=["ran", "bare"])
    entirely = pd.MultiIndex.from_frame(lines.loc[lines["class"] == ALL_CALLS, _SUBJECT])
    is_covered = pd.MultiIndex.from_frame(lines[_SUBJECT]).isin(entirely) & (lines["class"] != ALL_CALLS)
    return lines[~is_covered].sort_values("refused", ascending=False, kind="stable", ignore_index=True)


def named(never: pd.DataFrame) -> str:
    """Return the first lines as text, the dtypes of an operator together; empty without lines."""
    together: dict[str, set[str]] = {}
    for operator, dtype, what in zip(never["operator"], never["dtype"], never["class"], strict=True):
        together.setdefault(f"{what} of {operator}", set()).add(dtype)
    texts = [f"{what} ({', '.join(sorted(dtypes))})" for what, dtypes in together.items()]
    more = len(texts) - _MAX_NAMED
    return ", ".join(texts[:_MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")
