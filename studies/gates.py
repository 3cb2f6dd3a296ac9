"""Gates of a refactoring: results that must stay the same, frozen in one state and compared with the next.

    python studies/gates.py freeze FOLDER [--only PART]...
    python studies/gates.py compare OLD NEW [--ignore COLUMN]...

``freeze`` uses the poolproof of the Python that runs it: to freeze another checkout, run this file by that checkout's
interpreter. ``compare`` prints for each part that it is equal, or its differences, and exits with 1 if there are any.
Without ``--only`` all parts except the score are frozen, which take minutes.

| part | frozen |
|---|---|
| ids | ids of the cases of each plan, backend and seed, block by block, and the mandatory groups |
| rows | the rows of one smoke run for each backend, without times |
| score | each seeded defect with the cases until it is found: lost, or later by more than a tenth, differs |
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import pandas as pd

EMULATORS = ("emulator-a2", "emulator-a3", "emulator-950", "emulator-910", "emulator-310p", "emulator-310b")
IDS = (
    *product(["smoke"], ["torch-cpu", "emulator-a2", "emulator-950"], [0, 7]),
    *product(["smoke"], ["emulator-a3", "emulator-910", "emulator-310p", "emulator-310b"], [0]),
    *product(["acceptance"], ["torch-cpu", *EMULATORS], [0]),
    *product(["acceptance"], ["torch-cpu", "emulator-a2"], [7]),
    ("soak", "torch-cpu", 0),
)
ONE_IN = {"smoke": 1, "acceptance": 50, "soak": 500}
"""One block of this many is drawn: its cases follow from seed and name only. All groups are counted."""

RUNS = {"torch-cpu": (), "emulator-a2": ("--cases", "3"), "emulator-950": ("--cases", "3")}
VARIES = ("seconds", "call_seconds", "worker", "judged_at")
"""Columns of a row that differ between any two runs."""

KEY = ["backend", "operator", "dtype", "index_dtype", "block", "case_id", "nth"]
RACING = "atomic 1"
"""Part of the route of a call that adds in the order of its threads; only without deterministic mode."""

RACED = r"n_bitexact|n_inexact|(max|mean|ulp|k|repeat)_.*|mere|mare|bias_ulp|margin_min|outputdigest_of"
"""Columns in which two runs of such a call may differ."""

SHOWN = 5
LATER = 1.1


def run(*words: object, status: Iterable[int] = (0,)) -> None:
    """Run this Python with ``words``."""
    ended = subprocess.run([sys.executable, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if ended.returncode not in status:
        printed = ended.stdout.decode(errors="replace")[-3000:]
        raise click.ClickException(f"{' '.join(map(str, words))} ended with {ended.returncode}:\n{printed}")


def session(folder: str, *options: str, status: Iterable[int] = (0, 1)) -> None:
    options_of_all = ("--pyargs", "poolproof.suites", "-q", "-p", "no:cacheprovider", "--ci", "none", "--diagnose", "0")
    run("-m", "pytest", *options_of_all, "--report", folder, *options, status=status)


def write_json(folder: Path, value: object) -> None:
    (folder / f"{folder.name}.json").write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_json(folder: Path) -> dict[str, Any]:
    return json.loads((folder / f"{folder.name}.json").read_text(encoding="utf-8"))


def digest_of(*lines: str) -> str:
    return sha256("\n".join(lines).encode()).hexdigest()[:32]


class OneIn(int):
    """The drawn blocks, as a container of (backend, block)."""

    def __contains__(self, pair: tuple[str, str]) -> bool:
        return int(digest_of(pair[1]), 16) % self == 0


def drawn(record: Mapping[str, Any], wanted: OneIn) -> Iterator[tuple[str, list[str]]]:
    """Draw the (block, ids of its cases) of a run again."""
    from poolproof.suites.plan.selection import Selection

    for block in Selection.of_run(record).blocks():
        if (block.backend, block.row_block) in wanted:
            yield block.row_block, [question.id for question in block.questions()]


def summary_of(blocks: Iterable[tuple[str, list[str]]], groups: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return hashes of the ids of each block and of all, and of the mandatory groups."""
    cases = dict(blocks)
    every = [f"{block} {case}" for block, ids in cases.items() for case in ids]
    parts = {"all": every} | {f"block {block}": ids for block, ids in cases.items()}
    for group in groups:
        square = (group.get(name) or "-" for name in ("operator", "dtype", "index_dtype", "aspect"))
        parts.setdefault(f"groups of {' '.join(square)}", []).append(json.dumps(group, sort_keys=True))
    return {
        name: f"{len(lines)} {digest_of(*(sorted(lines) if name.startswith('groups') else lines))}"
        for name, lines in parts.items()
    }


def freeze_ids(folder: Path) -> None:
    frozen: dict[str, str] = {}
    for plan, backend, seed in IDS:
        name = f"{plan} {backend} seed {seed}"
        click.echo(f"  {name}", err=True)
        with TemporaryDirectory() as scratch:
            options = ("--plan", plan, "--backend", backend, "--seed", str(seed), "--collect-only")
            session(scratch, *options, status=(0, 2))
            record = json.loads(Path(scratch, "run.json").read_text(encoding="utf-8"))
        summary = summary_of(drawn(record, OneIn(ONE_IN[plan])), record["mandatory"])
        frozen |= {f"{name}: {part}": hashed for part, hashed in summary.items()}
    write_json(folder, frozen)


def freeze_rows(folder: Path) -> None:
    from poolproof import reports

    for backend, options in RUNS.items():
        click.echo(f"  {backend}", err=True)
        with TemporaryDirectory() as scratch:
            session(scratch, "--backend", backend, "-n", "2", *options)
            write_rows(reports.load(Path(scratch)).rows, folder / f"{backend}.parquet")


