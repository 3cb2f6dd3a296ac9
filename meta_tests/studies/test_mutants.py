"""Mutants: which are drawn, what they change, and what tests make of them."""

import ast
import sys
from pathlib import Path

import pytest

import mutants

SOURCE = '''"""Text."""
LIMIT = 3


class Counter:
    @staticmethod
    def add(one: int, other: int = 2) -> int:
        """Text."""
        if one and one >= other:
            return one + other
        return len("word") if not other else other
'''
MUTANTS = {
    ("2", "(3)"),
    ("one and one >= other", "(one or one >= other)"),
    ("one and one >= other", "(not (one and one >= other))"),
    ("one >= other", "(one > other)"),
    ("one + other", "(one - other)"),
    ("one + other", "None"),
    ('len("word") if not other else other', "None"),
    ('"word"', "'word_mutant'"),
    ("not other", "(not (not other))"),
}


def drawn(monkeypatch: pytest.MonkeyPatch, root: Path, source: str, name: str = "a.py") -> list[mutants.Mutant]:
    (root / "room").mkdir(parents=True)
    (root / "room" / name).write_text(source)
    monkeypatch.setattr(mutants, "ROOT", root)
    return mutants.mutants("room", mutants.Room("room", ()), seed=0)


def test_each_part_of_a_function_is_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = drawn(monkeypatch, tmp_path, SOURCE)
    assert {(mutant.before, mutant.after) for mutant in found} == MUTANTS
    for mutant in found:
        changed = mutant.source().decode()
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(SOURCE))
        assert len(changed) == len(SOURCE) - len(mutant.before) + len(mutant.after)


def test_what_only_moved_is_changed_in_the_same_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = drawn(monkeypatch, tmp_path / "here", SOURCE)
    there = drawn(monkeypatch, tmp_path / "there", f"LIMITS = [1, 2]\n\n\n{SOURCE}", "deeper.py")
    assert [mutant.key for mutant in here] == [mutant.key for mutant in there]
    assert [mutant.line + 3 for mutant in here] == [mutant.line for mutant in there]


def test_every_room_has_sources_and_tests() -> None:
    for name, room in mutants.ROOMS.items():
        assert len(mutants.mutants(name, room, seed=0)) > 300, name
        assert all((mutants.ROOT / "meta_tests" / test).exists() for test in room.tests)


@pytest.mark.parametrize(
    ("body", "status", "by"),
    [
        ("pass", "survived", []),
        ("assert False", "killed", ["meta_tests/test_a.py::test_a"]),
        ("while True: pass", "out of time", []),
        ("__import__('time').sleep(100)", "no answer", []),
        ("__import__('os').abort()", "died", []),
    ],
)
def test_what_tests_make_of_a_mutant(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str, status: str, by: list[str]
) -> None:
    (tmp_path / "meta_tests").mkdir()
    (tmp_path / "meta_tests" / "test_a.py").write_text(f"def test_a():\n    {body}\n")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "_hypothesis_pytestplugin")  # which has the option that sets a seed
    monkeypatch.setattr(mutants, "MOST_WAITED", 1 if status == "no answer" else 300)
    result = mutants.tried(tmp_path, sys.executable, ["test_a.py"], ["-x"], cpu=4)
    assert (result["status"], result["by"]) == (status, by)
