"""The rules of msprobe in `references/standards` compared with the package itself, on 36 made tensors.

    pip install mindstudio-probe==26.2.0 && python studies/msprobe_verdicts.py [--package FOLDER]

Judges the tensors with the package's two commands, acc_check and api_precision_compare, and prints where our verdict
differs. Exits with 1 if one does. FOLDER is the target of `pip install --target`.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import click
import numpy as np

from poolproof.references.criterion import scatter_sums
from poolproof.references.deviations import Deviations
from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, Float64, FloatFormat
from poolproof.references.standards import STANDARDS
from poolproof.references.standards.msprobe import Benchmark

POOLS = ("max_pool2d", "max_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d")
LEVELS = {**dict.fromkeys(POOLS, "L0"), "scatter_add_": "L1", "matmul": "L2"}
"""APIs, and their level in the package's list."""

WORDS = {True: "pass", False: "error", None: "warning"}

FAULTS: list[tuple[str, tuple[float, ...], Any, Any]] = [
    ("exact", (1.0, 1e-3), [], lambda right, _: right),
    ("largest lost", (1.0, 1e-3), None, lambda right, _: 0 * right),
    ("1 in 7 off", (1.0, 1e-3), slice(None, None, 7), lambda right, half_ulp: right * (1 + 8 * half_ulp)),
    ("two swapped", (1.0, 1e-3), [3, 4], lambda right, _: right[::-1]),
    ("all off, the second device, too", (1.0,), slice(None), lambda right, half_ulp: right * (1 + 3 * half_ulp)),
    ("a fifth lost", (1e-5,), slice(None, None, 5), lambda right, _: 0 * right),
    ("one NaN", (1.0,), [0], lambda right, _: right * np.nan),
    ("one inf", (1.0,), [0], lambda right, _: right + np.inf),
]
"""Name, scales of the values, cells (None: the largest value's), and their replacement."""


class Made(NamedTuple):
    name: str
    fmt: FloatFormat
    golden: Float64
    output: Float64
    second: Float64


def made(stream: np.random.Generator) -> Iterator[Made]:
    for fmt in (FLOAT16, BFLOAT16, FLOAT32):
        half_ulp = 2.0**-fmt.precision
        for name, scales, cells, change in FAULTS:
            for scale in scales:
                golden = FLOAT32.round(stream.uniform(-5, 5, 400) * scale)
                output = fmt.round(golden)
                second = fmt.round(output * (1 + 2 * half_ulp)) if "second" in name else output.copy()
                wrong = np.argmax(np.abs(output)) if cells is None else cells
                output[wrong] = fmt.round(change(output[wrong], half_ulp))
                yield Made(f"{fmt.name}, scale {scale:g}, {name}", fmt, golden, output, second)


def ours(tensor: Made) -> dict[tuple[str, str], str]:
    """Return our verdicts by method and API."""
    sums = scatter_sums(np.arange(tensor.golden.size), tensor.golden, tensor.golden.size)
    deviations = Deviations(tensor.output, sums, tensor.fmt, tensor.second)
    acc_check = STANDARDS["msprobe-acc-check"]
    verdicts = {("acc_check", api): acc_check.judge(deviations) for api in LEVELS}
    for api, level in LEVELS.items():
        verdicts["benchmark", api] = Benchmark(name=level, source="", level=level).judge(deviations)
    return {key: WORDS[verdict] for key, verdict in verdicts.items()}


def theirs(tensors: list[Made], folder: Path) -> dict[tuple[str, str], list[str]]:
    """Return the package's verdicts of the tensors by method and API, from the tables that it writes."""
    import torch
    from msprobe.pytorch.api_accuracy_checker.acc_check.acc_check_utils import UtDataInfo
    from msprobe.pytorch.api_accuracy_checker.compare import api_precision_compare
    from msprobe.pytorch.api_accuracy_checker.compare.compare import Comparator

    for name in ("output", "second"):
        comparator = Comparator(str(folder / f"{name}_verdicts.csv"), str(folder / f"{name}.csv"), False)
        for number, tensor in enumerate(tensors):
            dtype = getattr(torch, tensor.fmt.name)
            golden = torch.tensor(tensor.golden).to(torch.float64 if dtype is torch.float32 else torch.float32)
            data = UtDataInfo(None, None, [torch.tensor(getattr(tensor, name)).to(dtype)], [golden], None, None, "")
            for api in LEVELS:
                comparator.compare_output(f"Functional.{api}.{number}", data)
    tables = (str(folder / f"{name}.csv") for name in ("output", "second", "benchmark", "details"))
    api_precision_compare.api_precision_compare(api_precision_compare.CompareConfig(*tables))
    verdicts: dict[tuple[str, str], list[str]] = {}
    for method, table in ("acc_check", "output_verdicts.csv"), ("benchmark", "benchmark.csv"):
        with (folder / table).open(encoding="utf-8-sig", newline="") as file:
            for name, verdict, *_ in list(csv.reader(file))[1:]:
                verdicts.setdefault((method, name.split(".")[1]), []).append(verdict)
    return verdicts


@click.command()
@click.option("--package", type=click.Path(exists=True), help="Folder with the package.  [default: installed]")
def main(package: str | None) -> None:
    sys.path[:0] = [package] if package else []
    os.environ["MSPROBE_LOG_LEVEL"] = "3"  # errors only
    if find_spec("msprobe") is None:
        raise click.UsageError("msprobe is not there: pip install mindstudio-probe==26.2.0, or name its --package")
    tensors = list(made(np.random.default_rng(1)))
    mine = [ours(tensor) for tensor in tensors]
    with TemporaryDirectory() as scratch:
        their_verdicts = theirs(tensors, Path(scratch))
    differ = 0
    for method, api in mine[0]:
        pairs = zip(tensors, mine, their_verdicts[method, api], strict=True)
        different = [(tensor.name, own[method, api], its) for tensor, own, its in pairs if own[method, api] != its]
        click.echo(f"{method:9} {api:19} {len(tensors) - len(different)} of {len(tensors)} alike")
        for name, own, its in different:
            click.echo(f"  {name}: {own}, the package {its}")
        differ += len(different)
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
