"""The compiled sums and criterion against the specification, on many small cases.

    python studies/exact_criterion.py [--cases 20000]

Prints how many candidates were held against it, and fails with the first that disagrees.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1] / "meta_tests" / "support"))

from definition import hold_candidates, hold_sums


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
