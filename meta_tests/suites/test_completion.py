"""What a shell completes of the commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from places import ROOT
from poolproof.backends.registry import names
from poolproof.suites.cli import COMMANDS, main
from sessions import surroundings


def completed(*line: str) -> list[str]:
    *before, begun = line
    return [item.value for item in ShellComplete(main, {}, "poolproof", "_").get_completions(before, begun)]


def test_commands_are_completed_without_one_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "poolproof.reports.commands", raising=False)
    assert completed("") == list(COMMANDS)
    assert completed("re") == ["replay", "rerun"]
    assert completed("--v") == ["--version"]
    assert "poolproof.reports.commands" not in sys.modules


def test_what_a_command_takes_is_completed() -> None:
    for command in ("list", "replay", "export", "probe", "rerun"):
        assert completed(command, "--backend", "") == names()
        assert completed(command, "--backend", "emulator-9") == ["emulator-910", "emulator-950"]
        assert completed(command, "--backend", "no-such") == []
    operators = ["MaxPool3dWithArgmax", "MaxPool3dWithArgmaxBackward"]
    assert sorted(completed("export", "--operator", "MaxPool3d")) == operators
    assert sorted(completed("probe", "--dtype", "float")) == ["float16", "float32", "float64"]
    assert completed("export", "--aspect", "special") == ["special_values"]
    assert sorted(completed("list", "--plan", "s")) == ["smoke", "soak"]
    assert completed("history", "q") == ["query"]


def test_bash_completes(tmp_path: Path) -> None:
    """By the line that the page has for `.bashrc`."""
    page = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
    (line,) = [line.strip() for line in page.splitlines() if "bash_source" in line]
    typed = "COMP_WORDS=(poolproof replay --backend emulator-a)\nCOMP_CWORD=3"
    program = tmp_path / "poolproof"
    program.write_text(f"#!{sys.executable}\nfrom poolproof.suites.cli import main\nmain()\n")
    program.chmod(0o755)
    environment = surroundings() | {"PATH": os.pathsep.join((str(tmp_path), os.environ["PATH"]))}
    command = ["bash", "-c", f'{line}\n{typed}\n_poolproof_completion poolproof\necho "${{COMPREPLY[@]}}"']
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.stdout.split() == ["emulator-a2", "emulator-a3"], ended.stderr


def test_a_run_lists_its_own_options() -> None:
    said = CliRunner().invoke(main, ["run", "--help"]).output
    assert "what is judged:\n  --backend NAME" in said and "--maxfail" not in said
    assert len(said.splitlines()) < 120
