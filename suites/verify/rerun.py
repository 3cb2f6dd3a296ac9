"""The command ``rerun``, which judges some cases of a bundle again.

It is a counterparty's test: cases drawn at random are judged on another machine. Verdicts must agree, and for equal
bits also the statistics. If a call is deterministic, outputs with other bits are counted. The report says whether the
library is the same. It shows a deviation like a failure, with its cause and its replay line. A bundle names no code to
run: its backends are installed here, or come from the command line.
"""

from __future__ import annotations

import random
import secrets
import shlex
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from math import isclose
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn

import click
import pyarrow.compute as pc
from rich.console import Console
from rich.text import Text

from poolproof.backends.base import BackendUnavailable, UnknownBackend
from poolproof.backends.registry import is_installed
from poolproof.reports.bundle.account import identity
from poolproof.reports.bundle.unpacking import unpacked
from poolproof.reports.figures.digest import Digest, judging_day, waivers_of
from poolproof.reports.rows.checks import BESIDE_PLAN
from poolproof.reports.rows.environment import library_contents
from poolproof.reports.rows.failures import failure_text, replay_line
from poolproof.reports.rows.records import first_difference
from poolproof.reports.rows.schema import COLUMNS, Row
from poolproof.reports.rows.store import ROWS_PER_PART, stretches
from poolproof.reports.rows.text import count_of, visible, without_commands
from poolproof.reports.rows.verdicts import FAILED, JUDGED, BadInput, Overall, Verdict, gravest
from poolproof.reports.terminal.command_line import PATH, SECONDS, give_up
from poolproof.reports.terminal.painting import console, ending
from poolproof.reports.waivers import Waivers
from poolproof.suites.isolation.survey import surveyed
from poolproof.suites.judging.budget import allow_free_memory
from poolproof.suites.judging.question import Question
from poolproof.suites.options import BACKEND, library_options
from poolproof.suites.plan.lines import further_question_of
from poolproof.suites.plan.plans import Survey
from poolproof.suites.plan.selection import planned_rows
from poolproof.suites.run.repetition import attribute
from poolproof.suites.run.sandbox import Sandbox
from poolproof.suites.verify.blind import PlainCall, call_blind

_KEY = ("backend", "block", "case_id")
_key = itemgetter(*_KEY)

_NAMES = [column.name for column in COLUMNS]
# columns that follow from the bits of an output
_OF_BITS = (*_NAMES[_NAMES.index("n_reject") : _NAMES.index("output_digest")], "standards_passed", "standards_failed")
# columns that follow from call and backend, together with the model
_OF_DEVICE = ("backend", "product", "data", "route", "follows", "status_code", "checks_judged", "repeat_n")
# columns that follow from the call
_OF_CALL = (
    *(column.name for column in COLUMNS if column.made == "drawn" and column.name not in _OF_DEVICE),
    *("n", "n_single_valued"),
)

_NEAR = 1e-6
"""Largest relative difference of statistics of equal bits: the machine determines the order of their sums."""

NOT_COMPARED = "times, findings, smaller cases and, where bits differ, statistics"


@dataclass(frozen=True)
class Rejudged:
    """A case judged twice: its row in the bundle, and here; ``differs`` is the difference, empty if they agree.

    ``other_bits``: whether the call gave other bits than in the bundle.
    """

    before: Row
    now: Row
    differs: str
    other_bits: bool


def sample(digest: Digest, number: int, seed: int, failing: bool = False) -> list[Row]:
    """Draw ``number`` rows of cases uniformly, or all if there are fewer; with ``failing``, failed ones first."""
    has_block = pc.field("block") != ""
    held = {each: each.read(["block", "verdict"]).filter(has_block)["verdict"] for each in stretches(digest.folder)}
    verdicts = [verdict for each in held.values() for verdict in each.to_pylist()]
    if not verdicts:
        raise BadInput("the run in the bundle has no case")
    first = [place for place, verdict in enumerate(verdicts) if failing and verdict in FAILED]
    rest, drawn = sorted({*range(len(verdicts))} - {*first}), random.Random(seed)
    chosen = drawn.sample(first, min(number, len(first)))
    chosen += drawn.sample(rest, min(number - len(chosen), len(rest)))
    before, rows = 0, list[Row]()
    for stretch, count in ((stretch, len(each)) for stretch, each in held.items()):
        own = [place - before for place in sorted(chosen) if before <= place < before + count]
        rows += stretch.read().filter(has_block).take(own).to_pylist() if own else ()
        before += count
    return rows


