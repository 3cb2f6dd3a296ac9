"""Imports run one way: between rooms, between the wings of the reports, and from suites to reports through one door.

A class has one name in all rooms. Nothing imports an optional part, and without them all the core judges torch.
"""

import ast
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from places import ROOT
from poolproof.references.kernels.compiled import VARIABLE

ROOMS = ("references", "backends", "suites", "reports")
BELOW = {
    "references": (),
    "backends": ("references",),
    "suites": ("references", "backends", "reports"),
    "reports": ("references",),
}
"""Room -> the rooms that it may import, besides itself; the commands of suites mount the score, too."""

WINGS = ("rows", "clusters", "waivers", "figures", "ci", "pages", "history", "bundle", "terminal")
"""Of the reports; each may import those before it."""

DOORS = (
    *(
        "diagnosis.py",
        "options.py",
        "recorder.py",
        "commands.py",
        "plugin.py",
        "opening.py",
        "cli.py",
        "rerun.py",
        "command.py",
    ),
    *("merge.py", "plan_rows.py", "row_verdicts.py", "verification.py"),
)
"""Modules that may import whatever they mount."""


def nodes(room: str) -> Iterator[tuple[Path, ast.AST]]:
    """(file inside the room, a part of its program)."""
    root = Path(str(files(f"poolproof.{room}")))
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield path.relative_to(root), node


def imports(room: str) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """(file inside the room, parts of a module of this project that it imports)."""
    for path, node in nodes(room):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from ((path, tuple(name.split(".")[1:])) for name in names if name.startswith("poolproof."))


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_what_lies_below_them(room: str) -> None:
    allowed = {room, *BELOW[room]}
    against = [(path, module) for path, module in imports(room) if module[0] not in allowed and path.name not in DOORS]
    assert not against


def test_wings_of_the_reports_import_those_before_them() -> None:
    seen = set()
    for path, module in imports("reports"):
        if module[0] == "reports" and path.name not in DOORS and path.parts[0] in WINGS:
            seen.add(path.parts[0])
            assert WINGS.index(module[1]) <= WINGS.index(path.parts[0]), (path, module)
    assert seen == set(WINGS)


def test_suites_reach_the_reports_through_their_rows_alone() -> None:
    through = [(path, module) for path, module in imports("suites") if module[0] == "reports"]
    assert len(through) > 10
    assert not [(path, module) for path, module in through if path.name not in DOORS and module[1] != "rows"]


def test_no_class_name_is_defined_twice() -> None:
    places = defaultdict(list)
    for room in ROOMS:
        for path, node in nodes(room):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{room}/{path}:{node.lineno}")
    assert len(places) > 200
    assert not {name: found for name, found in places.items() if len(found) > 1}


OPTIONAL = (
    *("backends/frameworks", "backends/ascendc", "backends/emulator"),
    *("suites/cases/lists", "suites/probe", "suites/fleet", "suites/verify"),
    *("reports/bundle", "reports/history"),
)

PROGRAM = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in f"{finder!r}"]  # of the whole suite
from poolproof.suites.cli import main
main()
"""


def part_of(path: str) -> str:
    return next((part for part in OPTIONAL if path.startswith(f"{part}/")), "")


def test_nothing_imports_an_optional_part() -> None:
    """But itself; what verifies bundles needs them."""
    against = [
        (f"{room}/{path}", "/".join(module))
        for room in ROOMS
        for path, module in imports(room)
        if (part := part_of("/".join(module) + "/")) not in ("", part_of(f"{room}/{path}"))
        and (part_of(f"{room}/{path}"), part) != ("suites/verify", "reports/bundle")
    ]
    assert not against


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to import the core from."""
    folder = tmp_path_factory.mktemp("core")
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / "poolproof" / room, ignore=shutil.ignore_patterns("__pycache__"))
    for part in OPTIONAL:
        shutil.rmtree(folder / "poolproof" / part)
    return folder


def poolproof(core: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", PROGRAM, *arguments]
    environment = {"PYTHONPATH": str(core), VARIABLE: "1"}
    return subprocess.run(command, cwd=core, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.thorough
def test_the_core_judges_torch(core: Path) -> None:
    selection = ("--operator", "MaxPool2dWithIndicesBackward", "--aspect", "values", "--cases", "1")
    ended = poolproof(core, "run", "--backend", "torch-cpu", *selection, "-p", "no:cacheprovider")
    assert "CONFORMS IN PART (exit status 0)" in ended.stdout, ended.stdout + ended.stderr
    assert (core / "poolproof-report" / "index.html").exists()


def test_a_part_that_is_missing_is_not_listed_or_is_named(core: Path) -> None:
    listed = poolproof(core, "--help").stdout
    commands = {line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line.strip()}
    assert "replay" in commands and not {"probe", "export", "verify", "dashboard"} & commands
    ended = poolproof(core, "run", "--backend", "torch-cpu", "--probe", "--cases", "1")
    assert (ended.returncode, "poolproof.suites.probe.command is a part" in ended.stderr + ended.stdout) == (3, True)
