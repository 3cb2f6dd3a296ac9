"""Behaviour of all commands of ``poolproof``: reliable exit statuses, and one sentence for bad input."""

from __future__ import annotations

import math
import os
import signal
import sys
import traceback
from io import StringIO, TextIOWrapper
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn

import click

from poolproof.reports.rows.text import safe
from poolproof.reports.rows.verdicts import MEANINGS, UNCAUGHT, BadInput, Overall

EXIT_STATUSES = "\n\n".join(
    [
        "\b\nExit statuses:",
        *(f"{int(overall)} {overall.word}: {text}" for overall, text in MEANINGS.items()),
        f"{UNCAUGHT} a fault of poolproof itself, with its traceback",
    ]
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
    """A path that has a name: an empty text is what a script makes of a variable that is not set, lines of a list."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "" or "\n" in str(value):
            self.fail(f"a path is needed, not {'lines of text' if value else 'an empty text'}.", param, ctx)
        return super().convert(value, param, ctx)


PATH = NamedPath(path_type=Path)

MAX_SECONDS = 86_400.0
"""A day: longer for one case is a typing mistake."""

SECONDS = Number(0, MAX_SECONDS, min_open=True)


class CommandGroup(click.Group):
    """A group whose commands end with `Overall.COULD_NOT_RUN` for whatever they cannot use, a bad option included.

    What the terminal has no character for is spelled out, as in a log of ASCII. Commands are listed as they are given.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(self.commands)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except Exception:
            traceback.print_exc()
            sys.exit(UNCAUGHT)

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
        except UnicodeEncodeError as error:  # of an argument, whose bytes the system hands on as half characters
            give_up(f"{error.object!r} holds bytes that are no text in UTF-8")
        except (KeyboardInterrupt, click.Abort):
            sys.exit(128 + signal.SIGINT)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at its end
            sys.exit(128 + signal.SIGPIPE)
        except OSError as error:
            give_up(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))


class Late(click.Command):
    """A command that is imported when it is called: a list of commands costs none of what they need.

    ``place`` is its ``module:attribute``; ``short_help`` is what lists say of it.
    """

    def __init__(self, place: str, short_help: str) -> None:
        super().__init__(None, short_help=short_help)
        self.place = place

    def load(self) -> click.Command:
        try:
            return resolve_name(self.place)
        except ImportError as error:
            raise BadInput(f"cannot be imported here: {error}; install versions that go together") from error

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        return self.load().make_context(*args, **kwargs)


def _refuse(error: click.UsageError) -> NoReturn:
    text = StringIO()
    error.show(text)
    click.echo(safe(text.getvalue()), nl=False, err=True)
    sys.exit(Overall.COULD_NOT_RUN)


def give_up(reason: str) -> NoReturn:
    click.echo(safe(f"poolproof: {reason}"), err=True)
    sys.exit(Overall.COULD_NOT_RUN)
