"""The cases of aspect `pairs`, drawn anew: for each operator those in which every pair of classes of factors meets.

    python studies/pairs.py [--seed 0] [--operator NAME]...

Takes some ten minutes, and is needed where a factor, a class or a rule has changed: a test tells. Untagged calls come
first, then tagged ones, then what products without dilation need besides the undilated of those.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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

ATTEMPTS = 12


def cases_of(operator: Operator, seed: int) -> Iterator[Case]:
    found: list[Case] = []
    for tags, product in SCOPES:
        coverage = FactorCoverage(Scope(operator, operator.indices.dtypes, tags, product))
        for case in found:
            coverage.add(row_of(case))
        found += Completion(coverage, "float32", seed, ATTEMPTS).cases(2)
        click.echo(f"{operator.name}: {len(found)} cases visit {coverage.meetings(2)}", err=True)
    return (replace(case, seed=number) for number, case in enumerate(found))


@click.command()
@click.option("--seed", default=0, show_default=True)
@click.option("--operator", "operators", multiple=True, type=click.Choice(list(OPERATORS)), help="Only these.")
def main(seed: int, operators: tuple[str, ...]) -> None:
    for operator in (OPERATORS[name] for name in operators or OPERATORS):
        lines = [f"{case.to_json()}\n" for case in cases_of(operator, seed)]
        file_of(operator).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
