"""What a shell completes where a command takes the name of a backend, an operator or a dtype.

Click completes commands, options, files and choices by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from poolproof.backends.registry import names
from poolproof.references.operators import OPERATORS
from poolproof.suites.running.plans import DTYPES

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _among(known: Callable[[], Iterable[str]]) -> Complete:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001  (click's signature)
        return [name for name in known() if name.startswith(incomplete)]

    return complete


backends = _among(names)
operators = _among(lambda: OPERATORS)
dtypes = _among(lambda: DTYPES)
