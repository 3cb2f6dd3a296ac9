"""How all commands of ``poolproof`` behave: exit statuses that scripts can rely on, and one sentence for bad input."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import click
from rich.console import Console

from poolproof.reports.errors import BadInput
from poolproof.reports.rows.verdicts import MEANINGS, Overall

EXIT_STATUSES = "\n\n".join(
    ["\b\nExit statuses:", *(f"{int(overall)} {overall.word}: {text}" for overall, text in MEANINGS.items())]
)
"""What ``poolproof --help`` says below the commands."""


class CommandGroup(click.Group):
    """A group whose commands end with `Overall.COULD_NOT_RUN` for whatever they cannot use, a bad option included."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
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
    click.echo(f"poolproof: {reason}", err=True)
    sys.exit(Overall.COULD_NOT_RUN)


def console() -> Console:
    """Where commands print: as wide as the terminal, wide enough for a reproducer where there is none."""
    return Console(width=None if sys.stdout.isatty() else 140)
