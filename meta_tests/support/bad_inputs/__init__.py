"""What people give by mistake, generated: each with how the command shall end and what its sentence shall name.

A bad input is a command line, the files that lie in the folder that it is run in, and the environment variables that it
meets. ``listed`` modules spell them out; what can be broken without end is drawn by Hypothesis in `test_bad_inputs`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from places import ROOT

Lay = Callable[[Path, Path], object]
"""Puts files into the folder that the command is run in (first), from those that were made for all (second)."""


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


@dataclass(frozen=True)
class Given:
    """A bad input, by a name of its own.

    ``program`` is ``pytest`` or ``poolproof``. The output has one of the texts ``names``: what is wrong, in the words
    of who gave it. ``about`` is the option that is tried, as ``poolproof score --cases``, if it is about one. ``lay``
    puts the files there that the arguments name. Variables of the ``environment`` are set, or with None missing.
    """

    name: str
    program: str
    arguments: tuple[str, ...]
    names: tuple[str, ...] = ()
    ending: Ending = Ending.REFUSED
    about: str = ""
    lay: Lay = lambda here, made: None
    environment: Mapping[str, str | None] = field(default_factory=dict)


HONEST = "scatter_backends:honest"


def session(*options: str) -> tuple[str, ...]:
    """The arguments of a pytest session."""
    return (str(ROOT / "suites"), "-q", "-p", "no:cacheprovider", *options)


def small_session(*options: str, backend: str = HONEST) -> tuple[str, ...]:
    """The arguments of one that is over soon."""
    small = ("--operator=MaxPool2dWithIndicesBackward", "--dtype=float16", "--aspect=values", "--cases=2")
    return session(f"--backend={backend}", *small, "--no-shrink", "--diagnose=0", "--ci=none", *options)
