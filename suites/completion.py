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

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _among(known: Callable[[], Iterable[str]]) -> Complete:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001  (click's signature)
        return [name for name in known() if name.startswith(incomplete)]

    return complete


class BackendName(click.ParamType):
    """Any name of a backend, converted to the one that reports use."""

    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        return canonical(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        return [CompletionItem(name) for name in names() if name.startswith(incomplete)]


BACKEND = BackendName()
operators = _among(lambda: OPERATORS)
dtypes = _among(lambda: DTYPES)
formats = _among(lambda: FORMATS)
"""Built-in formats alone: those of packages are not loaded for completion."""
