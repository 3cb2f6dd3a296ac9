"""Mutation score of the tests, by room: how many small faults in poolproof's own code they notice.

    python studies/mutants.py FILE [--count 300] [--seed 0] [--slowest 3] [--room NAME]...

A mutant is one changed comparison, operator, constant, condition or return of a function. The choice depends on the
seed and on a function's name and words, but not on its file: moved code is changed in the same places. Each is tried in
a copy of this Python's clone, one after another, by the tests of its room until one fails; slow tests are skipped. FILE
has a line of JSON for each result; recorded mutants are not tried again.
"""

from __future__ import annotations

import ast
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.util import find_spec
from itertools import chain, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

ROOT = Path(str(find_spec("poolproof.suites").origin)).parents[1]
"""The clone that this Python's poolproof is."""


@dataclass(frozen=True)
class Room:
    """A folder of sources, and its tests in meta_tests, the quickest first."""

    sources: str
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()


ROOMS = {
    "judging": Room(
        "suites/judging",
        ("suites/judging", "reports/test_evidence.py", "suites/run/test_reproducers.py", "suites/test_commands.py"),
    ),
    "kernels": Room(
        "references/kernels",
        (
            *("references/test_forward.py", "references/test_statistics.py", "references/test_criterion.py"),
            *("suites/judging/test_parts.py", "suites/judging/test_checks.py"),
        ),
    ),
    "rows": Room(
        "reports/rows",
        (
            *("reports/test_conclusion.py", "reports/test_text.py", "reports/test_store.py"),
            *("reports/test_libraries.py", "suites/judging/test_checks.py", "suites/run/test_surroundings.py"),
            *("reports/test_evidence.py", "suites/test_packages.py", "suites/plan/test_shards.py"),
            *("suites/cases/test_pairs.py", "reports/test_suspects.py", "reports/test_suspect_figures.py"),
        ),
        without=("call.py",),  # a program beside evidence: its own tests take half a minute
    ),
}
STATUSES = {0: "survived"} | dict.fromkeys((1, 2, 3), "killed")
STATUSES |= dict.fromkeys((-signal.SIGXCPU, -signal.SIGKILL), "out of time")
"""Exit status of pytest -> result for a mutant."""

MOST_WAITED = 30
"""Most seconds that tests may take per second of CPU: other processes may need it."""

_PAIRS = [
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Add), (ast.FloorDiv, ast.Mult), (ast.Mod, ast.FloorDiv)),
    *((ast.BitAnd, ast.BitOr), (ast.LShift, ast.RShift), (ast.Div, ast.Mult)),
]
OTHER = {one: other for other, one in reversed(_PAIRS)} | dict(_PAIRS)
NAME = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class Mutant:
    room: str
    file: str
    line: int
    function: str
    before: str
    after: str
    start: int
    end: int
    key: str

    def source(self) -> bytes:
        """Return the file with the mutant in it."""
        whole = (ROOT / self.file).read_bytes()
        return whole[: self.start] + self.after.encode() + whole[self.end :]


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield parts of a function with their replacement text."""
    match node:
        case ast.Compare(ops=ops):
            for number, one in enumerate(ops):
                if type(one) in OTHER:
                    operators = [*ops[:number], OTHER[type(one)](), *ops[number + 1 :]]
                    yield node, f"({ast.unparse(ast.Compare(node.left, operators, node.comparators))})"
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op) in OTHER:
            fields = dict(ast.iter_fields(node)) | {"op": OTHER[type(op)]()}
            yield node, f"({ast.unparse(type(node)(**fields))})"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield node, f"({value + 1!r})"
        case ast.Constant(value=str(value)) if NAME.fullmatch(value):
            yield node, repr(f"{value}_mutant")
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if not isinstance(test, ast.Compare):
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield value, "None"


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and its descendants, except annotations, decorators, docstrings and f-strings."""
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if not isinstance(node, ast.JoinedStr) and not is_docstring:
        yield node
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns", "decorator_list"):
                for below in value if isinstance(value, list) else [value]:
                    if isinstance(below, ast.AST):
                        yield from parts(below)


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    for below in ast.iter_child_nodes(node):
        if isinstance(below, ast.FunctionDef):
            yield prefix + below.name, below
        elif isinstance(below, ast.ClassDef):
            yield from functions(below, f"{prefix}{below.name}.")


