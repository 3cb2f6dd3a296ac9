"""What people give by mistake, generated: each with how the command shall end and what its sentence shall name.

A bad input is a command line, the files that lie in the folder that it is run in, and the environment variables that it
meets. ``listed`` modules spell them out; what can be broken without end is drawn by Hypothesis in `test_bad_inputs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from places import ROOT

SUITE = str(ROOT / "suites")


class Ending(Enum):
    """How a command may end that was given something: its exit status, and the most lines that it may print."""

    REFUSED = (3, 6)
    """One sentence, nothing done."""

    USAGE = (4, 14)
    """pytest's own parser refuses the option, below its usage."""

    INCOMPLETE = (2, 200)
    """The session runs to its end, and nobody is accused."""

    UNPUBLISHED = (3, 200)
    """The session runs to its end, and what it should write for others cannot be written."""

    HARMLESS = (0, 200)
    """What looks bad is none of our business: everything goes on as usual."""

    SHOWN = (1, 200)
    """A run that violates is shown as one."""

    @property
    def status(self) -> int:
        return self.value[0]

    @property
    def most_lines(self) -> int:
        return self.value[1]


Lay = Callable[[Path, Path], object]
"""Puts files into the folder that the command is run in (first), from those that were made for all (second)."""


def nothing(here: Path, made: Path) -> None:
    """Leave the folder empty."""


@dataclass(frozen=True)
class Given:
    """A bad input.

    name
        Unique among all.
    program, arguments
        ``pytest`` or ``poolproof``, and what follows.
    names
        Texts of which the output has one: what is wrong, in the words of who gave it.
    about
        The option that is tried, as ``poolproof score --cases``; empty if it is about no option.
    lay
        Puts the files there that the arguments name.
    environment
        Variables that are set, or with None missing.
    """

    name: str
    program: str
    arguments: tuple[str, ...]
    names: tuple[str, ...] = ()
    ending: Ending = Ending.REFUSED
    about: str = ""
    lay: Lay = nothing
    environment: Mapping[str, str | None] = field(default_factory=dict)


SMALL = (
    "--operator=MaxPool2dWithIndicesBackward",
    "--dtype=float16",
    "--aspect=values",
    "--cases=2",
    "--no-shrink",
    "--diagnose=0",
    "--ci=none",
)
"""Options of a session that is over soon."""

HONEST = "scatter_backends:honest"


def session(*options: str) -> tuple[str, ...]:
    """The arguments of a pytest session."""
    return (SUITE, "-q", "-p", "no:cacheprovider", *options)


def small_session(*options: str, backend: str = HONEST) -> tuple[str, ...]:
    """The arguments of one that is over soon."""
    return session(f"--backend={backend}", *SMALL, *options)
