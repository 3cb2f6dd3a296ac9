"""Comparison of a run's rows with themselves and with its plan, which is drawn again.

Only a stretch of rows is in memory, and stretches are compared on all cores. A block that lacks rows is not drawn: the
number of missing rows suffices.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from poolproof.reports.figures.digest import Digest, judging_day, waivers_of
from poolproof.reports.figures.tables import DRAWN_AGAIN
from poolproof.reports.rows.checks import BESIDE_PLAN, REFUSAL
from poolproof.reports.rows.schema import COLUMNS, Row
from poolproof.reports.rows.store import ROWS_PER_PART, Stretch, having, stretches
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import FAILED, BadInput, Verdict
from poolproof.reports.waivers import Waivers
from poolproof.reports.waivers.review import scope_columns
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks.registry import is_full_backward
from poolproof.suites.plan.known import record_problems, row_problem
from poolproof.suites.plan.lines import further_question_of
from poolproof.suites.plan.selection import Key, PlannedRows, Redrawn, Selection, planned_rows
from poolproof.suites.verify.row_verdicts import row_contradiction

_AUXILIARY = (
    pc.field("case_id").is_valid()
    & (pc.coalesce(pc.field("block"), pc.scalar("")) == "")
    & having("verdict", [*FAILED, Verdict.WAIVED])
)
"""Deviating auxiliary calls of planned ones; they have no block, and nobody gains by inventing one."""

_PLANNED = ~_AUXILIARY & DRAWN_AGAIN
_OF_PLACE = ("backend", "block", "case_id", "verdict", "aspect")
_HELD = (
    *(column.name for column in COLUMNS if column.made == "drawn"),
    *("verdict", "reason", "checks_judged", "checks_violated", "findings", "waivers", "judged_at"),
    *("model", "route", "given", "n", "n_reject", "output_digest", "repeat_n", "standards_passed"),
)
"""Columns to compare, besides those of the waivers' scopes."""


@dataclass(frozen=True)
class _Task:
    """Some blocks of a plan, and the stretches with their rows; ``is_shared``: other tasks read these, too."""

    stretches: tuple[Stretch, ...]
    planned: frozenset[Key]
    is_shared: bool = False


Problems = tuple[list[str], list[str]]
"""Problems of rows by themselves, and problems of rows as part of a plan."""


@dataclass(frozen=True)
class _Holder:
    """Compares the rows of a run with their expected content.

    Attributes:
        is_known: Whether this poolproof drew its cases.
        recorded: Number of planned rows of each block.
    """

    run: Mapping[str, Any]
    is_known: bool
    recorded: Mapping[Key, int]

    @cached_property
    def planned(self) -> dict[Key, PlannedRows]:
        return planned_rows(self.run, self.recorded)

    def plan(self, _task: None) -> tuple[list[str], dict[Key, int]]:
        """Return the contradictions of run.json with its plan, and the planned number of rows of each block."""
        return [*_plan_problems(self.run)], {key: expected.count for key, expected in self.planned.items()}

    @cached_property
    def waivers(self) -> Waivers:
        return Waivers(waivers_of(self.run), judging_day(self.run))

    @cached_property
    def columns(self) -> list[str]:
        return list(dict.fromkeys([*_HELD, *scope_columns(self.waivers.all)]))

    def hold(self, task: _Task) -> Problems:
        own, planned, rows_of = list[str](), list[str](), defaultdict[Key, list[Row]](list)
        for table in (stretch.read(self.columns) for stretch in task.stretches):
            if task.is_shared:
                table = table.filter(having("block", {block for _, block in task.planned}))
            rows = table.to_pylist()
            if not task.is_shared:
                own += filter(None, (row_contradiction(row, self.waivers, self.run["backends"]) for row in rows))
                planned += self._known_problems(rows) if self.is_known else ()
            numbered = table.append_column("number", pa.array(range(len(rows)), pa.int64()))
            for row in map(rows.__getitem__, numbered.filter(_PLANNED)["number"].to_pylist()):
                key = row["backend"], row["block"] or ""
                if key in task.planned:
                    rows_of[key].append(row)
        for key in sorted(task.planned):
            planned += _differences(_place(key), self.planned[key].rows(), rows_of[key])
        return own, planned

    def _known_problems(self, rows: Sequence[Row]) -> Iterator[str]:
        """Yield the contradictions of rows with facts that need no device, or with their further case."""
        for row in rows:
            if problem := row_problem(row, self.run):
                yield f"case {row['case_id']} on {row['backend']} {problem}"
            if row["aspect"] in BESIDE_PLAN and (problem := _further_problem(row)):
                yield f"{row['block']}: {_named(_key(row))} {problem}"


