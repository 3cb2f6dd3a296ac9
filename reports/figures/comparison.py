"""Comparison of two runs: what got worse, what got better, and differences of their environment.

Cases are matched by backend, aspect and case id, which follow from plan and seed. Runs of different seeds share few
cases; then a failure is new if nothing of its kind failed before. Further cases follow from failures, and are left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from poolproof.reports.figures import tables
from poolproof.reports.figures.conclusion import asked, narrowed
from poolproof.reports.figures.coverage import NEVER_ASKED, coverage, group_columns
from poolproof.reports.figures.quantities import QUANTITIES
from poolproof.reports.rows.checks import NEIGHBOURS
from poolproof.reports.rows.environment import library_text
from poolproof.reports.rows.failures import KIND
from poolproof.reports.rows.schema import GROUP
from poolproof.reports.rows.store import is_used_up, read_rows, read_run
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import FAILED, SKIPPED, Overall, Verdict, gravest

KEY = ("backend", "aspect", "case_id")
"""Columns that match a case of one run with a case of the other."""

WORDS = {Overall.VIOLATES: "regressed", Overall.INCOMPLETE: "judged less", Overall.CONFORMS: "no regression"}
"""Words for the result of a comparison."""

_HEADINGS = {"violated": "checks", "case_id": "for example", "index_dtype": "index dtype"}

FAILING, NOT_JUDGED, ABSENT = "failing", "not judged", "absent"
"""States of a case, beside the verdicts that stay as they are: conforms, waived, and both kinds of refusals."""

_STATES = {
    **dict.fromkeys(map(str, FAILED), FAILING),
    **dict.fromkeys(map(str, SKIPPED - {Verdict.UNDOCUMENTED}), NOT_JUDGED),
}
_NOTHING_LEARNED = (NOT_JUDGED, ABSENT, str(Verdict.UNDOCUMENTED))


@dataclass(frozen=True, eq=False)
class Comparison:
    """The changes between two runs, ``before`` and ``after`` by their run.json.

    Attributes:
        narrowed: Which of the runs were narrowed; empty if both judged their whole plan.
        shared: Number of cases in both runs.
        unasked: Newly failing cases of an operator, dtype and aspect that the run before did not judge.
        transitions: Number of cases per state ``before`` and ``after``, where these differ.
        newly_failing: A line per kind of failure: the columns of `KIND`, dtype, ``cases``, one ``case_id``.
        fixed: The same columns.
        newly_unjudged: Per `GROUP`, the number of ``cases`` judged before and not now, and ``because``.
        precision: See `precision_drift`; ``time``: see `time_drift`.
        environment: ``what`` differs around the runs, ``before`` and ``after``.
    """

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    narrowed: str
    shared: int
    unasked: int
    transitions: pd.DataFrame
    newly_failing: pd.DataFrame
    fixed: pd.DataFrame
    newly_unjudged: pd.DataFrame
    precision: pd.DataFrame
    time: pd.DataFrame
    environment: pd.DataFrame

    @property
    def is_nothing(self) -> bool:
        changes = (self.newly_failing, self.fixed, self.newly_unjudged)
        return all(table.empty for table in (*changes, self.less_precise, self.drifted, self.environment))

    @property
    def sections(self) -> dict[str, pd.DataFrame]:
        """The tables of changes by title, with the columns to show and their headings."""
        failure = ["cases", *MEASURED, "verdict", "violated", "case_id"]
        ratio = [*MEASURED, "drift", "ratio", "low", "high", "cases"]
        moved = [*MEASURED, "statistic", "before", "after"]
        shown = {
            "Newly failing": self.newly_failing[failure],
            "Newly not judged": self.newly_unjudged[["cases", *GROUP, "because"]],
            "Fixed": self.fixed[failure],
            "Cases that changed their state": self.transitions[["cases", "before", "after"]],
            "Precision that got worse": self.less_precise[moved],
            "Time that drifted": self.drifted[ratio],
            "Differences between the runs": self.environment,
        }
        return {title: table.rename(columns=_HEADINGS) for title, table in shown.items() if len(table)}

    @property
    def in_one_line(self) -> str:
        changes = {"newly failing": self.newly_failing, "fixed": self.fixed, "newly not judged": self.newly_unjudged}
        parts = [f"{int(table['cases'].sum()):,} {what}" for what, table in changes.items()]
        parts[0] += f" ({self.unasked:,} of them where the run before judged nothing)" if self.unasked else ""
        parts.append(f"{count_of(self.shared, 'case')} in both runs" if self.shared else self.nothing_shared)
        for side, opposite in (("before", "after"), ("after", "before")):
            only_there = self.transitions.loc[self.transitions[opposite] == ABSENT, "cases"].sum()
            parts += [f"{only_there:,} only in the run {side}"] if only_there else []
        return "; ".join(filter(None, (", ".join(parts), self.narrowed)))

    @property
    def nothing_shared(self) -> str:
        """Say that no case is in both runs; empty if one is."""
        seeds = [run["seed"] for run in (self.before, self.after)]
        why = f" (seeds {seeds[0]} and {seeds[1]})" if seeds[0] != seeds[1] else ""
        return "" if self.shared else f"no case in common{why}"

    @property
    def libraries(self) -> tuple[str, str]:
        """The libraries of all backends, in the run before and in the run after."""
        before, after = (starmap(library_text, run["backends"].items()) for run in (self.before, self.after))
        return ", ".join(before), ", ".join(after)

    def of_backend(self, backend: str) -> Comparison:
        """Return the comparison of one backend; transitions and environment stay whole."""
        own = ("newly_failing", "fixed", "newly_unjudged", "precision", "time")
        parts = {name: table[table["backend"] == backend] for name in own if len(table := getattr(self, name))}
        return replace(self, **parts)

    @property
    def less_precise(self) -> pd.DataFrame:
        return self.precision[self.precision["worse"]]

    @property
    def drifted(self) -> pd.DataFrame:
        return self.time[self.time["drift"] != ""]

    @property
    def has_drifted_for_the_worse(self) -> bool:
        return len(self.less_precise) > 0 or bool((self.time["drift"] == SLOWER).any())

    @property
    def overall(self) -> Overall:
        """Violates if a case fails that did not, incomplete if something is no longer judged."""
        return gravest({Overall.VIOLATES: len(self.newly_failing), Overall.INCOMPLETE: len(self.newly_unjudged)})


def compare(before: Path, after: Path) -> Comparison:
    """Compare two runs; raise `NotARun` if a folder is none."""
    runs = read_run(before), read_run(after)
    cases = _cases(before).merge(_cases(after), on=[*GROUP, "case_id"], how="outer", suffixes=("_before", "_after"))
    cases = cases.fillna({"state_before": ABSENT, "state_after": ABSENT})
    shared = cases[(cases["state_before"] != ABSENT) & (cases["state_after"] != ABSENT)]
    conforming = shared[(shared["state_before"] == Verdict.CONFORMS) & (shared["state_after"] == Verdict.CONFORMS)]
    ids = pa.array(conforming["case_id"], pa.string())
    failures = _failures(before), _failures(after)
    newly_failing, key = _newly_failing(cases, *failures), [*MEASURED, "aspect"]
    asked_before = cases.loc[cases["state_before"] != ABSENT, key].drop_duplicates()
    was_failing = _with_state(failures[0], cases, "state_after")
    left, right = (dict(_flat_environment(read_run(folder), tables.given(folder))) for folder in (before, after))
    names = [name for name in dict.fromkeys([*left, *right]) if left.get(name) != right.get(name)]
    changed = [(name, left.get(name, ""), right.get(name, "")) for name in names]
    sides = {"before": _narrowed(before, runs[0]), "after": _narrowed(after, runs[1])}
    return Comparison(
        before=runs[0],
        after=runs[1],
        narrowed=_of_both(sides),
        shared=len(shared),
        unasked=int((newly_failing.merge(asked_before, on=key, how="left", indicator=True)["_merge"] != "both").sum()),
        transitions=_transitions(cases),
        newly_failing=_kinds(newly_failing),
        fixed=_kinds(was_failing[~was_failing["state_after"].isin([FAILING, Verdict.WAIVED, *_NOTHING_LEARNED])]),
        newly_unjudged=_newly_unjudged(cases, after, runs),
        precision=precision_drift(_precision(before, ids), _precision(after, ids)),
        time=time_drift(conforming),
        environment=pd.DataFrame(changed, columns=["what", "before", "after"]),
    )


def _of_both(sides: Mapping[str, str]) -> str:
    """Return what was left of the plan on each side; only once if it is the same."""
    if len(set(sides.values())) == 1:
        return f"both {text}" if (text := sides["before"]) else ""
    return "; ".join(f"{side} {text}" for side, text in sides.items() if text)


def _narrowed(folder: Path, run: Mapping[str, Any]) -> str:
    """Return what was left of a run's plan; empty for a whole plan."""
    mandatory, unasked = run["mandatory"], 0
    if is_used_up(run):
        rows = read_rows(folder, list(dict.fromkeys((*tables.COUNTED, "block", *group_columns(mandatory)))))
        unasked = int(coverage(rows.filter(tables.COUNTED_CASES), mandatory, is_used_up=True)["unasked"].sum())
    return narrowed(run, sum(group["planned"] for group in mandatory), unasked)


