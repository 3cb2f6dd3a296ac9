"""Whether a run judged what its plan holds: the planned questions, drawn again, against the rows.

Who draws is not known here: `Redraw` is handed in by whoever can.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from poolproof.reports.figures.digest import Digest
from poolproof.reports.figures.tables import PLANNED
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import having, read_rows
from poolproof.reports.rows.verdicts import FAILED, BadInput, Verdict

PlannedRow = tuple[Row, tuple[str, ...]]
"""What follows from a question alone: the columns that describe it, and checks that judge it if it conforms."""

DrawnBlock = tuple[str, str, list[PlannedRow]]
"""Backend, block, and its questions; the block without a name is what the backend does not have."""


_ACCUSED_BESIDES = (
    pc.field("case_id").is_valid()
    & (pc.coalesce(pc.field("block"), pc.scalar("")) == "")
    & having("verdict", [*FAILED, Verdict.WAIVED])
)
"""Calls beside a planned one that deviate by themselves: of no block, and nobody gains by inventing one."""


@dataclass(frozen=True)
class Redraw:
    """What was asked of a run, from its record alone: ``questions`` block by block, the ``mandatory`` groups, and how
    many cases the whole plan has.

    All raise `BadInput` where the record does not say. ``further`` tells what the row of a further case has to say, for
    which no plan speaks; `BadInput` where it is of none.
    """

    questions: Callable[[Mapping[str, Any]], Iterable[DrawnBlock]]
    mandatory: Callable[[Mapping[str, Any]], list[dict[str, Any]]]
    plan_cases: Callable[[Mapping[str, Any]], int]
    further: Callable[[Row], PlannedRow] | None = None


def plan_problems(digest: Digest, draw: Redraw) -> Iterator[str]:
    """What is wrong: each question has exactly one row, which describes it; no row is about anything else."""
    if draw.mandatory(digest.run) != digest.run["mandatory"]:
        yield "run.json owes other groups than the plan that it names"
    if (whole := draw.plan_cases(digest.run)) != digest.run.get("plan_cases"):
        yield f"the whole plan has {whole:,} cases, which run.json does not say"
    everything = read_rows(digest.folder)
    if draw.further is not None:
        yield from _further_problems(everything.filter(~PLANNED).to_pylist(), draw.further)
    rows = everything.filter(~_ACCUSED_BESIDES & PLANNED)
    places = _places(rows)
    for backend, block, planned in draw.questions(digest.run):
        there = rows.take(pa.array(places.pop((backend, block), []), pa.int64())).to_pylist()
        yield from _differences(f"{block or 'what is not supported'} on {backend}", planned, there)
    for backend, block in places:
        yield f"{block or 'what is not supported'} on {backend} is not part of the plan"


def _further_problems(rows: list[Row], further: Callable[[Row], PlannedRow]) -> Iterator[str]:
    """Rows of further cases that do not say what follows from their case: which there are, no plan says."""
    for row in rows:
        try:
            problem = _other(further(row), row)
        except BadInput as error:
            problem = f"is of no further case: {error}"
        if problem:
            yield f"{row['block']}: {_named(_key(row))} {problem}"


def _places(rows: pa.Table) -> dict[tuple[str, str], list[int]]:
    """The numbers of the rows of each block of each backend."""
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    keys = zip(rows["backend"].to_pylist(), rows["block"].to_pylist(), strict=True)
    for number, (backend, block) in enumerate(keys):
        places[backend, block or ""].append(number)
    return places


def _differences(where: str, planned: list[PlannedRow], there: list[Row]) -> Iterator[str]:
    owed, got = Counter(_key(row) for row, _ in planned), Counter(map(_key, there))
    for key, number in (owed - got).items():
        rows = f"{got[key]} of {got[key] + number} rows" if got[key] else "no row"
        yield f"{where}: {_named(key)} was planned and has {rows}"
    for key, number in (got - owed).items():
        yield f"{where}: {_named(key)} has {number} rows more than were planned"
    by_key = {_key(question[0]): question for question in planned}
    for row in there:
        if (question := by_key.get(_key(row))) is not None and (other := _other(question, row)):
            yield f"{where}: {_named(_key(row))} {other}"


def _other(planned: PlannedRow, row: Row) -> str:
    """In what a row differs from what was planned, empty if in nothing."""
    described, checks = planned
    for name, value in described.items():
        if row[name] != value:
            return f"says {name} {row[name]!r}, and it is {value!r}"
    missing = [check for check in checks if check not in (row["checks_judged"] or ())]
    if row["verdict"] == Verdict.CONFORMS and missing:
        return f"is said to conform, and the check {missing[0]!r}, which it owes, did not judge it"
    return ""


def _key(row: Row) -> tuple[str, ...]:
    """What tells a row of a block from its others."""
    return tuple(str(row.get(name) or "") for name in ("case_id", "operator", "dtype", "index_dtype"))


def _named(key: tuple[str, ...]) -> str:
    case, *pair = key
    return f"case {case}" if case else " ".join(pair)
