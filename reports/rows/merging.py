"""Merging of runs of one plan: shards, and runs that were interrupted or repeated.

The inputs are checked first: another plan, seed, version, backend, product or waiver makes another run. If two runs
judged one case, the first counts, and both outcomes must be equal.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
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
from poolproof.reports.rows.schema import GROUP, Row
from poolproof.reports.rows.store import finished_blocks, locked, read_rows, read_run, write_run
from poolproof.reports.rows.verdicts import RAISED, BadInput, Verdict

Mandatory = Callable[[Mapping[str, Any]], list[dict[str, Any]]]
"""Returns the groups that a run must judge, from its record."""

_KEY = ("block", "case_id", *GROUP)
"""Columns that identify a row of a run; for rows of no block, which a planned one caused, also the verdict."""

_OUTCOME = ("verdict", "checks_judged", "checks_violated", "waivers", "status_code")
"""Columns in which two rows of one case must agree: bits and times may differ if an implementation is free."""

_SUPERSEDED = frozenset({Verdict.NOT_RUN, *RAISED})
"""Verdicts without a result: a judged row of the same case replaces them."""


class CannotMerge(BadInput):
    """The runs are not parts of one; the text names the first contradiction."""


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

    `CannotMerge` is raised if they are not parts of one run, if a shard is missing, or if two judged a case
    differently. `InUse` is raised if a session still writes to one.
    """
    sources = [MergeInput(folder, read_run(folder)) for folder in folders]
    # of a shard that was judged several times, finished runs come first
    sources.sort(key=lambda source: (source.place, not source.record["finished"], source.record["started"]))
    _check_records(sources)
    _check_shards(sources)
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
        with replacing(output / "rows" / "merged-0000.parquet") as aside:
            pq.write_table(rows.drop_columns(["part"]), aside, compression="zstd")
        done = sorted(frozenset().union(*(finished_blocks(source.folder) for source in sources)))
        with replacing(output / "rows" / "merged.done") as aside:
            aside.write_text("".join(f"{block}\n" for block in done), encoding="utf-8")
        _copy_evidence(sources, rows, output)
        write_run(output, _merged_record(sources, rows, mandatory))


def _check_records(sources: Sequence[MergeInput]) -> None:
    """Raise `CannotMerge` about the first entry of a record that differs from the first run's."""
    for source in sources:
        if "selection" not in source.record:
            raise CannotMerge(f"{source.folder} has no record of its selection")
        if "narrowed" in source.record:
            raise CannotMerge(f"{source.folder} judged only the tests that -k or ids chose: it can join no other")
    first, common = sources[0], _common_entries(sources[0].record)
    for source in sources[1:]:
        for name, value in _common_entries(source.record).items():
            if difference := _difference(name, common[name], value):
                raise CannotMerge(f"{first.folder} and {source.folder} are no parts of one run: {difference}")


def _difference(name: str, was: object, now: object) -> str:
    """Return the difference of two runs, or the entry that only one of them has; empty if they are equal."""
    difference = first_difference(name, was, now)
    if difference is None:
        return ""
    what, was, now = difference
    if was is None or now is None:
        return f"{what} is only in the {'second' if was is None else 'first'}"
    return f"{what} is {was!r} in the one, {now!r} in the other"


def _common_entries(record: Mapping[str, Any]) -> dict[str, object]:
    """Return the entries that all parts of one run share.

    A run over midnight has two days; only the waivers that had expired matter.
    """
    today, waivers = date.fromisoformat(record["waivers_judged_on"]), record["waivers"]
    return {
        **{name: record.get(name) for name in ("plan", "seed", "suite", "backends", "strict_waivers", "probes")},
        "selection": _unsharded(record),
        "waivers": {waiver["id"]: waiver for waiver in waivers},
        "waivers expired on the day of the run": sorted(
            waiver["id"] for waiver in waivers if date.fromisoformat(str(waiver["expires"])) < today
        ),
    }


