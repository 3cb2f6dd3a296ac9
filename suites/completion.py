"""Shell completion of the names of backends, operators, dtypes and formats.

Click completes commands, options, files and choices by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from poolproof.backends.registry import canonical, names
from poolproof.references.operators import OPERATORS
from poolproof.suites.cases.lists import FORMATS
from poolproof.suites.plan.plans import DTYPES


class KnownName(click.ParamType):
    """A name, completed to one that is ``known``; any may be given, and is converted to how it is ``spelled``."""

    name = "name"

    def __init__(self, known: Callable[[], Iterable[str]], spelled: Callable[[str], str] = str) -> None:
        self._known, self._spelled = known, spelled

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        return self._spelled(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        return [CompletionItem(name) for name in self._known() if name.startswith(incomplete)]


BACKEND, OPERATOR, DTYPE = KnownName(names, canonical), KnownName(lambda: OPERATORS), KnownName(lambda: DTYPES)
FORMAT = KnownName(lambda: FORMATS)
"""Built-in formats alone: those of packages are not loaded for completion."""
