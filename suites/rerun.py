"""Commands that redraw the cases of a run: to merge its shards, to verify its bundle, to judge some of it again.

``rerun`` is a counterparty's test of a bundle: some of its cases, drawn at random, judged on another machine. Verdicts
must agree; where a call is deterministic, other bits than in the bundle are counted. A deviation is shown like a
failure: with its cause and the line that replays it.
"""

from __future__ import annotations

import random
import secrets
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.text import Text

from poolproof.backends.base import BackendUnavailable
from poolproof.backends.registry import UnknownBackend
from poolproof.reports.bundle.redraw import Redraw
from poolproof.reports.bundle.verification import unpacked
from poolproof.reports.commands import merge_with, verify_with
from poolproof.reports.figures.digest import Digest, judging_day, waivers_of
from poolproof.reports.rows.checks import DIAGNOSIS
from poolproof.reports.rows.failures import failure_text
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import having, read_rows
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import FAILED, JUDGED, BadInput, Overall
from poolproof.reports.terminal.command_line import PATH, SECONDS, give_up
from poolproof.reports.terminal.painting import console, ending
from poolproof.reports.waivers import Waivers
from poolproof.suites import completion
from poolproof.suites.isolation.environment import set_libraries
from poolproof.suites.isolation.sandbox import Sandbox
from poolproof.suites.judging.budget import allow_free_memory
from poolproof.suites.judging.evidence import contradiction
from poolproof.suites.judging.question import Question
from poolproof.suites.options import sources_option
from poolproof.suites.plan.known import record_problems, row_problem
from poolproof.suites.plan.lines import further_question_of
from poolproof.suites.plan.selection import mandatory, plan_cases, redraw, redraw_further, redraw_questions

REDRAW = Redraw(redraw, mandatory, plan_cases, redraw_further, record_problems, row_problem, contradiction)

merge = merge_with(mandatory)
verify = verify_with(REDRAW)

_KEY = ("backend", "block", "case_id")
_COMPARED = ("operator", "aspect", "case", "verdict", "checks_judged", "checks_violated", "output_digest")
"""Columns that identify a row, and those that are looked at."""


class NothingToSample(BadInput):
    """The bundle has no judged case that could be judged again."""


@dataclass(frozen=True)
class Rejudged:
    """A case judged twice: its row in the bundle and here; ``differs`` says how, empty if the verdicts agree.

    ``other_bits``: whether a deterministic call gave other bits than in the bundle.
    """

    before: Row
    now: Row
    differs: str
    other_bits: bool


def sample(digest: Digest, number: int, seed: int) -> list[Row]:
    """Draw so many of the judged rows, or all if there are fewer, uniformly; ordered by block."""
    rows = read_rows(digest.folder, [*_KEY, *_COMPARED], having("verdict", JUDGED))
    if not rows.num_rows:
        raise NothingToSample("the run in the bundle has judged no case")
    chosen = random.Random(seed).sample(range(rows.num_rows), min(number, rows.num_rows))
    return rows.take(sorted(chosen)).to_pylist()


def rejudge(digest: Digest, rows: Sequence[Row], backend: str | None, timeout: float) -> Iterator[Rejudged]:
    """Judge rows again, on ``backend`` or on those that the run names."""
    waivers = Waivers(waivers_of(digest.run), min(judging_day(digest.run), date.today()))
    by_backend: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_backend[row["backend"] if backend is None else backend].append(row)
    for name, theirs in by_backend.items():
        with tempfile.TemporaryDirectory() as scratch:
            sandbox = Sandbox(name, Path(scratch), "rerun", timeout)
            environment = sandbox.start().environment
            try:
                questions = _questions(digest.run, theirs)
                for before, now in zip(theirs, sandbox.judge(questions), strict=True):
                    now = waivers.apply(now, environment) if backend is None else now
                    there, here = _verdict_text(before), _verdict_text(now)
                    differs = f"{there} in the bundle, {here} here" if there != here else ""
                    yield Rejudged(before, now, differs, _has_other_bits(before, now))
            finally:
                sandbox.close()


def _questions(run: Mapping[str, Any], rows: Sequence[Row]) -> list[Question]:
    """Return the questions of rows, in their order; planned ones are redrawn."""
    found: dict[tuple[str, ...], Question] = {}
    found |= {_key(row): further_question_of(row) for row in rows if row["aspect"] == DIAGNOSIS}
    planned = {(row["backend"], row["block"]) for row in rows if row["aspect"] != DIAGNOSIS}
    for backend, block, questions in redraw_questions(run, planned):
        found |= {(backend, block, each.id): each for each in questions}
    for row in rows:
        if _key(row) not in found:
            raise NothingToSample(f"case {row['case_id']} is not part of the plan that the run names")
    return [found[_key(row)] for row in rows]


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in _KEY)


def _has_other_bits(before: Row, now: Row) -> bool:
    digests = before["output_digest"], now.get("output_digest")
    repeats = "repeat" in (before["checks_judged"] or ()) and "repeat" in (now.get("checks_judged") or ())
    return repeats and None not in digests and digests[0] != digests[1]


def _verdict_text(row: Row) -> str:
    violated = ", ".join(row.get("checks_violated") or ())
    return f"{row['verdict']} ({violated})" if violated else row["verdict"]


@click.command()
@click.argument("bundle", type=PATH)
@click.option("--sample", "number", type=click.IntRange(1), default=100, show_default=True, help="How many cases.")
@click.option("--backend", type=completion.BACKEND, help="Backend to judge on [default: those that the run names].")
@click.option("--aclnn-library", "libraries", multiple=True, metavar="PATH", help="As for pytest; repeatable.")
@sources_option
@click.option("--seed", type=int, help="Draw the sample that this number gave before.")
@click.option("--timeout", type=SECONDS, default=60.0, show_default=True)
def rerun(
    bundle: Path, number: int, backend: str | None, libraries: tuple[str, ...], seed: int | None, timeout: float
) -> None:
    """Draw cases of a BUNDLE at random and judge them again on this machine.

    Exits with 0 when all verdicts agree, with 1 when one does not.
    """
    allow_free_memory()
    set_libraries(libraries)
    seed = secrets.randbelow(1 << 32) if seed is None else seed
    with unpacked(bundle) as digest:
        try:
            judged = list(rejudge(digest, sample(digest, number, seed), backend, timeout))
        except (BackendUnavailable, UnknownBackend) as error:
            give_up(str(error))
    _report(judged, seed)


def _report(judged: Sequence[Rejudged], seed: int) -> NoReturn:
    """Print what differs, and exit with the overall verdict.

    Other bits are counted, but are no disagreement: another machine may add in another admissible order.
    """
    out = console()
    differing = [again for again in judged if again.differs]
    for again in differing:
        out.print(Text(f"case {again.before['case_id']} of {again.before['operator']}: {again.differs}", style="red"))
        if again.now["verdict"] in FAILED:
            out.print(Text(failure_text(again.now)), soft_wrap=True)
    overall = Overall.VIOLATES if differing else Overall.CONFORMS
    bits = sum(again.other_bits for again in judged)
    counts = f"{len(differing):,} with another verdict, {bits:,} with other bits"
    words = f"{count_of(len(judged), 'case')} judged again, {counts}"
    out.print(
        ending("disagrees" if differing else "agrees", overall, f"{words} (sample --seed {seed})"), soft_wrap=True
    )
    sys.exit(overall)
