"""Bad inputs: none gives a traceback, hangs, has a wrong exit status, accuses or loses anything.

Half of those that there are: `python -m bad_inputs --number 500` tries them all, in a minute and a half of CPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import forked
from bad_inputs import Ending, Given
from bad_inputs.fence import LEFT, targets
from bad_inputs.generating import DRAWN_SHARE, generated
from bad_inputs.options import every_option
from bad_inputs.trying import contents, objections
from places import SUPPORT
from poolproof.reports.rows.store import RowWriter
from sessions import surroundings

NUMBER = 250


def test_bad_inputs_end_as_they_should() -> None:
    """In a process of its own, which forks; four are tried without that shortcut."""
    asked = ["--number", str(NUMBER), "--for-real", "4"]
    ended = forked.run(forked.Command("bad_inputs", asked, SUPPORT, surroundings(), seconds=900.0))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{NUMBER} tried" in ended.stdout


def test_every_option_has_a_bad_input() -> None:
    assert every_option() <= {given.about for given in generated(NUMBER)}


def test_the_same_seed_gives_the_same_inputs() -> None:
    names = [given.name for given in generated(NUMBER)]
    assert len(set(names)) == NUMBER
    assert names == [given.name for given in generated(NUMBER)]
    assert set(names) != {given.name for given in generated(NUMBER, seed=1)}
    assert sum("drawn" in name for name in names) >= NUMBER * DRAWN_SHARE - 1


GIVEN = Given("a number that is none", "pytest", ("--cases=x",), names=("--cases",))
SENTENCE = "Exit: --cases x: no number\n"


@pytest.mark.parametrize(
    ("status", "output", "objection"),
    [
        (3, SENTENCE, ""),
        (None, SENTENCE, "was not over after"),
        (1, SENTENCE, "exit status 1, owed 3"),
        (0, SENTENCE, "exit status 0, owed 3"),
        (-11, SENTENCE, "exit status -11, owed 3"),
        (3, SENTENCE + "Traceback (most recent call last):", "a traceback"),
        (3, SENTENCE + "INTERNALERROR> KeyError", "a traceback"),
        (3, "Exit: something is wrong\n", "names none of '--cases'"),
        (3, "", "says nothing"),
        (3, SENTENCE * 20, "20 lines"),
        (3, "x" * 9_999 + SENTENCE, "1 lines, 10026 characters"),
    ],
)
def test_what_is_wrong_with_an_ending_is_noticed(
    status: int | None, output: str, objection: str, tmp_path: Path
) -> None:
    found = list(objections(GIVEN, status, output, {}, tmp_path))
    assert bool(found) == bool(objection)
    assert not objection or any(objection in each for each in found)


def test_what_is_lost_is_noticed(tmp_path: Path) -> None:
    for name in ("kept", "changed", "gone"):
        (tmp_path / name).write_text(name)
    (tmp_path / "pipe").symlink_to("kept")
    before = contents(tmp_path)
    assert not list(objections(GIVEN, 3, SENTENCE, before, tmp_path))
    (tmp_path / "changed").write_text("other")
    (tmp_path / "gone").unlink()
    (tmp_path / "pipe").unlink()
    (tmp_path / "pipe").write_text("kept")
    (tmp_path / "new").write_text("new")
    found = list(objections(GIVEN, 3, SENTENCE, before, tmp_path))
    assert found == ["changed changed", "changed gone", "changed pipe"]


@pytest.mark.parametrize(("verdict", "accuses"), [("crashed", True), ("violates", True), ("adapter error", False)])
def test_who_is_accused_is_noticed(verdict: str, accuses: bool, tmp_path: Path) -> None:
    rows = RowWriter(tmp_path / "run", "main")
    rows.append({"backend": "b", "operator": "o", "aspect": "values", "verdict": verdict})
    rows.close()
    harmless = Given("harmless", "pytest", (), ending=Ending.INCOMPLETE)
    assert list(objections(harmless, 2, "said", {}, tmp_path)) == (["accuses in run/rows"] if accuses else [])
    assert not list(objections(harmless, 2, "said", contents(tmp_path), tmp_path))


@pytest.mark.parametrize(
    ("event", "arguments", "changed"),
    [
        ("open", ("a-device", "w", os.O_WRONLY), []),
        ("open", ("kept", "r", os.O_RDONLY), []),
        ("open", ("a-link", "w", os.O_WRONLY | os.O_CREAT), ["/dev/zero"]),
        ("os.rename", ("kept", "a-link", -1, -1), ["{here}/kept", "{here}/a-link"]),
        ("os.rename", ("kept", "/dev/null", -1, -1), ["{here}/kept", "/dev/null"]),
        ("os.remove", ("/dev/null", -1), ["/dev/null"]),
        ("os.truncate", ("a-link", 0), ["/dev/zero"]),
        ("os.listdir", ("/dev",), []),
    ],
)
def test_what_a_command_is_about_to_change_is_known(
    event: str, arguments: tuple[object, ...], changed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, target in (("a-device", os.devnull), ("a-link", "/dev/zero")):
        Path(name).symlink_to(target)
    assert targets(event, arguments) == [each.format(here=tmp_path) for each in changed]


@pytest.mark.parametrize(("target", "status"), [("inside/new", 0), ("outside", LEFT)])
def test_a_command_ends_before_it_changes_what_is_outside(target: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "old").write_text("old")
    (tmp_path / "outside").write_text("years of work")
    program = (
        f"from bad_inputs.fence import keep_inside; from pathlib import Path; keep_inside(Path({str(tmp_path)!r}, "
        f"'inside')); Path({str(tmp_path)!r}, 'inside/old').rename(Path({str(tmp_path)!r}, {target!r}))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=SUPPORT, capture_output=True).returncode == status
    assert (tmp_path / "outside").read_text() == "years of work"
