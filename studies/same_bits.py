"""Bits of two backends on the same cases, compared where exactly one value is right for both.

    python studies/same_bits.py [--left torch-cpu] [--right emulator-a2] [--cases 40]

Signs of zero and payloads of NaN do not count. Where a backend has no int64 indices, the case is asked with int32.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import click
import numpy as np

from poolproof.backends.base import Backend, Status
from poolproof.backends.registry import create
from poolproof.references.indices import FLAT
from poolproof.references.operators import OPERATORS, Operator
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import derive_seed, generate
from poolproof.suites.cases.strategies import cases as strategy_of
from poolproof.suites.judging.expected import unsupported
from poolproof.suites.judging.trial import Trial
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import Subject

DTYPES = ("float32", "float16", "bfloat16")


@click.command()
@click.option("--left", default="torch-cpu", show_default=True)
@click.option("--right", default="emulator-a2", show_default=True)
@click.option("--cases", default=40, show_default=True, help="Cases per operator, dtype and aspect.")
def main(left: str, right: str, cases: int) -> None:
    backends = [create(left), create(right)]
    counts: Counter[str] = Counter()
    for case in drawn(cases):
        counts += compared(case, backends)
    print(", ".join(f"{count:,} {what}" for what, count in sorted(counts.items())))
    print(f"{counts['cells that differ']} cells differ")
    raise SystemExit(counts["cells that differ"] > 0)


def drawn(count: int) -> Iterator[Case]:
    """Cases of every operator that both kinds of backends have, contiguous, for which values are judged."""
    for operator in OPERATORS.values():
        for dtype in DTYPES:
            for aspect in ("values", "precision", "special_values"):
                if operator.indices is FLAT and CASE_ASPECTS[aspect].covers(Subject("", operator, dtype, "int64")):
                    seed = derive_seed("same bits", operator.name, dtype, aspect)
                    yield from generate(
                        strategy_of(operator, dtype, "int64", CASE_ASPECTS[aspect].profile), count, seed
                    )


def compared(case: Case, backends: list[Backend]) -> Counter[str]:
    trials = []
    for backend in backends:
        index_dtype = supported_index_dtype(case.api, case.dtype, backend)
        if index_dtype is None:
            return Counter({"cases that one side does not have": 1})
        trials.append(Trial(replace(case, index_dtype=index_dtype), backend))
    if any(trial.baseline.outcome.status is not Status.COMPLETED for trial in trials):
        return Counter({"cases that one side refuses": 1})
    left, right = trials
    name = case.api.outputs[0]
    mine, theirs = (trial.baseline.output(name).astype(np.float64).ravel() for trial in trials)
    single_valued = np.ones(mine.shape, bool)
    if case.api.is_backward:
        single_valued = left.admissible.single_valued & right.admissible.single_valued
    differ = single_valued & (mine != theirs) & ~(np.isnan(mine) & np.isnan(theirs))
    if differ.any():
        cell = int(differ.argmax())
        print(f"cell {cell} is {mine[cell]!r} and {theirs[cell]!r}: {case.to_json()}")
    return Counter(
        {
            "cases compared": 1,
            "cells": mine.size,
            "cells with one right value": int(single_valued.sum()),
            "cells that differ": int(differ.sum()),
        }
    )


def supported_index_dtype(operator: Operator, dtype: str, backend: Backend) -> str | None:
    for index_dtype in ("int64", "int32"):
        if unsupported(backend, operator, dtype, index_dtype) is None:
            return index_dtype
    return None


if __name__ == "__main__":
    main()
