"""Imports run one way: between rooms, between the wings of the reports, and from suites to reports through one door.

A class has one name in all rooms.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

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
    *("diagnosis.py", "options.py", "recorder.py", "commands.py", "plugin.py", "opening.py", "cli.py", "rerun.py"),
    *("merge.py", "plan_rows.py", "verification.py"),
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
