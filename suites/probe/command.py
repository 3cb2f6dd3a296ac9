"""``poolproof probe``: the accounts of a backend on the terminal, with what to declare."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from itertools import groupby
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from poolproof.backends.base import BackendUnavailable, UnknownBackend
from poolproof.references.operators import OPERATORS, Direction
from poolproof.reports.rows.verdicts import BadInput, Overall
from poolproof.suites.options import library_options, run_options
from poolproof.suites.probe.experiment import Account
from poolproof.suites.probe.questions import MEMORY_FORMATS, ProbeQuestion, probe_questions
from poolproof.suites.run.sandbox import Sandbox

SECONDS = 120.0
"""How long one account may take."""


def accounts(
    name: str,
    formats: Sequence[str] = MEMORY_FORMATS,
    asks: Callable[[ProbeQuestion], bool] = lambda _: True,
    until: float = inf,
) -> Iterator[tuple[ProbeQuestion, Account | str]]:
    """Yield the questions to a backend that ``asks`` selects, each with its account or the reason why there is none.

    Each may take `SECONDS`, and half of the time left until a monotonic time.
    """
    with TemporaryDirectory() as scratch, closing(Sandbox(name, Path(scratch), "probe", SECONDS, until)) as sandbox:
        questions = list(filter(asks, probe_questions(sandbox.start().subjects, formats)))
        for question, row in zip(questions, sandbox.judge(questions), strict=True):
            yield question, row["account"] or f"{row['verdict']}: {row['reason']}"


def records_of(name: str, places: Collection[tuple[str, str]], until: float) -> Iterator[dict[str, Any]]:
    """Yield records of the accounts of (operator, dtype) on a backend; of one that is unavailable none."""
    with suppress(BackendUnavailable, UnknownBackend):
        asked = accounts(name, MEMORY_FORMATS[:1], lambda each: (each.operator, each.dtype) in places, until)
        yield from (account.to_record() for _, account in asked if isinstance(account, Account))


def all_accounts(name: str) -> list[Account]:
    """Take the accounts of everything that a backend has, without those that end its process."""
    return [account for _, account in accounts(name) if isinstance(account, Account)]


@click.command()
@run_options(
    *("--backend", "--operator", "--dtype"),
    backend={"default": "torch-cpu", "show_default": True, "multiple": False},
)
@library_options
@click.option(
    "--memory-format",
    "formats",
    multiple=True,
    type=click.Choice(MEMORY_FORMATS),
    default=MEMORY_FORMATS,
    show_default=True,
    help="Memory format of the tensors, repeatable.",
)
def probe(backend: str, operator: tuple[str, ...], dtype: tuple[str, ...], formats: tuple[str, ...]) -> None:
    """Find out from outputs alone how a backend adds, rounds, overflows and picks indices.

    Prints what was found with its evidence, the accumulation model or forward rule to declare, and where the backend's
    own declaration disagrees. Exits with 1 if it does anywhere.
    """
    try:

        def asks(question: ProbeQuestion) -> bool:
            return (not operator or question.operator in operator) and (not dtype or question.dtype in dtype)

        found = [_told(question, account) for question, account in accounts(backend, formats, asks)]
    except (BackendUnavailable, UnknownBackend, KeyError) as error:
        raise BadInput(str(error.args[0])) from error
    if not found:
        raise BadInput(f"{backend} has none of these operators, dtypes and memory formats")
    click.echo("\n".join(_declarations([account for account in found if account is not None])))
    disagree = any(account is None or account.disagreements for account in found)
    sys.exit(Overall.VIOLATES if disagree else Overall.CONFORMS)


def _told(question: ProbeQuestion, account: Account | str) -> Account | None:
    """Print one account; None where there is none."""
    click.secho(f"{question.operator} {question.dtype} {question.memory_format}", bold=True)
    if isinstance(account, str):
        click.secho(f"  {account}", fg="red")
        return None
    width = max(len(seen.trait) for seen in account.observations)
    for seen in account.observations:
        click.echo(f"  {seen.trait:{width}}  {seen.found}" + click.style(f"  ({seen.evidence})", dim=True))
    for sentence in account.disagreements:
        click.secho(f"  ! {sentence}", fg="red")
    return account


def _declarations(found: Sequence[Account]) -> Iterator[str]:
    """Write what `Backend.accumulation` and `Backend.forward_rule` should return, a line for dtypes that share it."""
    for method, direction in (("accumulation", Direction.BACKWARD), ("forward_rule", Direction.FORWARD)):
        fitting = [
            (account, account.model or "none fits")
            for account in found
            if account.declared and OPERATORS[account.operator].direction is direction
        ]
        if direction is Direction.FORWARD:
            fitting += [(account, account.rule) for account in found if account.rule]
        if fitting:
            yield f"\nto declare in Backend.{method} (operator, memory format: dtype: what fits)"
        for place, group in groupby(sorted(fitting, key=_place), key=_place):
            yield f"  {', '.join(place)}: {', '.join(f'{account.dtype}: {fits}' for account, fits in group)}"


def _place(fitting: tuple[Account, str]) -> tuple[str, str]:
    return fitting[0].operator, fitting[0].memory_format
