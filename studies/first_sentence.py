"""Truth of the first sentence of a short red run, on cases that nobody had seen when it was said.

    python studies/first_sentence.py [--seed 36] [--defects 12] [--cases 16] [--fresh 2000] [--diagnose 5] [DEFECT...]

A defect is asked one aspect of one operator at a time, --cases cases in each pair of dtypes, in an order that is drawn,
until three fail: as somebody sees it who tries a kernel. Further cases are asked, as at the end of a session. The
condition of the first sentence is then held against fresh cases of all that it speaks of, of another seed: those that
fail with the defect and not without it, and those that conform though they were held to a check that it breaks.
Told are the share of the failing ones that the condition covers, and of the covered ones that fail; a sentence is false
if most of these conform. Without names as many defects are drawn as --defects says. Exits with 1 if one is false.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from poolproof.backends.emulator.defects import VARIABLE, defects
from poolproof.reports.clusters import NEEDED, FailureCluster, cluster_failures, describe
from poolproof.reports.clusters.clustering import open_clusters
from poolproof.reports.rows.checks import SURVIVAL
from poolproof.reports.rows.features import features_of
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.score.hunt import HONEST, backend_name
from poolproof.suites.isolation.survey import survey
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.aspects import ASPECTS, CASE_ASPECTS
from poolproof.suites.plan.blocks import CaseBlock
from poolproof.suites.plan.plans import Plan, Survey, blocks
from poolproof.suites.run.diagnosis import narrow_down
from poolproof.suites.run.sandbox import Sandbox

LEAST = 3
"""Failing cases of a run that is red enough to have a condition."""

MOST_HANGS = 6
"""Time-outs after which a defect is asked no more: each takes seconds."""


def answers(sandbox: Sandbox, questions: Sequence[Question]) -> Iterator[Row]:
    hangs = 0
    for row in sandbox.judge(questions):
        yield {name: row.get(name) for name in NEEDED}
        hangs += row["verdict"] == Verdict.TIMED_OUT
        if hangs > MOST_HANGS:
            return


@contextmanager
def emulator(product: str, defect: str) -> Iterator[Sandbox]:
    """Judge on the emulator with a defect; it reads that once, when it is loaded."""
    os.environ[VARIABLE] = defect
    with TemporaryDirectory() as scratch:
        sandbox = Sandbox(backend_name(product), Path(scratch), "study", 5.0)
        try:
            yield sandbox
        finally:
            sandbox.close()
            del os.environ[VARIABLE]


@cache
def surveyed(product: str) -> Survey:
    return survey(backend_name(product))


def short_runs(product: str, cases: int, lots: random.Random) -> Iterator[tuple[str, list[Question]]]:
    """Yield what is asked of one operator in one aspect, by a name, in a drawn order."""
    subjects = [each for each in surveyed(product).subjects if each.unsupported is None]
    pairs = sorted({(each.operator.name, aspect) for each in subjects for aspect in ASPECTS})
    for operator, aspect in lots.sample(pairs, len(pairs)):
        own = [each for each in subjects if each.operator.name == operator]
        asked = list(blocks(own, [ASPECTS[aspect]], Plan("short", cases, ""), 0))
        if 0 < sum(block.count for block in asked) <= MOST_ASKED:
            yield f"{operator}, {aspect}", [question for block in asked for question in block.questions()]


MOST_ASKED = 400
"""Cases of a run that is short; large lists are none."""


@cache
def fresh_cases(product: str, number: int, seed: int, scope: tuple[tuple[str, str], ...]) -> Sequence[Question]:
    """Draw cases of the operators, dtypes and aspects in scope; none of a list, which is the same for every seed."""
    of = dict(scope)
    aspects = [aspect for aspect in CASE_ASPECTS.values() if aspect.id == of.get("aspect", aspect.id)]
    subjects = [
        each
        for each in surveyed(product).subjects
        if (each.operator.name, each.dtype) == (of.get("operator", each.operator.name), of.get("dtype", each.dtype))
    ]
    each = 12 if "aspect" not in of else number // max(sum(subject.unsupported is None for subject in subjects), 1)
    cheap = [aspect for aspect in aspects if not aspect.costly]
    drawn = blocks(subjects, cheap, Plan("fresh", each, ""), seed)
    asked = [question for block in drawn if isinstance(block, CaseBlock) for question in block.questions()]
    return random.Random(seed).sample(asked, min(number, len(asked)))


def answered(product: str, defect: str, asked: Sequence[Question]) -> list[Row]:
    with emulator(product, defect) as sandbox:
        return list(answers(sandbox, asked))


@cache
def failing_without(product: str, number: int, seed: int, scope: tuple[tuple[str, str], ...]) -> Collection[str]:
    rows = answered(product, HONEST, fresh_cases(product, number, seed, scope))
    return {row["case_id"] for row in rows if row["verdict"] in FAILED}


def covers(cluster: FailureCluster, row: Row) -> bool:
    """Tell whether a row is of what the sentence speaks and meets the condition; a feature that it lacks meets none."""
    values = features_of(row)
    return all(row[column] == value for column, value in cluster.scope) and all(
        term.feature in values and term.is_met_by(values[term.feature]) for term in cluster.terms
    )


def shares(cluster: FailureCluster, rows: Sequence[Row], without: Collection[str]) -> tuple[int, int, int]:
    """Count the fresh cases that fail, those that the condition covers, and those that do both."""
    broken = {check for (_, check), _ in cluster.kinds}
    failing = [row for row in rows if row["verdict"] in FAILED and row["case_id"] not in without]
    conforming = [
        row
        for row in rows
        if row["verdict"] == Verdict.CONFORMS
        and (SURVIVAL in broken or not broken.isdisjoint(row["checks_judged"] or ()))
    ]
    met = sum(covers(cluster, row) for row in failing)
    return len(failing), met + sum(covers(cluster, row) for row in conforming), met


def of_a_short_run(defect: str, cases: int, seconds: float, seed: int) -> tuple[str, FailureCluster | None]:
    """Ask a defect a short run, and further cases; return what was asked, and what is told first."""
    product = defects()[defect].products[0]
    with emulator(product, defect) as sandbox:
        for name, asked in short_runs(product, cases, random.Random(f"{seed} {defect}")):
            rows = list(answers(sandbox, asked))
            what = f"{name}, {len(rows)} cases"
            if sum(row["verdict"] in FAILED for row in rows) >= LEAST:
                break
        else:
            return f"no short run fails {LEAST} cases", None

        def ask(question: CaseQuestion, _backend: str) -> Row:
            rows.extend(answers(sandbox, [question]))
            return rows[-1]

        def inquiries() -> list[FailureCluster]:
            return open_clusters(cluster_failures(rows))

        if seconds:
            narrow_down(inquiries, ask, surveyed(product).subjects, seconds, lambda _: None, set())
    first, *_ = cluster_failures(rows)
    return what, first


def is_false(defect: str, what: str, first: FailureCluster | None, fresh: int, seed: int) -> bool:
    """Print what is told first of a defect, and what of it holds; return whether it is false."""
    product = defects()[defect].products[0]
    print(f"{defect} ({what}): {describe(first) if first else 'nothing'}", flush=True)
    for line in first.probed if first else ():
        print(f"    {line}", flush=True)
    if first is None:
        return False
    if not first.terms:
        print("    no condition is claimed", flush=True)
        return False
    rows = answered(product, defect, fresh_cases(product, fresh, seed + 1, first.scope))
    failing, covered, both = shares(first, rows, failing_without(product, fresh, seed + 1, first.scope))
    mostly_conform = both * 2 < covered
    counts = f"{both} of {failing} failing ones covered, {both} of {covered} covered ones fail"
    print(f"    of {len(rows)} fresh cases {counts}{': FALSE' if mostly_conform else ''}", flush=True)
    return mostly_conform


@click.command()
@click.option("--seed", default=36, show_default=True, help="draws defects and runs; the next one fresh cases")
@click.option("--defects", "number", default=12, show_default=True, help="how many are drawn")
@click.option("--cases", default=16, show_default=True, help="of an operator, dtypes and aspect in a short run")
@click.option("--fresh", default=2_000, show_default=True, help="fresh cases")
@click.option("--diagnose", "seconds", default=5.0, show_default=True, help="seconds for further cases of a suspect")
@click.argument("names", nargs=-1)
def main(names: tuple[str, ...], seed: int, number: int, cases: int, fresh: int, seconds: float) -> None:
    false = []
    for name in names or random.Random(seed).sample(sorted(defects()), number):
        what, first = of_a_short_run(name, cases, seconds, seed)
        if is_false(name, what, first, fresh, seed):
            false.append(name)
    print(f"{len(false)} false: {', '.join(false) or 'none'}")
    sys.exit(bool(false))


if __name__ == "__main__":
    main()
