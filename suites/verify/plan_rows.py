"""Comparison of a run's rows with its plan, whose cases are drawn again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from poolproof.reports.figures.digest import Digest
from poolproof.reports.figures.tables import DRAWN_AGAIN
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import having, read_rows
from poolproof.reports.rows.verdicts import FAILED, BadInput, Verdict
from poolproof.suites.plan.known import record_problems, row_problem
from poolproof.suites.plan.selection import mandatory, plan_cases, redraw, redraw_further

PlannedRow = tuple[Row, tuple[str, ...]]
"""Columns that describe a question, and the checks that judge it if it conforms."""

_AUXILIARY = (
    pc.field("case_id").is_valid()
    & (pc.coalesce(pc.field("block"), pc.scalar("")) == "")
    & having("verdict", [*FAILED, Verdict.WAIVED])
)
"""Auxiliary calls of planned ones that deviate by themselves; of no block, and nobody gains by inventing one."""


_KNOWN = ["case_id", "backend", "product", "operator", "dtype", "verdict", "reason", "case", "model", "given"]
"""Columns of what is known without a device."""


def plan_problems(digest: Digest) -> Iterator[str]:
    """Yield what is wrong: each question has exactly one row, which describes it; no row is about anything else."""
    if mandatory(digest.run) != digest.run["mandatory"]:
        yield "run.json has other mandatory groups than the plan that it names"
    if (whole := plan_cases(digest.run)) != digest.run.get("plan_cases"):
        yield f"the whole plan has {whole:,} cases, which run.json does not say"
    yield from record_problems(digest.run)
    everything = read_rows(digest.folder)
    for row in (row for batch in everything.select(_KNOWN).to_batches() for row in batch.to_pylist()):
        if problem := row_problem(row, digest.run):
            yield f"case {row['case_id']} on {row['backend']} {problem}"
    yield from _further_problems(everything.filter(~DRAWN_AGAIN).to_pylist())
    rows = everything.filter(~_AUXILIARY & DRAWN_AGAIN)
    numbers = defaultdict[tuple[str, str], list[int]](list)
    for number, row in enumerate(rows.select(["backend", "block"]).to_pylist()):
        numbers[row["backend"], row["block"] or ""].append(number)
    recorded = {name: len(found) for name, found in numbers.items()}
    for backend, block, planned in redraw(digest.run, recorded):
        found = rows.take(pa.array(numbers.pop((backend, block), []), pa.int64())).to_pylist()
        yield from _differences(f"{block or 'what is not supported'} on {backend}", planned, found)
    for backend, block in numbers:
        yield f"{block or 'what is not supported'} on {backend} is not part of the plan"


def _further_problems(rows: list[Row]) -> Iterator[str]:
    """Yield rows of further cases that do not say what follows from their case."""
    for row in rows:
        try:
            problem = _difference(redraw_further(row), row)
        except BadInput as error:
            problem = f"is of no further case: {error}"
        if problem:
            yield f"{row['block']}: {_named(_key(row))} {problem}"


def _differences(where: str, planned: list[PlannedRow], found: list[Row]) -> Iterator[str]:
    expected, got = Counter(_key(row) for row, _ in planned), Counter(map(_key, found))
    for key, number in (expected - got).items():
        rows = f"{got[key]} of {got[key] + number} rows" if got[key] else "no row"
        yield f"{where}: {_named(key)} was planned and has {rows}"
    for key, number in (got - expected).items():
        yield f"{where}: {_named(key)} has {number} rows more than were planned"
    by_key = defaultdict[tuple[str, ...], list[PlannedRow]](list)  # two pairs of clauses may be broken by one call
    for question in planned:
        by_key[_key(question[0])].append(question)
    for row in found:
        differences = [_difference(question, row) for question in by_key[_key(row)]]
        if differences and all(differences):
            yield f"{where}: {_named(_key(row))} {differences[0]}"


def _difference(planned: PlannedRow, row: Row) -> str:
    """Return in what a row differs from what was planned; empty if in nothing."""
    described, checks = planned
    for name, value in described.items():
        if row[name] != value:
            return f"says {name} {row[name]!r}, and it is {value!r}"
    missing = [check for check in checks if check not in (row["checks_judged"] or ())]
    if row["verdict"] == Verdict.CONFORMS and missing:
        return f"is said to conform, and the check {missing[0]!r}, which is expected, did not judge it"
    return ""


def _key(row: Row) -> tuple[str, ...]:
    return tuple(str(row.get(name) or "") for name in ("case_id", "operator", "dtype", "index_dtype"))


def _named(key: tuple[str, ...]) -> str:
    case, *pair = key
    return f"case {case}" if case else " ".join(pair)