def rejudge(
    digest: Digest, rows: Sequence[Row], backend: str | None, timeout: float, say: Callable[[str], object]
) -> Iterator[Rejudged]:
    """Judge rows again, on ``backend`` or on those that the run names, if they are installed under that name.

    ``say`` prints a line about each backend that differs from the judged one.
    """
    waivers = Waivers(waivers_of(digest.run), min(judging_day(digest.run), date.today()))
    by_backend: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_backend[row["backend"]].append(row)
    for judged, theirs in by_backend.items():
        name = judged if backend is None else backend
        if backend is None and not is_installed(name):
            raise BadInput(f"{name}, which the bundle names, is not installed: name it yourself, by --backend")
        survey, worker = surveyed(name)
        with tempfile.TemporaryDirectory() as scratch, closing(worker):
            for line in _other_than_judged(digest.run, judged, survey):
                say(line)
            sandbox = Sandbox(name, Path(scratch), "rerun", timeout, loaded=worker)
            questions = _questions(digest.run, theirs)

            def waive(row: Row, survey: Survey = survey, applies: bool = name == judged) -> Row:
                return waivers.apply(row, survey.environment) if applies else row

            def alone(question: Question, sandbox: Sandbox = sandbox, waive: Callable[[Row], Row] = waive) -> Row:
                return waive(sandbox.judge_alone(question))

            for before, question, row in zip(theirs, questions, sandbox.judge(questions), strict=True):
                now = _comparable(before, attribute(question, waive(row), alone)[0])
                yield Rejudged(before, now, _difference(before, now), _has_other_bits(before, now))


def _other_than_judged(run: Mapping[str, Any], judged: str, survey: Survey) -> Iterator[str]:
    """Yield the differences of a backend from the judged one: its declarations, chip and libraries."""
    recorded, here = run["selection"]["backends"][judged], survey.to_record()
    if difference := first_difference("", recorded, here):
        entry, was, now = difference
        yield f"another backend than {judged}: {entry.strip()} is {was!r:.80} in the bundle, {now!r:.80} here"
    environments = run["backends"][judged], survey.environment
    for name in ("soc", "device"):
        there, now = (each.get(name, "unknown") for each in environments)
        if there != now:
            yield f"another chip than {judged} had: {name} is {there} in the bundle, {now} here"
    before, after = library_contents(run["backends"][judged]), library_contents(survey.environment)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            there, now = (each.get(name, "not loaded")[:12] for each in (before, after))
            what = name.removeprefix("library ")
            yield f"another library than {judged} had: {what} is {there} in the bundle, {now} here"


def _given_otherwise(digest: Digest, judged: Sequence[Rejudged]) -> Iterator[str]:
    """Yield the backends with other variables and options here than in the bundle."""
    here: defaultdict[str, set[str]] = defaultdict(set)
    for again in judged:
        here[again.before["backend"]].add(shlex.join(again.now.get("given") or ()))
    for name, now in here.items():
        before = set(digest.given.get(name, [""]))
        if before != now:
            texts = ["; ".join(sorted(each)) or "nothing" for each in (before, now)]
            yield f"other variables than {name} had: it was given {texts[0]}, and here {texts[1]}"


def _is_of_another(before: Row, now: Row) -> bool:
    return any(before[name] != now[name] for name in ("backend", "product"))


def _comparable(before: Row, now: Row) -> Row:
    """Return the row of a case here, as not supported if only one of two backends may refuse it."""
    refused = [row["verdict"] == Verdict.REFUSED for row in (before, now)]
    if refused[0] == refused[1] or not _is_of_another(before, now) or now["verdict"] not in JUDGED - FAILED:
        return now
    where = "the bundle's" if refused[0] else "this"
    return now | {"verdict": Verdict.NOT_SUPPORTED, "reason": f"only the documents of {where} backend refuse it"}


