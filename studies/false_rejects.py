"""False rejects of the criterion: correct kernels simulated for every model, in every order.

    python studies/false_rejects.py [--elements 1000000] [--seed 0]

Prints one line per dtype and model, and exits with 1 if anything was rejected.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "meta_tests" / "support"))

from distributions import DISTRIBUTIONS, draw_terms
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import admissible, scatter_sums
from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, FloatFormat
from simulated import ORDERS, simulate

MODELS = [
    AccumulationModel.parse(text)
    for text in (
        "acc32",
        "native",
        "mixed(2)",
        "mixed(4)",
        "acc32+ftz",
        "native+ftz",
        "acc32+cast-ftz",
        "acc32+saturate",
        "acc32+ftz+cast-ftz+saturate",
    )
]
MULTIPLICITIES = (1, 2, 3, 4, 5, 8, 9, 16, 25, 64, 100, 256, 1024, 4096)


@click.command()
@click.option(
    "--elements", default=1_000_000, show_default=True, help="Elements to judge for each dtype and model together."
)
@click.option("--seed", default=0, show_default=True)
def main(elements: int, seed: int) -> None:
    formats = (FLOAT32, FLOAT16, BFLOAT16)
    each = elements // (len(formats) * len(MODELS))
    total = rejected = 0
    for fmt in formats:
        for model in MODELS:
            judged, wrong, tolerant = measure(fmt, model, each, np.random.default_rng([seed, fmt.precision]))
            total, rejected = total + judged, rejected + wrong
            single = 1 - tolerant / judged
            click.echo(f"{fmt.name:9} {model!s:28} {judged:9,} judged {wrong:6,} rejected, one value {single:7.2%}")
    click.echo(f"{total:,} elements judged, {rejected:,} rejected, k up to {max(MULTIPLICITIES):,}")
    sys.exit(1 if rejected else 0)


def measure(
    fmt: FloatFormat, model: AccumulationModel, elements: int, rng: np.random.Generator
) -> tuple[int, int, int]:
    """Return the numbers of elements (judged, rejected, with a tolerance) for one model."""
    judged = rejected = tolerant = 0
    while judged < elements:
        k = int(rng.choice(MULTIPLICITIES))
        cells = max(4, min(2000, 100_000 // k))
        name, order = rng.choice(list(DISTRIBUTIONS)), str(rng.choice(ORDERS))
        terms = draw_terms(rng, str(name), (cells, k), fmt)
        outputs = simulate(terms, fmt, model, order, rng)
        allowed = admissible(scatter_sums(np.repeat(np.arange(cells), k), terms.ravel(), cells), fmt, model)
        judged += cells
        rejected += int((~allowed.accepts(outputs)).sum())
        tolerant += int((~allowed.single_valued).sum())
    return judged, rejected, tolerant


if __name__ == "__main__":
    main()
