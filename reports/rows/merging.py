"""Runs of the parts of one plan, joined into one: shards, and what was interrupted or judged again.

What is joined is checked first: another plan, seed, suite, backend, product or waiver makes another run. Where two
runs judged the same case, the first counts, and both must have come to the same.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from poolproof.reports.rows.differing import first_difference
from poolproof.reports.rows.evidence import evidence_path, shrunk_path, write_programs
from poolproof.reports.rows.schema import GROUP
from poolproof.reports.rows.store import finished_blocks, locked, read_rows, read_run, write_run
from poolproof.reports.rows.surroundings import replacing, writing
from poolproof.reports.rows.verdicts import RAISED, BadInput, Verdict

Mandatory = Callable[[Mapping[str, Any]], list[dict[str, Any]]]
"""The groups that a run owes, from its record."""

_COMMON = ("plan", "seed", "suite", "backends", "strict_waivers", "probes")
"""Entries of run.json that parts of one run have in common as they stand."""

_PLUGIN = ("kind", "name")

_KEY = ("block", "case_id", *GROUP)
"""What tells a row from the others of a run; those of no block, which a planned one led to, by their verdict, too."""

_OUTCOME = ("verdict", "checks_judged", "checks_violated", "waivers", "status_code")
"""In what two rows of one case must agree: bits and times may differ where an implementation is free in them."""

_GIVES_WAY = frozenset({Verdict.NOT_RUN, *RAISED})
"""Verdicts that nothing was learned by: a row of the same case that was judged takes their place."""


class CannotMerge(BadInput):
    """The runs are no parts of one; the text names the first thing that speaks against it."""


@dataclass(frozen=True)
class Part:
    """One of the runs: its folder, its record, and its place among the shards, ("1", "1") for a whole plan."""

    folder: Path
    record: Mapping[str, Any]

    @property
    def shard(self) -> str:
        return str(self.record.get("selection", {}).get("shard", "1/1"))

    @property
    def place(self) -> tuple[int, int]:
        number, _, of = self.shard.partition("/")
        return int(number), int(of)


def merge(folders: Sequence[Path], output: Path, mandatory: Mandatory) -> None:
    """Write the run that the runs in ``folders`` are parts of into a new folder.

    `CannotMerge` where they are not, where a shard is missing, or where two judged a case and differ; `InUse` where a
    session still writes to one.
    """
    parts = sorted((Part(folder, read_run(folder)) for folder in folders), key=_order)
    _check(parts)
    with ExitStack() as held:
        for folder in {part.folder.resolve() for part in parts}:
            held.enter_context(locked(folder))
        rows = _joined(parts)
        _open(output)
        held.enter_context(locked(output))
        _write(parts, rows, output)
        write_run(output, _record(parts, rows, mandatory))


def _open(output: Path) -> None:
    """A folder that is new or empty."""
    with writing(output):
        output.mkdir(parents=True, exist_ok=True)
        if any(output.iterdir()):
            raise CannotMerge(f"{output} is not empty: name another folder")
        (output / "rows").mkdir()


def _write(parts: Sequence[Part], rows: pa.Table, output: Path) -> None:
    """Rows, the blocks that are done, and evidence."""
    with replacing(output / "rows" / "merged-0000.parquet") as aside:
        pq.write_table(rows.drop_columns(["part"]), aside, compression="zstd")
    done = sorted(frozenset().union(*(finished_blocks(part.folder) for part in parts)))
    with replacing(output / "rows" / "merged.done") as aside:
        aside.write_text("".join(f"{block}\n" for block in done), encoding="utf-8")
    _copy_evidence(parts, rows, output)


def _order(part: Part) -> tuple[tuple[int, int], bool, float]:
    """Shard by shard; of one that was judged several times, what was finished comes first."""
    return part.place, not part.record["finished"], part.record["started"]


def _check(parts: Sequence[Part]) -> None:
    for part in parts:
        if "selection" not in part.record:
            raise CannotMerge(f"{part.folder} does not say what was asked of it: it was made by an earlier version")
        if "narrowed" in part.record:
            raise CannotMerge(f"{part.folder} judged the tests alone that -k or their ids chose: it can join no other")
    first = parts[0]
    for part in parts[1:]:
        if found := _difference(first.record, part.record):
            raise CannotMerge(f"{first.folder} and {part.folder} are no parts of one run: {_told_apart(*found)}")
    _check_shards(parts)


def _told_apart(what: str, was: object, now: object) -> str:
    """In what two runs differ; what is a whole entry of many words is named alone."""
    if was is None or now is None:
        return f"{what} is in the {'second' if was is None else 'first'} alone"
    return f"{what} is {was!r} in the one, {now!r} in the other"


def _difference(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, object, object] | None:
    """The first entry in which two records differ that parts of one run have in common."""
    pairs: list[tuple[str, object, object]] = [(name, was.get(name), now.get(name)) for name in _COMMON]
    pairs += [
        ("selection", _unsharded(was), _unsharded(now)),
        ("waivers", _by_name(was["waivers"], "id"), _by_name(now["waivers"], "id")),
        ("plugins", _by_name(was.get("plugins", ()), *_PLUGIN), _by_name(now.get("plugins", ()), *_PLUGIN)),
        ("waivers expired on the day of the run", _expired(was), _expired(now)),
    ]
    return next(filter(None, (first_difference(*pair) for pair in pairs)), None)


def _unsharded(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.get("selection", {}).items() if name != "shard"}


def _by_name(records: Iterable[Mapping[str, Any]], *names: str) -> dict[str, Mapping[str, Any]]:
    return {" ".join(str(record[name]) for name in names): record for record in records}


def _expired(record: Mapping[str, Any]) -> list[str]:
    """A run that goes over midnight has two days, which differ only where a waiver ends with the first."""
    today = date.fromisoformat(record["waivers_judged_on"])
    return sorted(each["id"] for each in record["waivers"] if date.fromisoformat(str(each["expires"])) < today)


def _check_shards(parts: Sequence[Part]) -> None:
    kinds = {part.place[1]: part for part in parts}
    if len(kinds) > 1:
        one, other = list(kinds.values())[:2]
        raise CannotMerge(f"{one.folder} is shard {one.shard}, and {other.folder} is shard {other.shard}: they overlap")
    (of,) = kinds
    missing = sorted(set(range(1, of + 1)) - {part.place[0] for part in parts})
    if missing:
        named = ", ".join(f"{number}/{of}" for number in missing)
        raise CannotMerge(f"missing: shard {named}: name {'its folder' if len(missing) == 1 else 'their folders'}, too")


def _joined(parts: Sequence[Part]) -> pa.Table:
    """The rows of all, each case once, with the number of the part that it is from in the column ``part``."""
    tables = [read_rows(part.folder) for part in parts]
    numbers = np.repeat(np.arange(len(parts)), [table.num_rows for table in tables])
    rows = pa.concat_tables(tables).append_column("part", pa.array(numbers))
    keys = rows.select([*_KEY, "verdict"]).to_pandas().fillna("")
    keys["verdict"] = keys["verdict"].where(keys["block"] == "", "")
    case = keys.groupby(list(keys.columns), sort=False).ngroup().to_numpy()
    told = pd.DataFrame({"case": case, "part": numbers, "gives_way": _gives_way(rows)})
    best = told.sort_values(["gives_way", "part"]).drop_duplicates("case").set_index("case")["part"]
    kept = best.loc[case].to_numpy() == numbers
    _check_outcomes(parts, rows, case, kept)
    return rows.filter(pa.array(kept))


def _gives_way(rows: pa.Table) -> np.ndarray[Any, Any]:
    way: np.ndarray[Any, Any] = pc.is_in(rows["verdict"], pa.array([str(verdict) for verdict in _GIVES_WAY])).to_numpy()
    return way


def _check_outcomes(
    parts: Sequence[Part], rows: pa.Table, case: np.ndarray[Any, Any], kept: np.ndarray[Any, Any]
) -> None:
    """`CannotMerge` where a row that is left out came to something else than the one that is kept."""
    left = np.flatnonzero(~kept & ~_gives_way(rows))
    if not len(left):
        return
    place = dict(zip(case[kept].tolist(), np.flatnonzero(kept).tolist(), strict=True))
    others = rows.take(left).select(_OUTCOME).to_pylist()
    firsts = rows.take([place[number] for number in case[left].tolist()]).select(_OUTCOME).to_pylist()
    for number, other, first in zip(left.tolist(), others, firsts, strict=True):
        if found := first_difference("", first, other):
            one, two = (parts[rows["part"][at].as_py()].folder for at in (place[int(case[number])], number))
            raise CannotMerge(
                f"{one} and {two} both judged case {rows['case_id'][number]} of {rows['block'][number]} and differ:"
                f"{_told_apart(*found)}; leave one of them out"
            )


def _copy_evidence(parts: Sequence[Part], rows: pa.Table, output: Path) -> None:
    """What the kept rows have left behind."""
    copied = False
    names = ("case_id", "backend", "part")
    for case_id, backend, number in zip(*(rows[name].to_pylist() for name in names), strict=True):
        for path in (evidence_path, shrunk_path):
            source = path(parts[number].folder, case_id or "", backend)
            if source.is_file():
                target = path(output, case_id, backend)
                with writing(target):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, target)
                copied = True
    if copied:
        write_programs(output)


def _record(parts: Sequence[Part], rows: pa.Table, mandatory: Mandatory) -> dict[str, Any]:
    """run.json of the whole, which names its parts."""
    records = [part.record for part in parts]
    first = dict(records[0])
    budget = _budget(parts)
    for name in ("budget", "selection"):
        first.pop(name, None)
    record = {
        **first,
        **({"budget": budget} if budget else {}),
        "id": hashlib.sha256(" ".join(sorted(record["id"] for record in records)).encode()).hexdigest()[:32],
        "arguments": _without_shard(first["arguments"]),
        "selection": _unsharded(records[0]),
        "started": min(record["started"] for record in records),
        "finished": _finished(parts),
        "host": _hosts(records),
        "waivers_judged_on": max(record["waivers_judged_on"] for record in records),
        "memory_budget": min(record.get("memory_budget", 0) for record in records),
        "merged": [_told(part, rows, number) for number, part in enumerate(parts)],
    }
    owed = mandatory(record)
    return {**record, "mandatory": owed, "planned_cases": sum(group["planned"] for group in owed)}


def _told(part: Part, rows: pa.Table, number: int) -> dict[str, Any]:
    """What the record of the whole says of a part."""
    kept = pc.sum(pc.equal(rows["part"], number)).as_py() or 0
    names = ("id", "started", "finished", "host")
    return {"shard": part.shard, "rows": kept, **{name: part.record[name] for name in names}}


def _finished(parts: Sequence[Part]) -> float | None:
    """When the last part ended; None where of a shard no session came to its end."""
    ended = {part.place[0] for part in parts if part.record["finished"]}
    if {part.place[0] for part in parts} - ended:
        return None
    return float(max(part.record["finished"] for part in parts if part.record["finished"]))


def _hosts(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What all hosts have in common, and the rest as a list."""
    names = dict.fromkeys(name for record in records for name in record["host"])
    told = {name: dict.fromkeys(record["host"].get(name, "unknown") for record in records) for name in names}
    return {name: "; ".join(values) for name, values in told.items()}