def _difference(before: Row, now: Row) -> str:
    """Return the difference of a row from the bundle's; empty if none.

    Columns that follow from the call must be equal; for equal bits and models, also the statistics.
    """
    there, here = _verdict_text(before), _verdict_text(now)
    if now["verdict"] not in JUDGED or (before["verdict"] not in JUDGED and now["verdict"] not in FAILED):
        return ""
    if there != here:
        return f"{there} in the bundle, {here} here"
    is_alike = not _is_of_another(before, now)
    if is_alike and (different := _first_unlike(before, now, (*_OF_CALL, *_OF_DEVICE, "model"))):
        return different
    if before["model"] != now.get("model"):
        return _first_unlike(before, now, [name for name in _OF_CALL if name != "n_single_valued"])
    if different := _first_unlike(before, now, _OF_CALL):
        return different
    has_one_answer = before["verdict"] == Verdict.CONFORMS and now.get("n") == now.get("n_single_valued")
    if before["output_digest"] == now.get("output_digest") or has_one_answer:
        different = _first_unlike(before, now, _OF_BITS)
        return different and f"{different}, of the same bits"
    if before["output_digest"] is None or now.get("output_digest") is None:
        return f"output_digest is {before['output_digest']} in the bundle, {now.get('output_digest')} here"
    return ""


def _first_unlike(before: Row, now: Row, names: Iterable[str]) -> str:
    """Return the first column that differs, with its values; empty if none does."""
    for name in names:
        was, here = before[name], now.get(name)
        if not _is_alike(was, here):
            return f"{name} is {was!s:.200} in the bundle, {here!s:.200} here"
    return ""


def _is_alike(was: Any, here: Any) -> bool:
    if isinstance(was, list) and isinstance(here, list | tuple):
        return len(was) == len(here) and all(map(_is_alike, was, here))
    are_close = isinstance(was, float) and isinstance(here, float) and isclose(was, here, rel_tol=_NEAR)
    return are_close or bool(was == here)


def _questions(run: Mapping[str, Any], rows: Sequence[Row]) -> list[Question]:
    """Return the questions of rows, in their order; planned ones are drawn again."""
    question_of: dict[tuple[str, ...], Question] = {}
    question_of |= {_key(row): further_question_of(row) for row in rows if row["aspect"] in BESIDE_PLAN}
    keys = {(row["backend"], row["block"]): ROWS_PER_PART for row in rows if row["aspect"] not in BESIDE_PLAN}
    planned = planned_rows(run, keys)
    for key in keys.keys() & planned.keys():
        question_of |= {(*key, each.id): each for each in planned[key].questions()}
    for row in rows:
        if _key(row) not in question_of:
            raise BadInput(f"case {row['case_id']} is not part of the plan that the run names")
    return [question_of[_key(row)] for row in rows]


def _has_other_bits(before: Row, now: Row) -> bool:
    digests = before["output_digest"], now.get("output_digest")
    return None not in digests and digests[0] != digests[1]


def _verdict_text(row: Row) -> str:
    violated = ", ".join(row.get("checks_violated") or ())
    return f"{row['verdict']} ({violated})" if violated else row["verdict"]


@click.command()
@click.argument("bundle", type=PATH)
@click.option("--sample", "number", type=click.IntRange(1), default=100, show_default=True, help="How many cases.")
@click.option("--failing", is_flag=True, help="Draw failing cases first, others where there are not enough.")
@click.option("--backend", type=BACKEND, help="Backend to judge on [default: those that the run names].")
@library_options
@click.option(
    "--blind",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Make this many passing calls by a plain program as well: no guard bands, no poison, nothing of poolproof.",
)
@click.option("--seed", type=int, help="Draw the sample that this number gave before.")
@click.option("--timeout", type=SECONDS, default=60.0, show_default=True, help="Seconds that a case may take.")
def rerun(
    bundle: Path, number: int, failing: bool, backend: str | None, blind: int, seed: int | None, timeout: float
) -> None:
    """Draw cases of a BUNDLE at random and judge them again on this machine.

    Exits with 0 when all verdicts agree, with 1 when one does not, with 2 when some could not be judged here. Backends
    of modules and files are judged only where --backend names them.
    """
    allow_free_memory()
    others: list[str] = []
    seed = secrets.randbelow(1 << 32) if seed is None else seed
    with unpacked(bundle) as digest:
        try:
            judged = list(rejudge(digest, sample(digest, number, seed, failing), backend, timeout, others.append))
            given, what = list(_given_otherwise(digest, judged)), identity(digest)
        except (BackendUnavailable, UnknownBackend) as error:
            give_up(str(error))
    passing = [again.now for again in judged if again.now["verdict"] == Verdict.CONFORMS]
    random.Random(seed).shuffle(passing)
    _report(judged, call_blind(passing, blind, timeout), seed, what, [*others, *given])


