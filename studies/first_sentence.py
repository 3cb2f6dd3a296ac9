"""Truth of the first sentence of a short red run, on cases that it has not seen.

    python studies/first_sentence.py [--seed 36] [--defects 12] [--cases 16] [--fresh 2000] [--diagnose 5] [DEFECT...]

A defect is tested like a new kernel: with one aspect of one operator at a time, --cases cases per pair of dtypes, in a
drawn order, until three fail. Further cases follow, as at the end of a session. The condition of the first sentence is
then tested on fresh cases in its scope, of another seed. These are cases that fail only with the defect, and cases that
conform though a broken check judged them.

It prints the share of the failing cases that the condition covers, and of the covered cases that fail. A sentence is
false if most covered cases conform. Without names --defects defects are drawn. Exits with 1 if a sentence is false.
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
"""Least failing cases of a run to have a condition."""

MOST_HANGS = 6
"""Timeouts after which a defect is not tested further: each takes seconds."""


def answers(sandbox: Sandbox, questions: Sequence[Question]) -> Iterator[Row]:
    hangs = 0
    for row in sandbox.judge(questions):
        yield {name: row.get(name) for name in NEEDED}
        hangs += row["verdict"] == Verdict.TIMED_OUT
        if hangs > MOST_HANGS:
            return


@contextmanager
def emulator(product: str, defect: str) -> Iterator[Sandbox]:
    """Judge on the emulator with a defect, which it reads only when it is loaded."""
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
    """Yield (name, questions in a drawn order) of one operator and aspect."""
    subjects = [each for each in surveyed(product).subjects if each.unsupported is None]
    pairs = sorted({(each.operator.name, aspect) for each in subjects for aspect in ASPECTS})
    for operator, aspect in lots.sample(pairs, len(pairs)):
        own = [each for each in subjects if each.operator.name == operator]
        own_blocks = list(blocks(own, [ASPECTS[aspect]], Plan("short", cases, ""), 0))
        if 0 < sum(block.count for block in own_blocks) <= MOST_ASKED:
            yield f"{operator}, {aspect}", [question for block in own_blocks for question in block.questions()]


MOST_ASKED = 400
"""Most cases of a short run; large lists are left out."""


@cache
def fresh_cases(product: str, number: int, seed: int, scope: tuple[tuple[str, str], ...]) -> Sequence[Question]:
    """Draw cases of the operators, dtypes and aspects in scope; not of lists, which are the same for every seed."""
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
    candidates = [question for block in drawn if isinstance(block, CaseBlock) for question in block.questions()]
    return random.Random(seed).sample(candidates, min(number, len(candidates)))


def answered(product: str, defect: str, questions: Sequence[Question]) -> list[Row]:
    with emulator(product, defect) as sandbox:
        return list(answers(sandbox, questions))


@cache
def failing_without(product: str, number: int, seed: int, scope: tuple[tuple[str, str], ...]) -> Collection[str]:
    rows = answered(product, HONEST, fresh_cases(product, number, seed, scope))
    return {row["case_id"] for row in rows if row["verdict"] in FAILED}


def covers(cluster: FailureCluster, row: Row) -> bool:
    """Tell whether a row is in the sentence's scope and meets the condition; a missing feature does not."""
    values = features_of(row)
    return all(row[column] == value for column, value in cluster.scope) and all(
        term.feature in values and term.is_met_by(values[term.feature]) for term in cluster.terms
    )


def shares(cluster: FailureCluster, rows: Sequence[Row], without: Collection[str]) -> tuple[int, int, int]:
    """Return the numbers of fresh cases that fail, that the condition covers, and that do both."""
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
    """Judge a short run of a defect, and further cases; return the run's name, and the first cluster."""
    product = defects()[defect].products[0]
    with emulator(product, defect) as sandbox:
        for name, questions in short_runs(product, cases, random.Random(f"{seed} {defect}")):
            rows = list(answers(sandbox, questions))
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
    """Print the first sentence about a defect, and how much of it is true; return whether it is false."""
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