def _without_shard(arguments: Sequence[str]) -> list[str]:
    kept, skips = [], False
    for argument in arguments:
        if skips or argument == "--shard":
            skips = not skips
        elif not argument.startswith("--shard="):
            kept.append(argument)
    return kept


def _budget(parts: Sequence[Part]) -> dict[str, Any]:
    """What the budgets of the parts were in all, and what of each block they were enough for; empty without any."""
    budgets = [part.record["budget"] for part in parts if "budget" in part.record]
    if not budgets:
        return {}
    by_shard: dict[int, list[Mapping[str, list[int]]]] = {}
    for part in parts:
        by_shard.setdefault(part.place[0], []).append(part.record.get("budget", {}).get("asked", {}))
    asked = {}
    for several in by_shard.values():
        for name in set.intersection(*(set(each) for each in several)):
            asked[name] = max(each[name] for each in several)
    total: dict[str, Any] = {name: sum(budget[name] for budget in budgets) for name in ("seconds", "took")}
    total |= {"until": max(budget["until"] for budget in budgets), "asked": dict(sorted(asked.items()))}
    if beyond := _beyond(budgets):
        total["beyond"] = beyond
    return total


def _beyond(budgets: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many cases were asked beyond each block; sessions of one shard asked the same, as far as they came."""
    beyond: dict[str, int] = {}
    for budget in budgets:
        for name, cases in budget.get("beyond", {}).items():
            beyond[name] = max(cases, beyond.get(name, 0))
    return dict(sorted(beyond.items()))