def _cases(folder: Path) -> pd.DataFrame:
    columns = [*GROUP, "case_id", "verdict", "call_seconds"]
    cases = tables.load(folder, columns, (pc.field("aspect") != "") & tables.DRAWN_AGAIN).drop_duplicates(list(KEY))
    return cases.rename(columns={"verdict": "state"}).replace({"state": _STATES})


def _transitions(cases: pd.DataFrame) -> pd.DataFrame:
    states = cases[["state_before", "state_after"]].set_axis(["before", "after"], axis=1)
    changed = states[states["before"] != states["after"]]
    counted = changed.groupby(["before", "after"], as_index=False).size().rename(columns={"size": "cases"})
    return counted.sort_values("cases", ascending=False, kind="stable", ignore_index=True)


def _failures(folder: Path) -> pd.DataFrame:
    columns = [*KEY, "operator", "dtype", "verdict", "checks_violated"]
    failed = tables.load(folder, columns, tables.HAS_FAILED & tables.COUNTED_CASES)
    return tables.with_violated(failed).drop(columns="checks_violated")


def _newly_failing(cases: pd.DataFrame, before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return failures of cases that did not fail, or that are new, if nothing of their kind failed before."""
    known = _with_state(after, cases, "state_before")
    seen = known.merge(before[list(KIND)].drop_duplicates(), on=list(KIND), how="left", indicator=True)["_merge"]
    was_absent = (known["state_before"] == ABSENT).to_numpy()
    new = (known["state_before"] != FAILING).to_numpy() & ~(was_absent & (seen == "both").to_numpy())
    return known[new]


def _with_state(failures: pd.DataFrame, cases: pd.DataFrame, state: str) -> pd.DataFrame:
    return failures.merge(cases[[*KEY, state]], on=list(KEY))


def _kinds(failed: pd.DataFrame) -> pd.DataFrame:
    columns = [*KIND, "dtype"]
    kinds = failed.groupby(columns, sort=False).agg(cases=("case_id", "size"), case_id=("case_id", "min"))
    return kinds.reset_index().sort_values(["cases", *columns], ascending=[False, *[True] * 5], ignore_index=True)


def _newly_unjudged(cases: pd.DataFrame, after: Path, runs: tuple[Mapping[str, Any], ...]) -> pd.DataFrame:
    """Return the cases judged before and not now, per `GROUP`.

    An absent case is excused if its group is still judged, with another seed, fewer cases or less time. Auxiliary calls
    are optional. ``because`` is the run's commonest reason for a group.
    """
    was_judged, is_judged = (~cases[f"state_{side}"].isin(_NOTHING_LEARNED) for side in ("before", "after"))
    lost = cases[was_judged & ~is_judged & (cases["aspect"] != NEIGHBOURS)]
    plans: list[Counter[tuple[Any, ...]]] = [Counter(), Counter()]
    for planned, run in zip(plans, runs, strict=True):
        for group in run["mandatory"]:  # clauses of a group together
            planned[tuple(group.get(name) for name in GROUP)] += group["planned"]
    is_reseeded = runs[0]["seed"] != runs[1]["seed"] or is_used_up(runs[1])
    still_judged = cases.loc[is_judged, list(GROUP)].drop_duplicates().itertuples(index=False, name=None)
    excused = {key for key in still_judged if is_reseeded or plans[1][key] < plans[0][key]}
    is_excused = [key in excused for key in lost[list(GROUP)].itertuples(index=False, name=None)]
    lost = lost[(lost["state_after"] != ABSENT) | ~np.array(is_excused, bool)]
    reasons = tables.commonest_reasons(read_rows(after, [*GROUP, "verdict", "reason"], tables.WAS_SKIPPED), GROUP)
    counted = lost.groupby(list(GROUP)).size().rename("cases").reset_index()
    groups = counted[list(GROUP)].itertuples(index=False, name=None)
    counted["because"] = [reasons.get(group, NEVER_ASKED) for group in groups]
    return counted.sort_values("cases", ascending=False, kind="stable", ignore_index=True)


def _precision(folder: Path, case_ids: pa.Array) -> pd.DataFrame:
    rows = read_rows(folder, ["case_id", *MEASURED, *tables.PRECISION], tables.CONFORMS)
    return tables.precision(rows.filter(pc.is_in(rows["case_id"], value_set=case_ids)), MEASURED)


def _flat_environment(run: Mapping[str, Any], given: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    yield from (("selection", asked(run)), ("seed", str(run["seed"])))
    yield from ((f"{backend} given", "; ".join(texts)) for backend, texts in given.items())
    yield "waivers", ", ".join(waiver["id"] for waiver in run["waivers"])
    for title, values in {"suite": run["suite"], "host": run["host"], **run["backends"]}.items():
        for name, value in values.items():
            yield f"{title} {name}", str(value)


MEASURED = ("backend", "operator", "dtype")
"""Columns of the groups in the comparison of precision and time."""

SLOWER, FASTER = "slower", "faster"

TOLERATED_RATIO = 1.1
"""Ratio up to which times are equal: caches, clocks and other processes change as much."""

MIN_CASES = 20
"""Least timed cases of a group to compare times."""

_Z = 2.576
"""Normal quantile of a two-sided interval of 99 %."""


def precision_drift(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return `MEASURED`, statistic, before, after and worse for every quantity that changed; worse ones first.

    Both frames are those of `tables.precision` over the same cases.
    """
    lines = []
    for group in before.index.intersection(after.index):
        for quantity in QUANTITIES:
            values = float(before.loc[group, quantity.column]), float(after.loc[group, quantity.column])
            if not math.isclose(*values, rel_tol=1e-9) and not all(map(math.isnan, values)):
                lines.append((*group, quantity.title, *values, quantity.is_worse(*values)))
    table = pd.DataFrame(lines, columns=[*MEASURED, "statistic", "before", "after", "worse"]).astype({"worse": bool})
    ascending = [False, True, True, True]
    return table.sort_values(["worse", *MEASURED], ascending=ascending, kind="stable", ignore_index=True)


def time_drift(cases: pd.DataFrame) -> pd.DataFrame:
    """Return per `MEASURED` the median ratio of call times, its 99 % interval, the number of cases, and ``drift``.

    ``cases`` has call_seconds_before and call_seconds_after. ``drift`` is "slower" or "faster" if the whole interval is
    beyond `TOLERATED_RATIO`, otherwise empty. The interval comes from order statistics and assumes no distribution of
    times.
    """
    timed = cases[(cases["call_seconds_before"] > 0) & (cases["call_seconds_after"] > 0)]
    ratios = timed["call_seconds_after"] / timed["call_seconds_before"]
    lines = []
    for group, values in ratios.groupby([timed[name] for name in MEASURED]):
        number, ascending = len(values), np.sort(values.to_numpy())
        reach = _Z * math.sqrt(number) / 2
        low, high = max(math.floor(number / 2 - reach), 0), min(math.ceil(number / 2 + reach), number - 1)
        lines.append((*group, float(np.median(ascending)), float(ascending[low]), float(ascending[high]), number))
    table = pd.DataFrame(lines, columns=[*MEASURED, "ratio", "low", "high", "cases"])
    table["drift"] = ""
    enough = table["cases"] >= MIN_CASES
    table.loc[enough & (table["low"] > TOLERATED_RATIO), "drift"] = SLOWER
    table.loc[enough & (table["high"] < 1 / TOLERATED_RATIO), "drift"] = FASTER
    return table.sort_values("ratio", ascending=False, ignore_index=True)
