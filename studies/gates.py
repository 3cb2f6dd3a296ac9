"""Gates of a refactoring: what has to stay the same, frozen in one state and compared with the next.

    python studies/gates.py freeze FOLDER [--only PART]... [--all] [--recorded FILE]...
    python studies/gates.py compare OLD NEW [--ignore COLUMN]...

``freeze`` looks at the poolproof of the Python that runs it, so another checkout is frozen by this file and that
checkout's interpreter. ``compare`` prints for each part that it is equal, or what differs, and exits with 1 where
anything does. Without ``--only`` the parts of minutes are frozen; ``--all`` adds those that take longer.

| part | what is frozen |
|---|---|
| ids | ids of the cases of each plan, backend and seed, block by block, and the groups that have to be judged |
| rows | the rows of one smoke run for each backend, without times |
| help | `--help` of every command, and pytest's options |
| bundle | an archive of a run that fails, and what `verify` says of it; compare lets its own `verify` judge OLD's |
| statuses | how contract and emulator stand to the recorded statuses |
| speed | the figures of benchmarks/speed.py: worse by more than a quarter differs |
| score | each seeded defect with the cases until it is found: lost, or later by more than a tenth, differs |
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

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
"""Of so many blocks one is drawn: its cases follow from the seed and its name alone. Groups are all counted."""

RUNS = {"torch-cpu": (), "emulator-a2": ("--cases", "3"), "emulator-950": ("--cases", "3")}
VARIES = ("seconds", "call_seconds", "worker", "judged_at")
"""Columns of a row that no two runs agree in."""

KEY = ["backend", "operator", "dtype", "index_dtype", "block", "case_id", "nth"]
RACING = "atomic 1"
"""Stands in the route of a call whose additions are made in whatever order threads come; without determinism only."""

RACED = re.compile("n_bitexact|n_inexact|(max|mean|ulp|k|repeat)_.*|mere|mare|bias_ulp|margin_min|output_digest")
FAILING = ("--operator", "MaxPool3dWithArgmaxBackward", "--dtype", "float32", "--aspect", "values", "--cases", "12")
SHOWN = 5


def run(*words: object, status: Iterable[int] = (0,), **variables: str) -> tuple[int, str]:
    """Run this Python with ``words``; (exit status, what it printed)."""
    command, environment = [sys.executable, *map(str, words)], os.environ | {"COLUMNS": "100"} | variables
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode not in status:
        raise click.ClickException(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout[-3000:]}")
    return ended.returncode, ended.stdout


def poolproof(*words: object, status: Iterable[int] = (0,)) -> tuple[int, str]:
    return run(Path(sys.executable).with_name("poolproof"), *words, status=status)


def session(folder: Path, *options: str, status: Iterable[int] = (0, 1), **variables: str) -> tuple[int, str]:
    asked = ("--pyargs", "poolproof.suites", "-q", "-p", "no:cacheprovider", "--ci", "none", "--diagnose", "0")
    return run("-m", "pytest", *asked, "--report", folder, *options, status=status, **variables)


def checkout() -> Path:
    """Find the folder that the installed poolproof is a clone in."""
    spec = find_spec("poolproof.suites")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parents[1]


def write_json(folder: Path, value: object) -> None:
    (folder / f"{folder.name}.json").write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_json(folder: Path) -> dict[str, Any]:
    return json.loads((folder / f"{folder.name}.json").read_text(encoding="utf-8"))


# Freezing: one function for each part, given an empty folder.


class OneIn(int):
    """The blocks that are drawn, as a container of (backend, block)."""

    def __contains__(self, pair: tuple[str, str]) -> bool:
        return int(_digest(pair[1]), 16) % self == 0


def _digest(*lines: str) -> str:
    return sha256("\n".join(lines).encode()).hexdigest()


def drawn(record: Mapping[str, Any], wanted: OneIn) -> Iterator[tuple[str, list[str]]]:
    """Draw the (block, ids of its cases) of a run again. Internals of the suite are imported here and nowhere else."""
    from poolproof.suites.plan.selection import redraw_questions

    for _, block, questions in redraw_questions(record, wanted):
        yield block, [question.id for question in questions]


def ids_of(blocks: Iterable[tuple[str, list[str]]]) -> dict[str, Any]:
    """Summarise cases: the number of each block's and a hash of their ids, and the same of all."""
    cases = dict(blocks)
    every = [f"{block} {case}" for block, ids in cases.items() for case in ids]
    by_block = {block: f"{len(ids)} cases {_digest(*ids)[:16]}" for block, ids in cases.items()}
    return {"all": f"{len(every)} cases {_digest(*every)}", "blocks": by_block}


