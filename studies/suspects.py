"""Suspects per cause on seeded defects, and whether the first names the condition of the defect.

    python studies/suspects.py FOLDER [--diagnose 10] [--rounds 2] [--table FILE] [DEFECT...]

Every seeded defect is asked the smoke plan on the product that it is at home on, with no stop at the first find and no
smaller cases: a first share of all that a round asks, and of what is left what is about the operators that failed,
until `MANY` cases have. The rounds after the first are for defects that have failed fewer than `ENOUGH`. Then
further cases are asked, as at the end of a session. One cause should make one suspect, whose sentence names what brings
it about (`triggers`).

FOLDER keeps the rows of each defect, and what was told of them, a line of JSON each: what is there is not done again.
Without ``told.jsonl`` there, all is told anew from the rows, those of further cases among them. Defects that fail fewer
than ``--least`` cases are counted apart: nothing can be claimed of them. Exits with 1 if the honest emulator has a
suspect.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import click
import pandas as pd

from poolproof.backends.emulator.defects import VARIABLE, defects
from poolproof.reports.clusters import NEEDED, FailureCluster, cluster_failures, kinds_of
from poolproof.reports.clusters.clustering import open_clusters
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.score.hunt import HONEST, backend_name
from poolproof.score.questions import Round, rounds
from poolproof.suites.isolation.survey import survey
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.plans import PLANS, Subject, Survey
from poolproof.suites.run.diagnosis import narrow_down
from poolproof.suites.run.sandbox import Sandbox
from triggers import TRIGGERS

ENOUGH, MANY = 12, 80
"""Failing cases after which no further round is asked, and nothing more of a round."""

_AT_ONCE = 150
"""Questions that are asked until the failing cases are counted again."""

_OF_ALL = 4
"""A share of one in so many of a round is asked of every operator."""

_MOST_HANGS = 6
"""Time-outs after which a defect is asked no more of a round: each takes seconds."""


@dataclass(frozen=True)
class Told:
    """A suspect as it is kept."""

    sentence: str
    terms: tuple[str, ...]
    fails: str
    has_condition: bool
    is_exact: bool
    cases: int

    @classmethod
    def of(cls, suspect: FailureCluster) -> Told:
        terms = tuple(map(str, suspect.terms))
        fails = kinds_of(suspect)
        return cls(suspect.sentence, terms, fails, suspect.has_condition, suspect.is_exact, len(suspect.cases))


@dataclass(frozen=True)
class Result:
    """The suspects of one defect, ``before`` and after (``found``) so many ``further`` cases."""

    defect: str
    product: str
    rows: int
    failing: int
    further: int
    before: tuple[Told, ...]
    found: tuple[Told, ...]
    seconds: float

    @classmethod
    def read(cls, line: str) -> Result:
        record = json.loads(line)
        told = {
            name: tuple(Told(**each | {"terms": tuple(each["terms"])}) for each in record[name])
            for name in ("before", "found")
        }
        return cls(**record | told)

    @property
    def claimed(self) -> str:
        """The sentence of the first suspect, empty without."""
        return self.found[0].sentence if self.found else ""

    def names_trigger(self, found: Sequence[Told]) -> bool | None:
        """None for a defect whose trigger is no condition on the call."""
        trigger = TRIGGERS.get(self.defect)
        if trigger is None:
            return None
        return bool(found) and trigger.is_named_by(found[0].terms, found[0].fails)

    def line(self) -> str:
        named = {None: "-", True: "yes", False: "NO"}[self.names_trigger(self.found)]
        counts = f"{self.failing} of {self.rows} fail, further {self.further}, {self.seconds:.0f} s"
        return f"{self.defect or self.product}: {counts}, suspects {len(self.found)}, named {named}: {self.claimed}"


class Judged:
    """The rows of a defect, the further ones among them."""

    def __init__(self, rows: list[Row], sandbox: Sandbox, subjects: Sequence[Subject]) -> None:
        self._sandbox, self._subjects = sandbox, subjects
        self.rows = rows

    def ask_further(self, question: CaseQuestion, _backend: str) -> Row:
        self.rows += map(_needed, self._sandbox.judge([question]))
        return self.rows[-1]

    def suspects(self) -> tuple[FailureCluster, ...]:
        return cluster_failures(pd.DataFrame(self.rows))

    def diagnose(self, found: tuple[FailureCluster, ...], seconds: float) -> tuple[FailureCluster, ...]:
        """Describe them after further cases."""
        known = found

        def inquiries() -> list[FailureCluster]:
            nonlocal known, found
            found, known = known or self.suspects(), ()
            return open_clusters(found)

        narrow_down(inquiries, self.ask_further, self._subjects, seconds, lambda _: None, set())
        return self.suspects()


def told_of(defect: str, product: str, judged: Judged, further: list[Row] | None, seconds: float) -> Result:
    """With the ``further`` cases that were asked before, else with such as are asked now."""
    begun, planned, failing = time.process_time(), len(judged.rows), _failing(judged.rows)
    before = found = judged.suspects()
    if further is not None:
        judged.rows += further
        found = judged.suspects()
    elif failing and seconds:
        found = judged.diagnose(before, seconds)
    told = tuple(map(Told.of, before)), tuple(map(Told.of, found))
    return Result(defect, product, planned, failing, len(judged.rows) - planned, *told, time.process_time() - begun)


class Rounds:
    """The questions of a plan for some products, drawn as far as somebody wants them."""

    def __init__(self, surveys: dict[str, Survey], most: int) -> None:
        self._left = islice(rounds(surveys, PLANS["smoke"], 0, 1), most)
        self._drawn: list[Round] = []

    def of(self, product: str) -> Iterator[Sequence[Question]]:
        number = 0
        while number < len(self._drawn) or self._draws():
            yield self._drawn[number].questions[product]
            number += 1

    def _draws(self) -> bool:
        drawn = next(self._left, None)
        self._drawn += [drawn] if drawn is not None else []
        return drawn is not None


def rows_of(sandbox: Sandbox, asked: Iterator[Sequence[Question]]) -> list[Row]:
    """Answers to a first share of each round, and to what else it asks of operators that failed, until many have."""
    rows: list[Row] = []
    for questions in asked:
        share = len(questions) // _OF_ALL
        rows += answers(sandbox, questions[:share])
        operators = {row["operator"] for row in rows if row["verdict"] in FAILED}
        others = [each for each in questions[share:] if not operators or each.describe()["operator"] in operators]
        while others and _failing(rows) < MANY:
            rows += answers(sandbox, others[:_AT_ONCE])
            del others[:_AT_ONCE]
        if _failing(rows) >= ENOUGH:
            break
    return rows


def answers(sandbox: Sandbox, questions: Sequence[Question]) -> Iterator[Row]:
    hangs = 0
    for row in sandbox.judge(questions):
        yield _needed(row)
        hangs += row["verdict"] == Verdict.TIMED_OUT
        if hangs > _MOST_HANGS:
            return


def _needed(row: Row) -> Row:
    return {name: row.get(name) for name in NEEDED}


def _failing(rows: Sequence[Row]) -> int:
    return sum(row["verdict"] in FAILED for row in rows)


@contextmanager
def emulator(product: str, defect: str, timeout: float) -> Iterator[Sandbox]:
    """Judges on the emulator with a defect; it reads that once, when it is loaded."""
    os.environ[VARIABLE] = defect
    with tempfile.TemporaryDirectory() as scratch:
        sandbox = Sandbox(backend_name(product), Path(scratch), "study", timeout)
        try:
            yield sandbox
        finally:
            sandbox.close()
            del os.environ[VARIABLE]


def kept(file: Path) -> list[Row] | None:
    if not file.exists():
        return None
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def keep(file: Path, rows: Sequence[Row]) -> None:
    aside = file.with_suffix(".part")
    with gzip.open(aside, "wt", encoding="utf-8", compresslevel=3) as lines:
        lines.writelines(f"{json.dumps(row)}\n" for row in rows)
    aside.replace(file)


def say(results: Sequence[Result], least: int) -> None:
    shown = [each for each in results if each.failing >= least]
    triggers = [each for each in shown if each.defect in TRIGGERS]
    click.echo(f"{len(shown)} defects fail {least} cases or more, {len(triggers)} by a condition on the call")
    for begin, told in (("", "before"), ("with further cases: ", "found")):
        found = [getattr(each, told) for each in shown]
        one, few = (sum(len(each) <= most for each in found) for most in (1, 2))
        exact = sum(bool(each) and each[0].is_exact for each in found)
        named = sum(bool(each.names_trigger(getattr(each, told))) for each in triggers)
        click.echo(f"{begin}one suspect {one}, at most two {few}; first one exact {exact}; trigger named {named}")
    few = [each for each in results if each.failing < least]
    told = [each.defect for each in few if any(suspect.has_condition for suspect in each.found)]
    click.echo(f"fewer: {', '.join(f'{each.defect} ({each.failing})' for each in few) or 'none'}")
    click.echo(f"of these with a condition all the same: {', '.join(told) or 'none'}")


def markdown(results: Sequence[Result], least: int) -> Iterator[str]:
    """Yield a line for each defect that fails enough, ordered by name."""
    yield "| defect | what brings it about | as a condition | failing | suspects | the first | named |\n"
    yield "|---|---|---|--:|--:|---|---|\n"
    for each in sorted(results, key=lambda one: one.defect):
        if each.failing >= least:
            trigger = TRIGGERS.get(each.defect)
            named = {None: "", True: "yes", False: "no"}[each.names_trigger(each.found)]
            told = (defects()[each.defect].trigger, trigger.condition if trigger else "", each.claimed)
            cells = [text.replace("*", "\\*").replace("|", "\\|") for text in told]
            counts = f"{each.failing:,} | {len(each.found)}"
            yield f"| `{each.defect}` | {cells[0]} | {cells[1]} | {counts} | {cells[2]} | {named} |\n"


@click.command()
@click.option("--rounds", "most_rounds", default=1, help="of the smoke plan at most")
@click.option("--least", default=3, help="failing cases of a defect that counts")
@click.option("--diagnose", "seconds", default=0.0, help="seconds for further cases about each suspect")
@click.option("--table", type=click.Path(path_type=Path), help="file for a table in Markdown")
@click.option("--timeout", default=5.0, help="seconds for one case")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1)
def main(
    folder: Path,
    names: tuple[str, ...],
    most_rounds: int,
    least: int,
    seconds: float,
    table: Path | None,
    timeout: float,
) -> None:
    chosen = [defects()[name] for name in names or defects()]
    products = list(dict.fromkeys(defect.products[0] for defect in chosen))
    surveys = {product: survey(backend_name(product)) for product in products}
    asked = Rounds(surveys, most_rounds)
    folder.mkdir(parents=True, exist_ok=True)
    told = folder / "told.jsonl"
    lines = told.read_text().splitlines() if told.exists() else []
    done = {(each.defect, each.product): each for each in map(Result.read, lines)}
    wanted = [*((HONEST, product) for product in products), *((one.id, one.products[0]) for one in chosen)]
    for name, product in [each for each in wanted if each not in done]:
        with emulator(product, name, timeout) as sandbox:
            planned, further = (folder / f"{name or product}.{part}.gz" for part in ("rows", "further"))
            rows = kept(planned)
            if rows is None:
                rows = rows_of(sandbox, asked.of(product))
                keep(planned, rows)
            judged = Judged(rows, sandbox, surveys[product].subjects)
            done[name, product] = one = told_of(name, product, judged, kept(further), seconds)
            if seconds and not further.exists():
                keep(further, judged.rows[one.rows :])
        with told.open("a", encoding="utf-8") as end:
            end.write(json.dumps(asdict(done[name, product])) + "\n")
        print(done[name, product].line(), flush=True)
    results = [done[each] for each in wanted]
    say([each for each in results if each.defect], least)
    if table is not None:
        table.write_text("".join(markdown([each for each in results if each.defect], least)), encoding="utf-8")
    sys.exit(any(each.found for each in results if not each.defect))


if __name__ == "__main__":
    main()