def row_problems(digest: Digest, is_known: bool) -> Problems:
    """Compare all rows with themselves and, if ``is_known``, with their plan; `BadInput` if that cannot be drawn."""
    places = _places(digest.folder)
    own, planned, recorded, counts = list[str](), list[str](), sum(places.values(), Counter[Key]()), dict[Key, int]()
    with _started(_Holder(digest.run, is_known, recorded)) as each_of:
        if is_known:
            ((planned, counts),) = each_of(_Holder.plan, [None])
            planned += [f"{_place(key)} is not part of the plan" for key in recorded.keys() - counts.keys()]
            for key, count in counts.items():
                if (lacking := count - recorded[key]) > 0:
                    planned.append(
                        f"{_place(key)}: {lacking:,} of {count_of(count, 'case')} was planned and has no row"
                    )
        drawn = {key: count for key, count in counts.items() if 0 < count <= recorded[key]}
        for of_rows, of_plan in each_of(_Holder.hold, list(_tasks(places, drawn))):
            own += of_rows
            planned += of_plan
    return own, planned


def _plan_problems(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield the contradictions of run.json with the plan that it names."""
    selection = Selection.of_run(run)
    if selection.mandatory() != run["mandatory"]:
        yield "run.json has other mandatory groups than the plan that it names"
    elif (whole := selection.plan_cases()) != run.get("plan_cases"):  # counting a large one takes long
        yield f"the whole plan has {whole:,} cases, which run.json does not say"
    yield from record_problems(run)


def _places(folder: Path) -> dict[Stretch, Counter[Key]]:
    """Return the number of planned rows of each block, by stretch."""
    places = {}
    for stretch in stretches(folder):
        keys = stretch.read(_OF_PLACE).filter(_PLANNED).select(["backend", "block"]).to_pylist()
        places[stretch] = Counter((row["backend"], row["block"] or "") for row in keys)
    return places


def _tasks(places: Mapping[Stretch, Counter[Key]], drawn: Mapping[Key, int]) -> Iterator[_Task]:
    """Yield a task per stretch for the blocks that only it has, then tasks for the blocks of several stretches."""
    holders = defaultdict[Key, list[Stretch]](list)
    for stretch, blocks in places.items():
        for key in blocks.keys() & drawn.keys():
            holders[key].append(stretch)
    for stretch, blocks in places.items():
        yield _Task((stretch,), frozenset(key for key in blocks if len(holders[key]) == 1))
    several = [key for key, among in holders.items() if len(among) > 1]
    ends = list(accumulate(drawn[key] for key in several))
    for _, keys in groupby(zip(several, ends, strict=True), key=lambda entry: entry[1] // ROWS_PER_PART):
        shared = frozenset(key for key, _ in keys)
        yield _Task(tuple(dict.fromkeys(each for key in shared for each in holders[key])), shared, True)


_EachOf = Callable[[Callable[[_Holder, Any], Any], Sequence[Any]], Iterator[Any]]
"""(method of a holder, tasks) -> its results."""


@contextmanager
def _started(holder: _Holder) -> Iterator[_EachOf]:
    """Yield a function that calls a method for each of several tasks, in up to one process per core, or here if few.

    The processes draw the plan, which this one does not keep.
    """
    cores = min(len(os.sched_getaffinity(0)), sum(holder.recorded.values()) // ROWS_PER_PART)
    if cores < 2:
        yield lambda do, tasks: map(partial(do, holder), tasks)
        return
    with ProcessPoolExecutor(cores, get_context("spawn"), _keep, (holder,)) as pool:
        yield lambda do, tasks: pool.map(partial(_with_kept, do), tasks)


_kept: list[_Holder] = []
"""The holder of a process that was started for it: it draws the plan once, for all of its tasks."""


def _keep(holder: _Holder) -> None:
    _kept[:] = [holder]


def _with_kept(do: Callable[[_Holder, Any], Any], task: Any) -> Any:
    return do(_kept[0], task)


def _further_problem(row: Row) -> str:
    """Return the contradiction of a further case's row with its case; empty if none."""
    try:
        question = further_question_of(row)
    except BadInput as error:
        return f"is of no further case: {error}"
    return _difference((question.describe(), question), row)


def _differences(where: str, planned: Sequence[Redrawn], found: Sequence[Row]) -> Iterator[str]:
    expected, got = Counter(_key(row) for row, _ in planned), Counter(map(_key, found))
    for key, number in (expected - got).items():
        rows = f"{got[key]} of {got[key] + number} rows" if got[key] else "no row"
        yield f"{where}: {_named(key)} was planned and has {rows}"
    for key, number in (got - expected).items():
        yield f"{where}: {_named(key)} has {number} rows more than were planned"
    by_key = defaultdict[tuple[str, ...], list[Redrawn]](list)  # one call may break two pairs of clauses
    for question in planned:
        by_key[_key(question[0])].append(question)
    for row in found:
        differences = [_difference(question, row) for question in by_key[_key(row)]]
        if differences and all(differences):
            yield f"{where}: {_named(_key(row))} {differences[0]}"


def _difference(planned: Redrawn, row: Row) -> str:
    """Return the difference of a row from the plan; empty if none."""
    described, question = planned
    for name, value in described.items():
        if row[name] != value:
            return f"says {name} {row[name]!r}, and it is {value!r}"
    if row["verdict"] != Verdict.CONFORMS or question is None:
        return ""
    judged = row["checks_judged"] or ()
    if missing := [check for check in question.expected_checks() if check not in judged]:
        return f"conforms, and the check {missing[0]!r}, which is expected, did not judge it"
    if further := [check for check in judged if check not in (REFUSAL, *question.aspect.checks)]:
        return f"was judged by the check {further[0]!r}, which its aspect does not have"
    return _unmeasured(question, row) if isinstance(question, CaseQuestion) else ""


def _unmeasured(question: CaseQuestion, row: Row) -> str:
    """Return the measure that the row of a conforming answer lacks, or must not have."""
    is_measured = is_full_backward(question.case)
    for name in ("n", "output_digest", "repeat_n"):
        if (row[name] is not None) != is_measured:
            return f"has {'no' if is_measured else 'a'} {name}, and it has to be otherwise"
    if is_measured and "repeat" in row["checks_judged"] and row["repeat_n"] != question.max_repeats:
        return f"was repeated {row['repeat_n']} times, and has to be {question.max_repeats} times"
    if (row["standards_passed"] is not None) != (is_measured and question.aspect.standards):
        return "is held against standards, or is not, and has to be otherwise"
    return ""


def _key(row: Row) -> tuple[str, ...]:
    return tuple([row.get(name) or "" for name in ("case_id", "operator", "dtype", "index_dtype")])


def _place(key: Key) -> str:
    backend, block = key
    return f"{block or 'what is not supported'} on {backend}"


def _named(key: tuple[str, ...]) -> str:
    case, *pair = key
    return f"case {case}" if case else " ".join(pair)
