"""The cases of the aspects `pairs` and `triples`, drawn anew: for each operator those in which classes of factors meet.

    python studies/pairs.py [--seed 0] [--operator NAME]...

Takes some twenty minutes, and is needed where a factor, a class or a rule has changed: a test tells. Untagged calls
come first, then tagged ones, then what products without dilation need besides the undilated of those; in each of them
small calls, then what only large ones visit, and what is rare.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace
from math import inf

import click

from poolproof.references.operators import OPERATORS, Operator
from poolproof.references.products import PRODUCTS, Product
from poolproof.reports.rows.factors import Scope
from poolproof.reports.rows.meetings import FactorCoverage
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.completing import Completion, row_of
from poolproof.suites.cases.pairs import file_of

SCOPES: tuple[tuple[tuple[str, ...], Product | None], ...] = (((), None), (("NHWC",), None), ((), PRODUCTS["A2"]))
"""Tags and product of the calls that are completed, one behind the other."""

LARGE = 1 << 22
"""`cost_of` a case that is taken only where no smaller one visits what it does."""

ATTEMPTS = {2: 12, 3: 2}
"""For a pair, and for a triple, of which there are ten times as many."""
PERSISTENT = 6
"""How many times as many for the few that are left."""


def cases_of(operator: Operator, seed: int) -> Iterator[tuple[int, list[Case]]]:
    """Yield the cases of pairs, then those that visit triples besides, with how many classes meet in them."""
    found: list[Case] = []
    for size, attempts in ATTEMPTS.items():
        before = len(found)
        for tags, product in SCOPES:
            coverage = FactorCoverage(Scope(operator, operator.indices.dtypes, tags, product))
            for case in found:
                coverage.add(row_of(case))
            for most_cost, times in ((LARGE, 1), (inf, PERSISTENT)):
                found += Completion(coverage, "float32", seed, times * attempts, most_cost).cases(size)
            click.echo(f"{operator.name}: {len(found)} cases visit {coverage.meetings(size)}", err=True)
        yield size, [replace(case, seed=number) for number, case in enumerate(found[before:], before)]


@click.command()
@click.option("--seed", default=0, show_default=True)
@click.option("--operator", "operators", multiple=True, type=click.Choice(list(OPERATORS)), help="Only these.")
def main(seed: int, operators: tuple[str, ...]) -> None:
    for operator in (OPERATORS[name] for name in operators or OPERATORS):
        for size, cases in cases_of(operator, seed):
            lines = "".join(f"{case.to_json()}\n" for case in cases)
            file_of(operator, size).write_bytes(gzip.compress(lines.encode(), mtime=0))


if __name__ == "__main__":
    main()