def _show_plain(out: Console, calls: Sequence[PlainCall]) -> None:
    """Print the calls of a plain program that failed, or gave a wrong result."""
    for call in calls:
        how = f"but not in a plain program: {call.wrong}" if call.wrong else f"no plain program calls it: {call.failed}"
        case = f"case {call.row['case_id']} of {call.row['operator']} conforms, {how}"
        out.print(Text(without_commands(visible(case)), style="red" if call.wrong else "yellow"), soft_wrap=True)


def _plain_text(judged: Sequence[Rejudged], plain: Sequence[PlainCall]) -> str:
    """Return the number of plain calls, as the end of a clause; empty if no case passed."""
    if plain:
        wrong, failed = sum(bool(call.wrong) for call in plain), sum(bool(call.failed) for call in plain)
        return f"; {wrong:,} of {count_of(len(plain), 'plain call')} wrong, {failed:,} failed"
    return "; no plain call" if any(again.now["verdict"] == Verdict.CONFORMS for again in judged) else ""


def _report(
    judged: Sequence[Rejudged], plain: Sequence[PlainCall], seed: int, what: str, others: Sequence[str]
) -> NoReturn:
    """Print the differences, and exit with the overall verdict; ``what`` names the run in the bundle.

    Other bits are counted, but are not a disagreement: another machine may add in another admissible order.
    """
    out = console()
    for line in others:
        out.print(Text(without_commands(visible(line)), style="yellow"), soft_wrap=True)
    differing = [again for again in judged if again.differs]
    for again in differing:
        case = f"case {again.before['case_id']} of {again.before['operator']}: {again.differs}"
        out.print(Text(without_commands(visible(case)), style="red"))
        if again.now["verdict"] in FAILED:
            out.print(Text(failure_text(again.now)), soft_wrap=True)
        elif again.before["verdict"] in FAILED:
            out.print(Text(f"  {replay_line(again.now)}"), soft_wrap=True)
    wrong, failed = [call for call in plain if call.wrong], [call for call in plain if call.failed]
    _show_plain(out, [*wrong, *failed])
    unjudged = Counter(again.now["verdict"] for again in judged if again.now["verdict"] not in JUDGED)
    overall = gravest({Overall.VIOLATES: [*differing, *wrong], Overall.INCOMPLETE: [*unjudged, *failed]})
    counts = f"{len(differing):,} with another verdict, {sum(again.other_bits for again in judged):,} with other bits"
    counts += "".join(f", {number:,} {word}" for word, number in sorted(unjudged.items()))
    counts += _plain_text(judged, plain)
    whole = f"{len(judged) - unjudged.total():,} of " if unjudged else ""
    words = f"{whole}{count_of(len(judged), 'case')} judged again, {counts}"
    ended = "disagrees" if differing or wrong else "agrees as far as it was judged" if unjudged or failed else "agrees"
    if unjudged.total() == len(judged):
        ended = "nothing was judged"
    changed = ("another backend", "another library", "another chip", "other variables")
    ended += "".join(f", with {each}" for each in changed if any(line.startswith(f"{each} than ") for line in others))
    out.print(ending(ended, overall, f"{words} (sample --seed {seed}); the run in it: {what}"), soft_wrap=True)
    out.print(Text(f"not compared: {NOT_COMPARED}", style="dim"), soft_wrap=True)
    sys.exit(overall)
