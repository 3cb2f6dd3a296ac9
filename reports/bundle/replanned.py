"""Whether a run judged what its plan holds: the planned questions, drawn again, against the rows.

Who draws is not known here: `Draw` is handed in by whoever can.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from poolproof.reports.figures.digest import Digest
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import having, read_rows
from poolproof.reports.rows.verdicts import FAILED, Verdict

Drawn = tuple[str, str, list[Row]]
"""Backend, block, and per question of it the columns that follow from the question alone.

The block without a name is what the backend does not have.
"""


_ACCUSED_BESIDES = (
    pc.field("case_id").is_valid()
    & (pc.coalesce(pc.field("block"), pc.scalar("")) == "")
    & having("verdict", [*FAILED, Verdict.WAIVED])
)
"""Calls beside a planned one that deviate by themselves: of no block, and nobody gains by inventing one."""


@dataclass(frozen=True)
class Draw:
    """What was asked of a run, from its record alone: ``questions`` block by block, and the ``mandatory`` groups.

    Both raise `BadInput` where the record does not say.
    """

    questions: Callable[[Mapping[str, Any]], Iterable[Drawn]]
    mandatory: Callable[[Mapping[str, Any]], list[dict[str, Any]]]


def plan_problems(digest: Digest, draw: Draw) -> Iterator[str]:
    """What is wrong: each question has exactly one row, which describes it; no row is about anything else."""
    if draw.mandatory(digest.run) != digest.run["mandatory"]:
        yield "run.json owes other groups than the plan that it names"
    rows = read_rows(digest.folder).filter(~_ACCUSED_BESIDES)
    places = _places(rows)
    for backend, block, described in draw.questions(digest.run):
        there = rows.take(pa.array(places.pop((backend, block), []), pa.int64())).to_pylist()
        yield from _differences(f"{block or 'what is not supported'} on {backend}", described, there)
    for backend, block in places:
        yield f"{block or 'what is not supported'} on {backend} is not part of the plan"


def _places(rows: pa.Table) -> dict[tuple[str, str], list[int]]:
    """The numbers of the rows of each block of each backend."""
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    keys = zip(rows["backend"].to_pylist(), rows["block"].to_pylist(), strict=True)
    for number, (backend, block) in enumerate(keys):
        places[backend, block or ""].append(number)
    return places


def _differences(where: str, described: list[Row], there: list[Row]) -> Iterator[str]:
    owed, got = Counter(map(_key, described)), Counter(map(_key, there))
    for key, number in (owed - got).items():
        rows = f"{got[key]} of {got[key] + number} rows" if got[key] else "no row"
        yield f"{where}: {_named(key)} was planned and has {rows}"
    for key, number in (got - owed).items():
        yield f"{where}: {_named(key)} has {number} rows more than were planned"
    by_key = {_key(row): row for row in described}
    for row in there:
        for name, value in by_key.get(_key(row), {}).items():
            if row[name] != value:
                yield f"{where}: {_named(_key(row))} says {name} {row[name]!r}, and it is {value!r}"
                break


def _key(row: Row) -> tuple[str, ...]:
    """What tells a row of a block from its others."""
    return tuple(str(row.get(name) or "") for name in ("case_id", "operator", "dtype", "index_dtype"))


def _named(key: tuple[str, ...]) -> str:
    case, *pair = key
    return f"case {case}" if case else " ".join(pair)
