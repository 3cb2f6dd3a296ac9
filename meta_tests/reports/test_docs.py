"""The page about reports says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from places import ROOT
from poolproof.reports.commands import history
from poolproof.reports.rows.verdicts import MEANINGS
from poolproof.reports.terminal.command_line import EXIT_STATUSES
from poolproof.reports.waivers import loads
from poolproof.suites.cli import COMMANDS

DOCS = ROOT / "docs"
PAGE = (DOCS / "reports.md").read_text(encoding="utf-8")
SHELL = [DOCS / "reports.md", *sorted((DOCS / "ci").glob("*.yml"))]


def test_the_exit_statuses_are_those_of_the_code() -> None:
    for overall, meaning in MEANINGS.items():
        assert f"| {int(overall)} | {overall.word} | {meaning} |" in PAGE
        assert f"{int(overall)} {overall.word}: {meaning}" in EXIT_STATUSES


def test_the_waiver_of_the_page_is_one_and_every_command_is_on_it() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert loads(text, "the page")[0].id == "strided-outputs"
    for name, command in COMMANDS.items():
        assert f"`poolproof {name} " in PAGE or not command.place.startswith("poolproof.reports.")


@pytest.mark.parametrize("path", SHELL, ids=lambda path: path.name)
def test_commands_and_their_options_exist(path: Path) -> None:
    known = {name: command.load() for name, command in COMMANDS.items()}
    names = "|".join(["history \\w+", *(name for name in known if name != "history")])
    used = re.findall(rf"poolproof ({names})\b([^`\n|]*)", path.read_text(encoding="utf-8"))
    assert used
    for name, rest in used:
        group, _, inner = name.partition(" ")
        command = history.commands[inner] if inner else known[group]
        spelled = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(?<=\s)--?[a-z][\w-]*", rest.split(" tail ")[0])) <= spelled, (path.name, name, rest)
