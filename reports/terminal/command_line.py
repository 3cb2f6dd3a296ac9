"""How all commands of ``poolproof`` behave: exit statuses that scripts can rely on, and one sentence for bad input."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from poolproof.reports.rows.text import visible, without_commands
from poolproof.reports.rows.verdicts import MEANINGS, BadInput, Overall

EXIT_STATUSES = "\n\n".join(
    ["\b\nExit statuses:", *(f"{int(overall)} {overall.word}: {text}" for overall, text in MEANINGS.items())]
)
"""What ``poolproof --help`` says below the commands."""


STYLES = {
    Overall.CONFORMS: "green",
    Overall.VIOLATES: "red",
    Overall.INCOMPLETE: "yellow",
    Overall.COULD_NOT_RUN: "red",
}
"""How an overall verdict is painted."""


def ending(word: str, overall: Overall, text: str) -> Text:
    """The line at the end that says it all: a word for the verdict, the exit status, and why."""
    line = Text(f"\n{word.upper()}", style=f"bold {STYLES[overall]}")
    return line.append(f" (exit status {int(overall)}){text and f': {text}'}", style="default not bold")


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

MOST_SECONDS = 86_400.0
"""A day: who waits longer for one case has mistyped."""

SECONDS = Number(0, MOST_SECONDS, min_open=True)


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


def _refuse(error: click.UsageError) -> NoReturn:
    error.show()
    sys.exit(Overall.COULD_NOT_RUN)


def give_up(reason: str) -> NoReturn:
    """End the command with one sentence."""
    click.echo(without_commands(f"poolproof: {visible(reason)}"), err=True)
    sys.exit(Overall.COULD_NOT_RUN)


class SafeConsole(Console):
    """A console that shows what text from outside would make the terminal do, or the CI service that keeps the log."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        line = ""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
                continue
            before, text = "." if line.strip() else "", visible(segment.text)
            yield Segment(without_commands(before + text)[len(before) :], segment.style)
            line = (line + text).rpartition("\n")[2]


def console() -> Console:
    """Where commands print: as wide as the terminal, wide enough for a reproducer where there is none."""
    return SafeConsole(width=None if sys.stdout.isatty() else 140)