def write_rows(rows: pd.DataFrame, path: Path) -> None:
    """Write every cell as JSON, except varying columns, with a hash of each row; ``nth`` counts rows of a case."""
    text = pd.DataFrame({name: [_text(cell) for cell in rows[name]] for name in rows if name not in VARIES})
    lines = text.agg("\n".join, axis=1)
    text = text.assign(sha256=lines.map(digest_of)).sort_values([*KEY[:-1], "sha256"], ignore_index=True)
    text.assign(nth=text.groupby(KEY[:-1]).cumcount()).to_parquet(path, index=False, compression="zstd")


def _text(cell: Any) -> str:
    if not pd.api.types.is_scalar(cell):
        return json.dumps([_text(each) for each in cell])
    return "null" if pd.isna(cell) else json.dumps(cell.item() if hasattr(cell, "item") else cell, default=str)


def freeze_score(folder: Path) -> None:
    found: dict[str, Any] = {}
    for plan in ("smoke", "acceptance"):
        with TemporaryDirectory() as scratch:
            program = ("-c", "from poolproof.suites.cli import main; main()", "score")
            run(*program, "--plan", plan, "-n", "1", "--report", scratch, status=(0, 1))
            for row in pd.read_parquet(Path(scratch) / "score.parquet").to_dict("records"):
                found[f"{plan} {row['defect']}"] = {name: row[name] for name in ("found", "cases", "disputed")}
        write_json(folder, found)


def compare_ids(old: Path, new: Path, _ignored: Iterable[str]) -> Iterator[str]:
    """Yield entries that only one of two freezes has, or that differ."""
    before, after = read_json(old), read_json(new)
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield f"{name}: {before.get(name, 'nothing')} -> {after.get(name, 'nothing')}"


def changed_rows(before: pd.DataFrame, after: pd.DataFrame, ignored: Iterable[str]) -> Iterator[str]:
    """Yield columns and rows that only one frame has, and for each column the rows in which it differs."""
    for change, one, other in (("gone", before, after), ("new", after, before)):
        yield from (f"column {name} {change}" for name in one.columns.difference(other.columns))
    left, right = before.set_index(KEY), after.set_index(KEY)
    for change, index in (("gone", left.index.difference(right.index)), ("new", right.index.difference(left.index))):
        if len(index):
            yield f"{len(index)} rows {change}, first {', '.join(map(str, index[:SHOWN]))}"
    both = left.index.intersection(right.index)
    left, right = left.loc[both], right.loc[both]
    columns = [name for name in left if name in right and name != "sha256" and name not in set(ignored)]
    differ = left[columns] != right[columns]
    raced = left["route"].str.contains(RACING) & (left["deterministic"] == "false")
    differ.loc[raced, differ.columns.str.fullmatch(RACED)] = False
    for name in differ.columns[differ.any()]:
        some = both[differ[name]][:SHOWN]
        cells = [f"{' '.join(key[:-1])}: {left.at[key, name]:.300} -> {right.at[key, name]:.300}" for key in some]
        yield "\n    ".join([f"{differ[name].sum()} of {len(both)} rows in {name}", *cells])


def compare_rows(old: Path, new: Path, ignored: Iterable[str]) -> Iterator[str]:
    for path in sorted(old.glob("*.parquet")):
        frames = pd.read_parquet(path), pd.read_parquet(new / path.name)
        yield from (f"{path.stem}: {line}" for line in changed_rows(*frames, ignored))


def compare_score(old: Path, new: Path, _ignored: Iterable[str]) -> Iterator[str]:
    """Yield each defect that is no longer found, or only after more than `LATER` times as many cases."""
    before, after = read_json(old), read_json(new)
    for name, was in before.items():
        now = after.get(name, {"found": False})
        if was["found"] and not (now["found"] and now["cases"] <= LATER * was["cases"]):
            yield f"{name}: {was['cases']} before, now {now['cases'] if now['found'] else 'none'}"


PARTS: dict[str, tuple[Callable[[Path], None], Callable[[Path, Path, Iterable[str]], Iterator[str]]]] = {
    "ids": (freeze_ids, compare_ids),
    "rows": (freeze_rows, compare_rows),
    "score": (freeze_score, compare_score),
}


@click.group(help=__doc__.partition("\n")[0])
def main() -> None:
    pass


@main.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--only", multiple=True, type=click.Choice(list(PARTS)), help="Only this part, repeatable.")
def freeze(folder: Path, only: tuple[str, ...]) -> None:
    for name in only or ("ids", "rows"):
        click.echo(name, err=True)
        (folder / name).mkdir(parents=True, exist_ok=True)
        PARTS[name][0]((folder / name).resolve())


@main.command()
@click.argument("old", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("new", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--ignore", "ignored", multiple=True, metavar="COLUMN", help="Column of the rows, repeatable.")
def compare(old: Path, new: Path, ignored: tuple[str, ...]) -> None:
    differs = False
    for name, (_, compared) in PARTS.items():
        missing = [str(folder) for folder in (old, new) if not any((folder / name).glob("*"))]
        if missing:
            print(f"{name}: not frozen in {' and '.join(missing)}")
            continue
        lines = list(compared(old / name, new / name, ignored))
        print(f"{name}: {f'{len(lines)} differences' if lines else 'equal'}")
        print(*(f"  {line}\n" for line in lines[: 4 * SHOWN]), *["  ...\n"] * (len(lines) > 4 * SHOWN), sep="", end="")
        differs |= bool(lines)
    sys.exit(int(differs))


if __name__ == "__main__":
    main()
