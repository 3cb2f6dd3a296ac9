"""Recorded results of the operator library's kernels, held against what their sources give today.

    python studies/kernel_sources.py --sources ops-nn [--product A2] [--dtype float32] [--every 1]

`meta_tests/golden/kernel_bits.jsonl.gz` has 2,249 cases, with the sha256 of grad_input as the kernels of ops-nn at
e5c3fa93 gave it on another model of Ascend C, cores and threads in their own order. Of a case the bits are the only
ones that the kernel can give, one of those that an order of additions gives, or undefined. The table counts by product
and template. Exits with 1 if bits differ that are the only ones.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click

from poolproof.backends.ascendc import SOURCES_VARIABLE
from poolproof.backends.base import Backend, Status
from poolproof.backends.registry import create, prepare
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.trial import Trial

RECORDED = Path(__file__).parents[1] / "meta_tests" / "golden" / "kernel_bits.jsonl.gz"
ON_950 = {
    "AdaptiveMaxPool2dBackward": "adaptive_max_pool3d_grad-950",
    "AdaptiveMaxPool3dBackward": "adaptive_max_pool3d_grad-950",
    "MaxPool2dWithIndicesBackward": "max_pool_grad_with_argmax_v3-950",
    "MaxPool3dWithArgmaxBackward": "max_pool3d_grad_with_argmax-950",
}


@click.command()
@click.option("--sources", type=click.Path(path_type=Path), required=True, help="A checkout of ops-nn.")
@click.option("--product", type=click.Choice(["A2", "950"]), help="Only its rows.")
@click.option("--dtype", help="Only its rows.")
@click.option("--every", default=1, show_default=True, help="Every n-th row.")
def main(sources: Path, product: str | None, dtype: str | None, every: int) -> None:
    os.environ[SOURCES_VARIABLE] = str(sources.absolute())
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in list(rows())[::every]:
        case = Case.from_json(json.dumps(row["case"]))
        if product in (None, row["product"]) and dtype in (None, case.dtype):
            counts[row["product"], row["route"].strip()].update(compared(row, case))
    print_table(counts)
    raise SystemExit(sum(count["differ, only"] for count in counts.values()) > 0)


def rows() -> Iterator[Mapping[str, Any]]:
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


@cache
def backend_of(product: str, route: str, operator: str, dtype: str) -> Backend:
    name = f"ascendc:ops-nn/{ON_950[operator] if product == '950' else route.partition(' ')[0] + '-a2'}"
    prepare(name, print, dtype)
    return create(name)


def compared(row: Mapping[str, Any], case: Case) -> list[str]:
    """Return what a row counts as: asked or not, and whether its bits are those that were recorded."""
    backend = backend_of(row["product"], row["route"], case.api.name, case.dtype)
    outcome = (run := Trial(case, backend).baseline).outcome
    if outcome.status is not Status.COMPLETED:
        return ["not asked"]
    bits = hashlib.sha256(run.output("grad_input").tobytes()).hexdigest()
    how = "same" if bits == row["sha256"] else "differ"
    seen = ["seen from inside"] if outcome.sanitizer else []
    return ["rows", f"{how}, {'only' if row['bits_are'] == 'only' else 'several'}", *seen]


def print_table(counts: Mapping[tuple[str, str], Counter[str]]) -> None:
    columns = ("rows", "same, only", "differ, only", "same, several", "differ, several")
    columns += ("seen from inside", "not asked")
    print(f"{'product and template':72s}", *columns, sep="  ")
    total: Counter[str] = Counter()
    for (product, template), count in sorted(counts.items()):
        total += count
        print(f"{product + ' ' + template:72s}", *(f"{count[name]:{len(name)}d}" for name in columns), sep="  ")
    print(f"{'all':72s}", *(f"{total[name]:{len(name)}d}" for name in columns), sep="  ")


if __name__ == "__main__":
    main()