def mutants(name: str, room: Room, seed: int) -> list[Mutant]:
    """Return all mutants of a room, in the drawn order."""
    all_mutants, seen = [], Counter[str]()
    for path in sorted((ROOT / room.sources).rglob("*.py")):
        if path.name in room.without:
            continue
        whole = path.read_bytes()
        starts = [0, *(match.end() for match in re.finditer(b"\n", whole))]
        for function, tree in functions(ast.parse(whole)):
            for node, after in chain.from_iterable(map(changes, parts(tree))):
                start = starts[node.lineno - 1] + node.col_offset
                end = starts[node.end_lineno - 1] + node.end_col_offset
                before = whole[start:end].decode()
                words = f"{seed} {name} {function} {before} {after}"
                seen[words] += 1
                key = sha256(f"{words} {seen[words]}".encode()).hexdigest()[:16]
                file = str(path.relative_to(ROOT))
                all_mutants.append(Mutant(name, file, node.lineno, function, before, after, start, end, key))
    return sorted(all_mutants, key=lambda mutant: mutant.key)


def copied(folder: Path) -> tuple[Path, str]:
    """Copy this clone, and create an environment with the copy; return the copy and its Python."""
    tree, environment = folder / "tree", folder / "environment"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", "__pycache__", "*.egg-info", ".hypothesis"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = str(environment / "bin" / "python")
    (packages,) = (environment / "lib").glob("python*/site-packages")
    (packages / "others.pth").write_text("".join(f"{path}\n" for path in sys.path if path.endswith("site-packages")))
    install = ["-m", "pip", "-q", "--python", python, "install", "--no-deps", "--no-build-isolation", "-e", tree]
    subprocess.run([sys.executable, *install], check=True)
    return tree, python


def tried(tree: Path, python: str, tests: Sequence[str], options: Sequence[str], cpu: int) -> dict[str, Any]:
    """Run tests in the copy, for at most ``cpu`` seconds of CPU; return the result, and the failing tests."""
    shutil.rmtree(tree / ".hypothesis", ignore_errors=True)
    given = ["-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--tb=line", "-rfE", *options]
    settings = {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(tree / "numba")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (tree / "printed").open("wb") as printed:
        process = subprocess.Popen(
            [python, "-m", "pytest", *given, *(f"meta_tests/{name}" for name in tests)],
            cwd=tree,
            env=os.environ | settings,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu)),
        )
        try:
            status = STATUSES.get(process.wait(MOST_WAITED * cpu), "died")
        except subprocess.TimeoutExpired:
            status = "no answer"
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"status": status, "by": names_in(tree, "FAILED|ERROR"), "seconds": round(seconds, 1)}


def names_in(tree: Path, before: str) -> list[str]:
    """Return the tests that the last run in the copy named in lines that begin with ``before``."""
    return re.findall(rf"^(?:{before}) +(\S+)", (tree / "printed").read_text(errors="replace"), re.MULTILINE)


def summary(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    for room in dict.fromkeys(each["room"] for each in results):
        of = Counter(each["status"] for each in results if each["room"] == room)
        share = 1 - of["survived"] / of.total()
        yield f"{room}: {share:.1%} noticed of {of.total()} ({', '.join(f'{n} {status}' for status, n in of.items())})"


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--count", default=300, show_default=True, help="Mutants of all rooms together.")
@click.option("--seed", default=0, show_default=True)
@click.option("--slowest", default=3.0, show_default=True, help="Leave out tests of more seconds.")
@click.option("--room", "rooms", multiple=True, type=click.Choice(list(ROOMS)), help="Only this room, repeatable.")
def main(file: Path, count: int, seed: int, slowest: float, rooms: tuple[str, ...]) -> None:
    results = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done, rooms = {each["key"] for each in results}, rooms or tuple(ROOMS)
    drawn = [mutants(name, ROOMS[name], seed)[: count // len(rooms)] for name in rooms]
    unchanged: dict[str, dict[str, Any]] = {}
    with TemporaryDirectory() as scratch:
        tree, python = copied(Path(scratch))
        for mutant in filter(None, chain.from_iterable(zip_longest(*drawn))):
            if mutant.key in done:
                continue
            room = mutant.room
            if room not in unchanged:
                durations = ["--durations=0", f"--durations-min={slowest:g}"]
                unchanged[room] = tried(tree, python, ROOMS[room].tests, durations, 600)
                unchanged[room]["by"] += names_in(tree, r"[\d.]+s call")
                print(f"{room} unchanged: {unchanged[room]}", flush=True)
            options = ["-x", *(f"--deselect={name}" for name in unchanged[room]["by"])]
            (tree / mutant.file).write_bytes(mutant.source())
            cpu = int(2 * unchanged[room]["seconds"] + 30)
            results.append(asdict(mutant) | tried(tree, python, ROOMS[room].tests, options, cpu))
            shutil.copy(ROOT / mutant.file, tree / mutant.file)
            with file.open("a") as lines:
                lines.write(json.dumps(results[-1]) + "\n")
            came = {name: results[-1][name] for name in ("status", "by", "seconds")}
            print(f"{mutant.file}:{mutant.line} {mutant.before} -> {mutant.after}: {came}", flush=True)
    print(*summary(results), sep="\n")


if __name__ == "__main__":
    main()