def _unsharded(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.get("selection", {}).items() if name != "shard"}


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
    """Return all rows, each case once, with the number of their input in the column ``part``."""
    tables = [read_rows(source.folder) for source in sources]
    numbers = np.repeat(np.arange(len(sources)), [table.num_rows for table in tables])
    rows = pa.concat_tables(tables).append_column("part", pa.array(numbers))
    keys = rows.select([*_KEY, "verdict"]).to_pandas().fillna("")
    superseded = np.isin(keys["verdict"], list(_SUPERSEDED))
    keys["verdict"] = keys["verdict"].where(keys["block"] == "", "")
    case = keys.groupby(list(keys.columns), sort=False).ngroup().to_numpy()
    outcomes = pd.DataFrame({"case": case, "part": numbers, "superseded": superseded})
    best = outcomes.sort_values(["superseded", "part"]).drop_duplicates("case").set_index("case")["part"]
    kept = best.loc[case].to_numpy() == numbers
    left_out = ~kept & ~superseded
    repeated = rows.append_column("number", pa.array(case)).select(["number", "part", "case_id", "block", *_OUTCOME])
    firsts = repeated.filter(pa.array(kept & np.isin(case, case[left_out])))
    _check_outcomes(sources, firsts.to_pylist(), repeated.filter(pa.array(left_out)).to_pylist())
    return rows.filter(pa.array(kept))


def _check_outcomes(sources: Sequence[MergeInput], firsts: list[Row], left_out: list[Row]) -> None:
    """Raise `CannotMerge` if a dropped row has another outcome than the first of its number."""
    first_of = {row["number"]: row for row in firsts}
    for dropped in left_out:
        first = first_of[dropped["number"]]
        outcomes = ({name: row[name] for name in _OUTCOME} for row in (first, dropped))
        if difference := _difference("", *outcomes):
            one, two = (sources[row["part"]].folder for row in (first, dropped))
            raise CannotMerge(
                f"{one} and {two} both judged case {dropped['case_id']} of {dropped['block']} and differ:"
                f"{difference}; leave one of them out"
            )


def _copy_evidence(sources: Sequence[MergeInput], rows: pa.Table, output: Path) -> None:
    names = ("case_id", "backend", "part")
    for case_id, backend, number in zip(*(rows[name].to_pylist() for name in names), strict=True):
        for path in (evidence_path, shrunk_path):
            source = path(sources[number].folder, case_id or "", backend)
            if source.is_file():
                target = path(output, case_id, backend)
                with writing(target):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, target)
    if (output / "evidence").exists():
        write_programs(output)


def _merged_record(sources: Sequence[MergeInput], rows: pa.Table, mandatory: Mandatory) -> dict[str, Any]:
    """Return run.json of the whole, which names its parts."""
    records = [source.record for source in sources]
    first = {name: value for name, value in records[0].items() if name not in ("budget", "selection")}
    budget = _budget(sources)
    names = dict.fromkeys(name for record in records for name in record["host"])
    hosts = {name: dict.fromkeys(record["host"].get(name, "unknown") for record in records) for name in names}
    ended = {source.place[0] for source in sources if source.record["finished"]}
    all_ended = ended == {source.place[0] for source in sources}  # some session of each shard came to its end
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
    return {**record, "mandatory": mandatory(record)}


def _without_shard(arguments: Sequence[str]) -> list[str]:
    kept, skips = [], False
    for argument in arguments:
        if skips or argument == "--shard":
            skips = not skips
        elif not argument.startswith("--shard="):
            kept.append(argument)
    return kept


def _budget(sources: Sequence[MergeInput]) -> dict[str, Any]:
    """Return the sum of the budgets of the parts; empty without any."""
    budgets = [source.record["budget"] for source in sources if "budget" in source.record]
    if not budgets:
        return {}
    ends = [budget["until"] for budget in budgets if budget["until"]]
    total: dict[str, Any] = {name: sum(budget[name] for budget in budgets) for name in ("seconds", "took")}
    return total | {"until": max(ends, default=None)}
