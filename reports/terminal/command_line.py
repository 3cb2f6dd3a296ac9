"""Behaviour of all commands of ``poolproof``: reliable exit statuses, and one sentence for bad input."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from poolproof.reports.rows.text import visible, without_commands
from poolproof.reports.rows.verdicts import MEANINGS, BadInput, Overall

EXIT_STATUSES = "\n\n".join(
    ["\b\nExit statuses:", *(f"{int(overall)} {overall.word}: {text}" for overall, text in MEANINGS.items())]
)
"""Text below the commands in ``poolproof --help``."""


class Number(click.FloatRange):
    """A number in a range; what is no number lies in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail("a number is needed, not nan.", param, ctx)
        return number


class NamedPath(click.Path):
    """A path that has a name: an empty text is what a script makes of a variable that is not set."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("a path is needed, not an empty text.", param, ctx)
        return super().convert(value, param, ctx)


PATH = NamedPath(path_type=Path)

MAX_SECONDS = 86_400.0
"""A day: longer for one case is a typing mistake."""

SECONDS = Number(0, MAX_SECONDS, min_open=True)


class CommandGroup(click.Group):
    """A group whose commands end with `Overall.COULD_NOT_RUN` for whatever they cannot use, a bad option included.

    What the terminal has no character for is spelled out, as in a log of ASCII.
    """

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            _refuse(error)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            _refuse(error)
        except BadInput as error:
            give_up(str(error))
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            give_up(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))


@dataclass(frozen=True)
class Late:
    """A command that is imported when it is called: the ``module:attribute`` that it is, and what lists say of it."""

    place: str
    short_help: str

    def load(self) -> click.Command:
        return resolve_name(self.place)


class LateGroup(CommandGroup):
    """A group of commands that are imported when they are called: its help costs none of what they need.

    They are listed in the order in which they are given, that of their use.
    """

    def __init__(self, *args: Any, late: Mapping[str, Late], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.late = late

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(self.late)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return self.late[cmd_name].load() if cmd_name in self.late else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        named = [CompletionItem(name, help=late.short_help) for name, late in self.late.items()]
        return [item for item in named if item.value.startswith(incomplete)] + click.Command.shell_complete(
            self, ctx, incomplete
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.late[name].short_help) for name in self.list_commands(ctx)])


def _refuse(error: click.UsageError) -> NoReturn:
    error.show()
    sys.exit(Overall.COULD_NOT_RUN)


def give_up(reason: str) -> NoReturn:
    click.echo(without_commands(f"poolproof: {visible(reason)}"), err=True)
    sys.exit(Overall.COULD_NOT_RUN)
