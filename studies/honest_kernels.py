"""Violations of an honest kernel, built in several ways: 0, or a check claims too much.

    python studies/honest_kernels.py [--minutes 10] [-n 2]

Kernels: the emulator as each product, and the emulator that adds in reverse, pairwise, in a new order with each launch
(a fixed one where determinism is asked for), and in the output's own precision, declared as such. Each judges
smoke plans of one seed after another until its time is up; every violation is printed with its case.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from itertools import count
from multiprocessing import get_context

import click

from poolproof.backends.emulator import library
from poolproof.backends.registry import create
from poolproof.reports.rows.verdicts import FAILED
from poolproof.score.hunt import backend_name
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, blocks, subjects

KERNELS = {
    "A2": ("A2", {}),
    "A3": ("A3", {}),
    "950": ("950", {}),
    "A2, reverse order": ("A2", {"POOLPROOF_EMULATOR_ORDER": "reverse"}),
    "950, pairwise": ("950", {"POOLPROOF_EMULATOR_ORDER": "pairwise"}),
    "A2, random order per launch": ("A2", {"POOLPROOF_EMULATOR_ORDER": "random"}),
    "950, native accumulation": ("950", {"POOLPROOF_EMULATOR_ACCUMULATION": "native"}),
    "A2, native accumulation, random order": (
        "A2",
        {"POOLPROOF_EMULATOR_ACCUMULATION": "native", "POOLPROOF_EMULATOR_ORDER": "random"},
    ),
}


@click.command()
@click.option("--minutes", default=10.0, show_default=True, help="For all kernels together.")
@click.option("--seed", default=0, show_default=True)
@click.option("-n", "workers", default=2, show_default=True)
def main(minutes: float, seed: int, workers: int) -> None:
    library()
    seconds = 60.0 * minutes * workers / len(KERNELS)
    judged: Counter[str] = Counter()
    violations = 0
    with get_context("fork").Pool(workers, maxtasksperchild=1) as pool:
        tasks = [(name, seed, seconds) for name in KERNELS]
        for name, verdicts, failures in pool.imap_unordered(judge_for, tasks):
            judged.update({name: sum(verdicts.values())})
            violations += len(failures)
            click.echo(f"{name}: {sum(verdicts.values()):,} cases, {len(failures)} violations ({dict(verdicts)})")
            for reason, case in failures[:5]:
                click.echo(f"  {reason}\n  {case}")
    click.echo(f"{sum(judged.values()):,} cases of {len(KERNELS)} kernels, {violations} violations")


def judge_for(task: tuple[str, int, float]) -> tuple[str, Counter[str], list[tuple[str, str]]]:
    """(kernel, verdicts, violations) of as many cases as fit into the time, one seed after another."""
    name, seed, seconds = task
    product, variation = KERNELS[name]
    os.environ.update(variation)
    backend = create(backend_name(product))
    deadline = time.monotonic() + seconds
    verdicts: Counter[str] = Counter()
    failures = []
    chosen = [aspect for aspect in CASE_ASPECTS.values() if not aspect.costly]
    for turn in count():
        planned = list(blocks(subjects(backend_name(product), backend), chosen, PLANS["smoke"], seed + turn))
        random.Random(turn).shuffle(planned)
        for block in planned:
            for question in block.questions():
                row = question.judge(backend)
                verdicts[row["verdict"]] += 1
                if row["verdict"] in FAILED:
                    failures.append((row["reason"], row["case"]))
                if time.monotonic() > deadline:
                    return name, verdicts, failures
    raise AssertionError("count() does not end")


if __name__ == "__main__":
    main()
