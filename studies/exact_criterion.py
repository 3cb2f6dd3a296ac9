"""The compiled sums and criterion compared with the specification, on many small cases.

    python studies/exact_criterion.py [--cases 20000]

Prints the number of compared candidates, and fails with the first that disagrees.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1] / "meta_tests" / "support"))

from definition import hold_candidates, small_case
from poolproof.references import specification
from poolproof.references.kernels.numbers import NO_LATTICE
from poolproof.references.kernels.sums import NAN, NEGATIVE_INFINITY, POSITIVE_INFINITY


def hold_sums(number: int) -> None:
    _, _, cells, sums = small_case(number)
    for cell, terms in enumerate(cells):
        facts = specification.summed(terms)
        assert sums.k[cell] == facts.k
        assert sums.sum[cell] == float(facts.exact)
        assert sums.residue[cell] == float(facts.exact - Fraction(sums.sum[cell]))
        assert Fraction(sums.positive[cell]) >= facts.positive
        assert Fraction(sums.negative[cell]) >= facts.negative
        assert sums.lattice[cell] == (NO_LATTICE if facts.lattice is None else facts.lattice)
        kinds = {
            NAN: any(map(math.isnan, terms)),
            POSITIVE_INFINITY: math.inf in terms,
            NEGATIVE_INFINITY: -math.inf in terms,
        }
        assert sums.kinds[cell] == sum(kind for kind, lands in kinds.items() if lands)


@click.command()
@click.option("--cases", default=20_000, show_default=True)
def main(cases: int) -> None:
    candidates = 0
    for number in range(cases):
        hold_sums(number)
        candidates += hold_candidates(number)
    click.echo(
        f"{cases:,} cases of eight cells: every sum exact, {candidates:,} candidates judged as the specification does"
    )


if __name__ == "__main__":
    main()
