"""Behaviour of all commands of ``poolproof``: reliable exit statuses, and one sentence for bad input."""

from __future__ import annotations

import math
import os
import re
import signal
import sys
import traceback
from io import TextIOWrapper
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn

import click

from poolproof.references.nearest import unknown_name
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
    """A number in a range; NaN is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail("a number is needed, not nan.", param, ctx)
        return number


class NamedPath(click.Path):
    """A path with a name: an unset variable of a script gives an empty text, and a list gives lines."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "" or "\n" in str(value):
            self.fail(f"a path is needed, not {'lines of text' if value else 'an empty text'}.", param, ctx)
        return super().convert(value, param, ctx)


PATH = NamedPath(path_type=Path)

MAX_SECONDS = 86_400.0
"""A day: longer for one case is a typing mistake."""

SECONDS = Number(0, MAX_SECONDS, min_open=True)


class CommandGroup(click.Group):
    """A group of commands that exit with `Overall.COULD_NOT_RUN` for bad input, including a bad option.

    Characters that the terminal lacks are escaped, as in a log of ASCII. Commands are listed in their given order.
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
        except UnicodeEncodeError as error:  # an argument with bytes that the system passes as half characters
            give_up(f"{error.object!r} holds bytes that are no text in UTF-8")
        except (KeyboardInterrupt, click.Abort):
            sys.exit(128 + signal.SIGINT)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at its end
            sys.exit(128 + signal.SIGPIPE)
        except OSError as error:
            give_up(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))


class Late(click.Command):
    """A command that is imported when it is called, so that a list of commands is fast.

    ``place`` is its ``module:attribute``; ``short_help`` is its text in lists.
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
    """Print in one sentence what is wrong with the arguments, and where to read about them."""
    kind, value = getattr(getattr(error, "param", None), "type", None), _INVALID.search(error.message)
    text = error.format_message()
    if isinstance(kind, click.Choice) and value:
        text = unknown_name(error.param.opts[-1].lstrip("-"), value[1], kind.choices)  # type: ignore[attr-defined]
    give_up(f"{text.rstrip('.')}; see {error.ctx.command_path} --help" if error.ctx else text)


_INVALID = re.compile("'(.*)' is not one of")
"""Text of click about a value that an option does not take."""


def give_up(reason: str, status: int = Overall.COULD_NOT_RUN) -> NoReturn:
    click.echo(safe(f"poolproof: {reason}"), err=True)
    sys.exit(status)


_CHOICE = re.compile(r"argument --(?P<option>\S+): invalid choice: '(?P<value>.*)' \(choose from (?P<known>.*)\)")
"""Text of argparse about a value that an option does not take."""


def refused_value(text: str) -> str:
    """Return the text of an argparse error, with the nearest value for a value that an option does not take."""
    match = _CHOICE.fullmatch(text)
    return unknown_name(match["option"], match["value"], re.findall("'([^']*)'", match["known"])) if match else text