def groups_of(groups: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Summarise what has to be judged: for each operator, dtypes and aspect the groups, cases, and a hash."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for group in groups:
        square = (group.get(name) or "-" for name in ("operator", "dtype", "index_dtype", "aspect"))
        found.setdefault(" ".join(square), []).append(group)
    return {
        square: f"{len(of)} groups, {sum(group['planned'] for group in of)} cases {_lines_digest(of)}"
        for square, of in found.items()
    }


def _lines_digest(records: Iterable[Mapping[str, Any]]) -> str:
    return _digest(*sorted(json.dumps(record, sort_keys=True) for record in records))[:16]


def freeze_ids(folder: Path) -> None:
    frozen: dict[str, Any] = {}
    for plan, backend, seed in IDS:
        name = f"{plan} {backend} seed {seed}"
        click.echo(f"  {name}", err=True)
        with TemporaryDirectory() as scratch:
            options = ("--plan", plan, "--backend", backend, "--seed", str(seed), "--collect-only")
            session(Path(scratch), *options, status=(0, 2))
            record = json.loads((Path(scratch) / "run.json").read_text(encoding="utf-8"))
        frozen[name] = ids_of(drawn(record, OneIn(ONE_IN[plan]))) | {"groups": groups_of(record["mandatory"])}
        write_json(folder, frozen)


def freeze_rows(folder: Path) -> None:
    from poolproof import reports

    for backend, options in RUNS.items():
        click.echo(f"  {backend}", err=True)
        with TemporaryDirectory() as scratch:
            session(Path(scratch), "--backend", backend, "-n", "2", *options)
            write_rows(reports.load(Path(scratch)).rows, folder / f"{backend}.parquet")


def write_rows(rows: pd.DataFrame, path: Path) -> None:
    """Write every cell as JSON, but for what varies, with a hash of each row; ``nth`` counts rows of the same case."""
    text = pd.DataFrame({name: [_text(cell) for cell in rows[name]] for name in rows if name not in VARIES})
    lines = text.agg("\n".join, axis=1)
    text = text.assign(sha256=lines.map(_digest)).sort_values([*KEY[:-1], "sha256"], ignore_index=True)
    text.assign(nth=text.groupby(KEY[:-1]).cumcount()).to_parquet(path, index=False, compression="zstd")


def _text(cell: Any) -> str:
    if not pd.api.types.is_scalar(cell):
        return json.dumps([_text(each) for each in cell])
    return "null" if pd.isna(cell) else json.dumps(cell.item() if hasattr(cell, "item") else cell, default=str)


def freeze_help(folder: Path) -> None:
    options = run("-m", "pytest", "--pyargs", "poolproof.suites", "--help")[1]
    found = re.search(r"^poolproof:\n(.*?)(?=^\S)", options, re.MULTILINE | re.DOTALL)
    assert found is not None, "pytest shows no options of poolproof"
    write_json(folder, {"pytest": found[1], **dict(helps())})


def helps(*command: str) -> Iterator[tuple[str, str]]:
    """Print the help of a command and of its subcommands."""
    text = poolproof(*command, "--help")[1]
    yield " ".join(("poolproof", *command)), text
    listed = text.partition("\nCommands:\n")[2].partition("\n\n")[0]
    for name in re.findall(r"^  (\S+)", listed, re.MULTILINE):
        yield from helps(*command, name)


def freeze_bundle(folder: Path) -> None:
    with TemporaryDirectory() as scratch:
        given = ("--backend", "emulator-a2", *FAILING, "--no-shrink")
        session(Path(scratch), *given, status=(1,), POOLPROOF_EMULATOR_DEFECTS="wide_lanes_halved")
        poolproof("package", scratch, "-o", folder / "bundle.zip")
    with ZipFile(folder / "bundle.zip") as bundle:
        files = sorted(bundle.namelist())
    write_json(folder, {"files": files, "verify": verified(folder / "bundle.zip")})


def verified(bundle: Path) -> list[str]:
    """Return what this state's `verify` says of a bundle, without what names the state and the bundle."""
    lines = poolproof("verify", bundle, status=range(4))[1].splitlines()
    kept = [line for line in lines if not re.search("judged by poolproof|^fingerprint", line)]
    return [re.sub(r"^.*\(exit status [02]\): ", "", line) for line in kept]


def freeze_statuses(folder: Path, recorded: Sequence[Path] = ()) -> None:
    """Keep what the study prints, of each recorded file."""
    study, found = checkout() / "studies" / "observed_statuses.py", {}
    own = sorted((checkout() / "meta_tests").rglob("observed_statuses*.gz"))
    for path, options in product(recorded or own, ([], ["--emulator"])):
        status, output = run(study, path, *options, status=(0, 1))
        found[" ".join([path.name, *options])] = f"exit status {status}\n{output}"
    write_json(folder, found)


def freeze_speed(folder: Path) -> None:
    with TemporaryDirectory() as scratch:
        run(checkout() / "benchmarks" / "speed.py", "--json", Path(scratch) / "speed.json", status=(0, 1))
        shutil.copy(Path(scratch) / "speed.json", folder)


def freeze_score(folder: Path) -> None:
    found: dict[str, Any] = {}
    for plan in ("smoke", "acceptance"):
        click.echo(f"  {plan}", err=True)
        with TemporaryDirectory() as scratch:
            poolproof("score", "--plan", plan, "-n", "1", "--report", scratch, status=(0, 1))
            for row in pd.read_parquet(Path(scratch) / "score.parquet").to_dict("records"):
                found[f"{plan} {row['defect']}"] = {name: row[name] for name in ("found", "cases", "disputed")}
        write_json(folder, found)


# Comparing: one function for each part, given the two folders, gives a line for each difference.


class Note(str):
    """What is printed, and no difference."""

    __slots__ = ()


def compare_json(old: Path, new: Path) -> Iterator[str]:
    yield from changed(read_json(old), read_json(new))


def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Name what is in one of two nested dictionaries alone, and what is not the same in both."""
    for name in dict.fromkeys([*old, *new]):
        if name not in new or name not in old:
            yield f"{name}: {'gone' if name in old else 'new'}"
        elif isinstance(old[name], dict) and isinstance(new[name], dict):
            yield from (f"{name}: {line}" for line in changed(old[name], new[name]))
        elif old[name] != new[name]:
            texts = [each if isinstance(each, list) else str(each).splitlines() for each in (old[name], new[name])]
            lines = [line for line in difflib.ndiff(*texts) if line[0] in "-+"]
            yield "\n    ".join([f"{name}:", *lines[: 2 * SHOWN], *["..."] * (len(lines) > 2 * SHOWN)])


def compare_rows(old: Path, new: Path, ignored: Iterable[str] = ()) -> Iterator[str]:
    for path in sorted(old.glob("*.parquet")):
        if not (new / path.name).exists():
            yield f"{path.stem}: gone"
            continue
        before, after = pd.read_parquet(path), pd.read_parquet(new / path.name)
        for line in changed_rows(before, after, ignored):
            yield type(line)(f"{path.stem}: {line}")


def changed_rows(before: pd.DataFrame, after: pd.DataFrame, ignored: Iterable[str] = ()) -> Iterator[str]:
    """Name columns and rows of one frame alone, and for each column the rows that it differs in."""
    gone, added = ([c for c in one if c not in other] for one, other in ((before, after), (after, before)))
    yield from (f"column {name} gone" for name in gone)
    yield from (f"column {name} new" for name in added)
    left, right = before.set_index(KEY), after.set_index(KEY)
    for change, index in (("gone", left.index.difference(right.index)), ("new", right.index.difference(left.index))):
        if len(index):
            yield f"{len(index)} rows {change}, first {', '.join(map(str, index[:SHOWN]))}"
    both = left.index.intersection(right.index)
    left, right = left.loc[both], right.loc[both]
    columns = [name for name in left if name in right and name != "sha256" and name not in set(ignored)]
    differ = left[columns] != right[columns]
    raced = left["route"].str.contains(RACING) & (left["deterministic"] == "false") & differ.any(axis=1)
    raced &= ~differ[[name for name in columns if not RACED.fullmatch(name)]].any(axis=1)
    if raced.any():
        first = (" ".join(key[:-1]) for key in both[raced][:SHOWN])
        yield Note("\n    ".join([f"{raced.sum()} rows differ in statistics of racing additions alone", *first]))
    differ &= ~raced.to_numpy()[:, None]
    rows = differ.any(axis=1)
    if rows.any():
        yield f"{rows.sum()} of {len(both)} rows differ"
    for name in differ.columns[differ.any()]:
        some = both[differ[name]][:SHOWN]
        cells = [f"{' '.join(key[:-1])}: {left.at[key, name]:.300} -> {right.at[key, name]:.300}" for key in some]
        yield "\n    ".join([f"{differ[name].sum()} in {name}", *cells])


def compare_bundle(old: Path, new: Path) -> Iterator[str]:
    yield from compare_json(old, new)
    before, after = (
        [line for line in lines if line[:1] not in "✓!"]  # another suite's bundle passes fewer steps, and fails none
        for lines in (read_json(old)["verify"], verified(old / "bundle.zip"))
    )
    yield from changed({"OLD's bundle": before}, {"OLD's bundle": after})


def compare_costs(old: Path, new: Path, factor: float) -> Iterator[str]:
    """Name what costs more than ``factor`` times as much, or has no cost any more."""
    before, after = (costs(read_json(folder)) for folder in (old, new))
    for name, was in before.items():
        now = after.get(name)
        if was is not None and (now is None or now > factor * was):
            yield f"{name}: {was:,.4g} before, now {'none' if now is None else f'{now:,.4g}'}"


def costs(record: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the cases until a defect is found, None if it is not; or the figures of a benchmark, lower is better.

    A figure is the ratio to what stands beside it, or where there is nothing, what it is itself.
    """
    if "figures" not in record:
        return {name: found["cases"] if found["found"] else None for name, found in record.items()}
    found = {}
    for each in record["figures"]:
        value = each["ours"] if each["ratio"] is None else each["ratio"]
        more_is_better = each["unit"] in ("cases/s", "runs/min", "")
        name = f"{each['part']}, {each['what']} in {each['unit']} {'to ' * bool(each['beside'])}{each['beside']}"
        found[name.strip()] = 1 / value if value and more_is_better else value
    return found


PARTS: dict[str, tuple[Callable[..., None], Callable[..., Iterator[str]]]] = {
    "ids": (freeze_ids, compare_json),
    "rows": (freeze_rows, compare_rows),
    "help": (freeze_help, compare_json),
    "bundle": (freeze_bundle, compare_bundle),
    "statuses": (freeze_statuses, compare_json),
    "speed": (freeze_speed, partial(compare_costs, factor=1.25)),
    "score": (freeze_score, partial(compare_costs, factor=1.1)),
}
USUAL = ("ids", "rows", "help", "bundle")


@click.group(help=__doc__.partition("\n")[0])
def main() -> None:
    pass


@main.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--only", multiple=True, type=click.Choice(list(PARTS)), help="Only this part, repeatable.")
@click.option("--all", "everything", is_flag=True, help="The parts that take long, too.")
@click.option("--recorded", multiple=True, type=click.Path(exists=True), help="Statuses in place of the clone's own.")
def freeze(folder: Path, only: tuple[str, ...], everything: bool, recorded: tuple[str, ...]) -> None:
    for name in only or (PARTS if everything else USUAL):
        click.echo(name, err=True)
        (folder / name).mkdir(parents=True, exist_ok=True)
        PARTS[name][0]((folder / name).resolve(), *[list(map(Path, recorded))] * (name == "statuses"))


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
        lines = list(compared(old / name, new / name, *[ignored] * (name == "rows")))
        count = sum(not isinstance(line, Note) for line in lines)
        print(f"{name}: {f'{count} differences' if count else 'equal'}")
        print(*(f"  {line}\n" for line in lines[: 4 * SHOWN]), *["  ...\n"] * (len(lines) > 4 * SHOWN), sep="", end="")
        differs |= count > 0
    sys.exit(int(differs))


if __name__ == "__main__":
    main()
