"""Merging of runs of one plan: shards, and what was interrupted or judged again.

The inputs are checked first: another plan, seed, suite, backend, product or waiver makes another run. Where two runs
judged one case, the first counts, and both must have come to the same outcome.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import defaultdict
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

from poolproof.reports.rows.evidence import evidence_path, shrunk_path, write_programs
from poolproof.reports.rows.io_errors import replacing, writing
from poolproof.reports.rows.records import first_difference
from poolproof.reports.rows.schema import GROUP
from poolproof.reports.rows.store import finished_blocks, locked, read_rows, read_run, write_run
from poolproof.reports.rows.verdicts import RAISED, BadInput, Verdict

Mandatory = Callable[[Mapping[str, Any]], list[dict[str, Any]]]
"""The groups that a run has to judge, from its record."""

_COMMON = ("plan", "seed", "suite", "backends", "strict_waivers", "probes")
"""Entries of run.json that all parts of one run share."""

_PLUGIN = ("kind", "name")

_KEY = ("block", "case_id", *GROUP)
"""Columns that identify a row of a run; those of no block, which a planned one triggered, by their verdict, too."""

_OUTCOME = ("verdict", "checks_judged", "checks_violated", "waivers", "status_code")
"""Columns in which two rows of one case agree: bits and times may differ where an implementation is free in them."""

_SUPERSEDED = frozenset({Verdict.NOT_RUN, *RAISED})
"""Verdicts from which nothing was learned: a row of the same case that was judged takes their place."""


class CannotMerge(BadInput):
    """The runs are no parts of one; the text names the first thing that speaks against it."""


@dataclass(frozen=True)
class MergeInput:
    """A run to merge: its folder, its record, and its place among the shards, ("1", "1") for a whole plan."""

    folder: Path
    record: Mapping[str, Any]

    @property
    def shard(self) -> str:
        return str(self.record.get("selection", {}).get("shard", "1/1"))

    @property
    def place(self) -> tuple[int, int]:
        number, _, count = self.shard.partition("/")
        return int(number), int(count)


def merge(folders: Sequence[Path], output: Path, mandatory: Mandatory) -> None:
    """Write the whole of the runs in ``folders`` into a new folder.

    `CannotMerge` where they are not parts of one run, where a shard is missing, or where two judged a case and differ;
    `InUse` where a session still writes to one.
    """
    sources = [MergeInput(folder, read_run(folder)) for folder in folders]
    # of a shard that was judged several times, what was finished comes first
    sources.sort(key=lambda source: (source.place, not source.record["finished"], source.record["started"]))
    _check(sources)
    with ExitStack() as locks:
        for folder in {source.folder.resolve() for source in sources}:
            locks.enter_context(locked(folder))
        rows = _join_rows(sources)
        with writing(output):
            output.mkdir(parents=True, exist_ok=True)
            if any(output.iterdir()):
                raise CannotMerge(f"{output} is not empty: name another folder")
            (output / "rows").mkdir()
        locks.enter_context(locked(output))
        _write(sources, rows, output)
        write_run(output, _merged_record(sources, rows, mandatory))


def _write(sources: Sequence[MergeInput], rows: pa.Table, output: Path) -> None:
    with replacing(output / "rows" / "merged-0000.parquet") as aside:
        pq.write_table(rows.drop_columns(["part"]), aside, compression="zstd")
    done = sorted(frozenset().union(*(finished_blocks(source.folder) for source in sources)))
    with replacing(output / "rows" / "merged.done") as aside:
        aside.write_text("".join(f"{block}\n" for block in done), encoding="utf-8")
    _copy_evidence(sources, rows, output)


def _check(sources: Sequence[MergeInput]) -> None:
    for source in sources:
        if "selection" not in source.record:
            raise CannotMerge(f"{source.folder} does not say what was asked of it")
        if "narrowed" in source.record:
            raise CannotMerge(f"{source.folder} judged only the tests that -k or ids chose: it can join no other")
    first = sources[0]
    for source in sources[1:]:
        if found := _difference(first.record, source.record):
            difference = _describe_difference(*found)
            raise CannotMerge(f"{first.folder} and {source.folder} are no parts of one run: {difference}")
    _check_shards(sources)


def _describe_difference(what: str, was: object, now: object) -> str:
    """Say in what two runs differ; name an entry alone that only one of them has."""
    if was is None or now is None:
        return f"{what} is in the {'second' if was is None else 'first'} alone"
    return f"{what} is {was!r} in the one, {now!r} in the other"


def _difference(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, object, object] | None:
    """Return the first difference in what parts of one run have in common."""
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
    """List the waivers that had expired: a run over midnight has two days, of which only this matters."""
    today = date.fromisoformat(record["waivers_judged_on"])
    return sorted(waiver["id"] for waiver in record["waivers"] if date.fromisoformat(str(waiver["expires"])) < today)


def _check_shards(sources: Sequence[MergeInput]) -> None:
    kinds = {source.place[1]: source for source in sources}
    if len(kinds) > 1:
        one, other = list(kinds.values())[:2]
        raise CannotMerge(f"{one.folder} is shard {one.shard}, and {other.folder} is shard {other.shard}: they overlap")
    (count,) = kinds
    missing = sorted(set(range(1, count + 1)) - {source.place[0] for source in sources})
    if missing:
        named = ", ".join(f"{number}/{count}" for number in missing)
        raise CannotMerge(f"missing: shard {named}: name {'its folder' if len(missing) == 1 else 'their folders'}, too")


def _join_rows(sources: Sequence[MergeInput]) -> pa.Table:
    """Concatenate all rows, each case once, with the number of the input that it is from in the column ``part``."""
    tables = [read_rows(source.folder) for source in sources]
    numbers = np.repeat(np.arange(len(sources)), [table.num_rows for table in tables])
    rows = pa.concat_tables(tables).append_column("part", pa.array(numbers))
    keys = rows.select([*_KEY, "verdict"]).to_pandas().fillna("")
    keys["verdict"] = keys["verdict"].where(keys["block"] == "", "")
    case = keys.groupby(list(keys.columns), sort=False).ngroup().to_numpy()
    outcomes = pd.DataFrame({"case": case, "part": numbers, "superseded": _is_superseded(rows)})
    best = outcomes.sort_values(["superseded", "part"]).drop_duplicates("case").set_index("case")["part"]
    kept = best.loc[case].to_numpy() == numbers
    _check_outcomes(sources, rows, case, kept)
    return rows.filter(pa.array(kept))


def _is_superseded(rows: pa.Table) -> np.ndarray[Any, Any]:
    verdicts = pa.array([str(verdict) for verdict in _SUPERSEDED])
    superseded: np.ndarray[Any, Any] = pc.is_in(rows["verdict"], verdicts).to_numpy()
    return superseded


def _check_outcomes(
    sources: Sequence[MergeInput], rows: pa.Table, case: np.ndarray[Any, Any], kept: np.ndarray[Any, Any]
) -> None:
    """Raise `CannotMerge` where a row that is left out has another outcome than the one that is kept."""
    left = np.flatnonzero(~kept & ~_is_superseded(rows))
    if not len(left):
        return
    place = dict(zip(case[kept].tolist(), np.flatnonzero(kept).tolist(), strict=True))
    others = rows.take(left).select(_OUTCOME).to_pylist()
    firsts = rows.take([place[number] for number in case[left].tolist()]).select(_OUTCOME).to_pylist()
    for number, other, first in zip(left.tolist(), others, firsts, strict=True):
        if found := first_difference("", first, other):
            one, two = (sources[rows["part"][at].as_py()].folder for at in (place[int(case[number])], number))
            raise CannotMerge(
                f"{one} and {two} both judged case {rows['case_id'][number]} of {rows['block'][number]} and differ:"
                f"{_describe_difference(*found)}; leave one of them out"
            )


def _copy_evidence(sources: Sequence[MergeInput], rows: pa.Table, output: Path) -> None:
    copied = False
    names = ("case_id", "backend", "part")
    for case_id, backend, number in zip(*(rows[name].to_pylist() for name in names), strict=True):
        for path in (evidence_path, shrunk_path):
            source = path(sources[number].folder, case_id or "", backend)
            if source.is_file():
                target = path(output, case_id, backend)
                with writing(target):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, target)
                copied = True
    if copied:
        write_programs(output)


def _merged_record(sources: Sequence[MergeInput], rows: pa.Table, mandatory: Mandatory) -> dict[str, Any]:
    """Return run.json of the whole, which names its parts."""
    records = [source.record for source in sources]
    first = dict(records[0])
    budget = _budget(sources)
    for name in ("budget", "selection"):
        first.pop(name, None)
    names = dict.fromkeys(name for record in records for name in record["host"])
    hosts = {name: dict.fromkeys(record["host"].get(name, "unknown") for record in records) for name in names}
    ended = {source.place[0] for source in sources if source.record["finished"]}
    all_ended = ended == {source.place[0] for source in sources}  # of each shard some session came to its end
    record = {
        **first,
        **({"budget": budget} if budget else {}),
        "id": hashlib.sha256(" ".join(sorted(record["id"] for record in records)).encode()).hexdigest()[:32],
        "arguments": _without_shard(first["arguments"]),
        "selection": _unsharded(records[0]),
        "started": min(record["started"] for record in records),
        "finished": max(record["finished"] or 0.0 for record in records) if all_ended else None,
        "host": {name: "; ".join(values) for name, values in hosts.items()},
        "waivers_judged_on": max(record["waivers_judged_on"] for record in records),
        "memory_budget": min(record.get("memory_budget", 0) for record in records),
        "merged": [
            {"shard": source.shard, "rows": pc.sum(pc.equal(rows["part"], number)).as_py() or 0}
            | {name: source.record[name] for name in ("id", "started", "finished", "host")}
            for number, source in enumerate(sources)
        ],
    }
    groups = mandatory(record)
    return {**record, "mandatory": groups, "planned_cases": sum(group["planned"] for group in groups)}


def _without_shard(arguments: Sequence[str]) -> list[str]:
    kept, skips = [], False
    for argument in arguments:
        if skips or argument == "--shard":
            skips = not skips
        elif not argument.startswith("--shard="):
            kept.append(argument)
    return kept


def _budget(sources: Sequence[MergeInput]) -> dict[str, Any]:
    """Add up the budgets of the parts, and what of each block they were enough for; empty without any."""
    budgets = [source.record["budget"] for source in sources if "budget" in source.record]
    if not budgets:
        return {}
    by_shard = defaultdict[int, list[Mapping[str, list[int]]]](list)
    for source in sources:
        by_shard[source.place[0]].append(source.record.get("budget", {}).get("asked", {}))
    asked = {}
    for allotments in by_shard.values():
        for name in set.intersection(*map(set, allotments)):
            asked[name] = max(allotment[name] for allotment in allotments)
    total: dict[str, Any] = {name: sum(budget[name] for budget in budgets) for name in ("seconds", "took")}
    total |= {"until": max(budget["until"] for budget in budgets), "asked": dict(sorted(asked.items()))}
    beyond: dict[str, int] = {}  # sessions of one shard ran the same cases, as far as they came
    for budget in budgets:
        for name, cases in budget.get("beyond", {}).items():
            beyond[name] = max(cases, beyond.get(name, 0))
    return total | ({"beyond": dict(sorted(beyond.items()))} if beyond else {})
