"""What the interval and the standards of others see of known defects, and whom of the innocent they reject.

    python studies/detection.py [--repetitions 40]

One table per tensor: 16 planes of 32 x 32, windows of 3 x 3 with stride 1 and padding 1, gradients uniform in [-5, 5)
times a scale; a figure is the share of tensors that the rule fails. The first line of each block is a correct kernel,
where it should be 0. A second table is per element: how often the interval rejects the one element that is wrong.
Exits with 1 if the interval rejects a correct result, or passes a tensor whose defect it can see: one that differs
from every correct result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "meta_tests"))

from poolproof.references.accumulation import ACC32, NATIVE
from poolproof.references.criterion import acceptance
from poolproof.references.deviations import Deviations, sequential_sums
from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, FloatFormat
from poolproof.references.oracle import ExactSums, scatter_sums
from poolproof.references.standards import judge_all
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import contents
from simulated import ORDERS, simulate
from switchable_backend import round_by

STANDARDS = {
    "MERE/MARE 04": "ecosystem-2026-04",
    "mixed 07": "ecosystem-2026-07-fixed-limit",
    "mixed 09": "ecosystem-2026-09",
    "TTK close": "ttk-close",
    "assert_close": "torch-assert-close",
    "npu rtol": "npu-assert-rtol",
    "comm. L0": "commercial-l0-unguarded",
    "comm. L2": "commercial-l2-unguarded",
    "cann-bench": "cann-bench",
}
SCALES = {"1": 1.0, "1e-3": 1e-3, "1e-5": 1e-5}
HF32 = FloatFormat("hf32", 12, -126, 127, np.dtype(np.float32))
"""A float32 whose significands have 12 bits."""

Terms = tuple[np.ndarray, np.ndarray]
"""(cells, gradients) of all windows, each of shape (windows,)."""


def correct(cells: np.ndarray, terms: np.ndarray, size: int, fmt: FloatFormat, rng: np.random.Generator) -> np.ndarray:
    """Float32 accumulation in a random order."""
    order = rng.permutation(len(cells))
    return sequential_sums(cells[order], terms[order], size, fmt)


def _with(change: Callable[[np.ndarray, np.ndarray, int, np.random.Generator], Terms]) -> Callable[..., np.ndarray]:
    def kernel(cells, terms, size, fmt, rng):  # type: ignore[no-untyped-def]
        return sequential_sums(*change(cells, terms, size, rng), size, fmt)

    return kernel


def _lost(share: float) -> Callable[..., np.ndarray]:
    """That share of the gradients does not arrive; one does not if it is zero."""

    def change(cells, terms, size, rng):  # type: ignore[no-untyped-def]
        lost = rng.choice(len(cells), max(1, round(share * len(cells))), replace=False)
        return np.delete(cells, lost), np.delete(terms, lost)

    return _with(change)


def _duplicated(cells, terms, size, rng):  # type: ignore[no-untyped-def]
    which = rng.integers(len(cells))
    return np.append(cells, cells[which]), np.append(terms, terms[which])


def _misrouted(cells, terms, size, rng):  # type: ignore[no-untyped-def]
    moved = cells.copy()
    which = rng.integers(len(cells))
    moved[which] = (moved[which] + 1) % size
    return moved, terms


def _last_writer(cells, terms, size, rng):  # type: ignore[no-untyped-def]
    _, last = np.unique(cells[::-1], return_index=True)
    kept = len(cells) - 1 - last
    return cells[kept], terms[kept]


def _accumulating(accumulator: FloatFormat | None) -> Callable[..., np.ndarray]:
    """Every addition rounds to ``accumulator``, the output's own format if that is None."""

    def kernel(cells, terms, size, fmt, rng):  # type: ignore[no-untyped-def]
        if accumulator is not HF32:
            return sequential_sums(cells, terms, size, fmt, accumulator or fmt)
        total, rest = np.zeros(size), np.arange(len(cells))
        while len(rest):
            _, first = np.unique(cells[rest], return_index=True)
            now = rest[first]
            total[cells[now]] = HF32.round(total[cells[now]] + HF32.round(terms[now]))
            rest = np.delete(rest, first)
        return fmt.round(total)

    return kernel


def _narrowing(mode: str) -> Callable[..., np.ndarray]:
    def kernel(cells, terms, size, fmt, rng):  # type: ignore[no-untyped-def]
        sums = sequential_sums(cells, terms, size, FLOAT32)
        return np.where(sums == 0.0, sums, round_by(mode, sums, np.zeros(size), fmt))

    return kernel


def _zero(cells, terms, size, fmt, rng):  # type: ignore[no-untyped-def]
    return np.zeros(size)


DEFECTS: dict[str, tuple[Callable[..., np.ndarray], tuple[FloatFormat, ...]]] = {
    "none": (correct, (FLOAT32, FLOAT16, BFLOAT16)),
    "one lost": (_lost(0.0), (FLOAT32, FLOAT16, BFLOAT16)),
    "0.5 % lost": (_lost(0.005), (FLOAT32, FLOAT16, BFLOAT16)),
    "one duplicated": (_with(_duplicated), (FLOAT32, FLOAT16, BFLOAT16)),
    "one misrouted": (_with(_misrouted), (FLOAT32, FLOAT16, BFLOAT16)),
    "last writer wins": (_with(_last_writer), (FLOAT32, FLOAT16, BFLOAT16)),
    "all zero": (_zero, (FLOAT32, FLOAT16, BFLOAT16)),
    "native accumulation": (_accumulating(None), (FLOAT16, BFLOAT16)),
    "float16 accumulation": (_accumulating(FLOAT16), (FLOAT32,)),
    "bfloat16 accumulation": (_accumulating(BFLOAT16), (FLOAT32,)),
    "HF32 accumulation": (_accumulating(HF32), (FLOAT32, FLOAT16)),
    "truncating narrowing": (_narrowing("toward zero"), (FLOAT16, BFLOAT16)),
    "half-away narrowing": (_narrowing("half away from zero"), (FLOAT16, BFLOAT16)),
}
"""Kernels by their defect, and the outputs' formats that it makes sense in."""


def landing(repetition: int) -> tuple[np.ndarray, int]:
    """(cells, size) of one tensor, from the maxima of random data."""
    case = Case.of(
        operator="MaxPool2dWithIndicesBackward",
        shape=(1, 16, 32, 32),
        kernel_size=(3,),
        stride=(1,),
        padding=(1,),
        seed=repetition,
    )
    place = contents(case).landing
    return place.cells, place.size


def rejecting(outputs: np.ndarray, sums: ExactSums, terms: Terms, fmt: FloatFormat) -> dict[str, bool]:
    """Which rules fail ``outputs``."""
    second = sequential_sums(*terms, len(outputs), fmt)
    verdicts = judge_all(Deviations(outputs, sums, fmt, second=second), STANDARDS.values())
    said = {title: verdicts[name].passed is False for title, name in STANDARDS.items()}
    return said | {"interval": not acceptance(sums, fmt, ACC32).accepts(outputs).all()}


def tensors(fmt: FloatFormat, scale: float, repetitions: int) -> Iterator[tuple[str, float, dict[str, float]]]:
    """(defect, share of tensors whose bits it changes, share that each rule fails)."""
    rng = np.random.default_rng(7)
    counts: dict[str, dict[str, int]] = {}
    changed: dict[str, int] = {}
    for repetition in range(repetitions):
        cells, size = landing(repetition)
        terms = fmt.round(scale * (10.0 * rng.random(len(cells)) - 5.0))
        sums = scatter_sums(cells, terms, size)
        innocent = sequential_sums(cells, terms, size, fmt)
        for defect, (kernel, formats) in DEFECTS.items():
            if fmt in formats:
                outputs = kernel(cells, terms, size, fmt, rng)
                changed[defect] = changed.get(defect, 0) + (not np.array_equal(outputs, innocent))
                tally = counts.setdefault(defect, {})
                for rule, fails in rejecting(outputs, sums, (cells, terms), fmt).items():
                    tally[rule] = tally.get(rule, 0) + fails
    for defect, tally in counts.items():
        yield defect, changed[defect] / repetitions, {rule: count / repetitions for rule, count in tally.items()}


def tensor_table(repetitions: int) -> list[str]:
    """Print the first table; what must not be."""
    rules = [*STANDARDS, "interval"]
    wrong = []
    click.echo("| output, scale | defect | bits change | " + " | ".join(rules) + " |")
    click.echo("|---|---|" + "--:|" * (len(rules) + 1))
    for fmt in (FLOAT32, FLOAT16, BFLOAT16):
        for name, scale in SCALES.items():
            for defect, changed, shares in tensors(fmt, scale, repetitions):
                figures = " | ".join(f"{shares[rule]:.2f}" for rule in rules)
                click.echo(f"| {fmt.name} {name} | {defect} | {changed:.2f} | {figures} |")
                if defect == "none" and shares["interval"] > 0.0:
                    wrong.append(f"the interval rejects a correct {fmt.name} kernel at scale {name}")
                if defect != "none" and shares["interval"] < changed:
                    wrong.append(f"{defect} of {fmt.name} at scale {name}: {shares['interval']:.3f} of {changed:.3f}")
    return wrong


ELEMENTS = 20_000


def element_table() -> tuple[list[str], int]:
    """Print the second table; the correct results that were rejected, and how many results were judged."""
    rng = np.random.default_rng(3)
    multiplicities = (2, 3, 6, 9, 25, 100)
    wrong, judged = 0, 0
    click.echo("| output | element-wise defect | " + " | ".join(f"k = {k}" for k in multiplicities) + " |")
    click.echo("|---|---|" + "--:|" * len(multiplicities))
    for fmt in (FLOAT32, FLOAT16, BFLOAT16):
        rates: dict[str, list[str]] = {}
        for k in multiplicities:
            terms = fmt.round(10.0 * rng.random((ELEMENTS, k)) - 5.0)
            sums = scatter_sums(np.repeat(np.arange(ELEMENTS), k), terms.ravel(), ELEMENTS)
            accepts = acceptance(sums, fmt, ACC32).accepts
            for order in ORDERS:
                wrong += int((~accepts(simulate(terms, fmt, ACC32, order, rng))).sum())
                judged += ELEMENTS
            for defect, outputs in _elements(terms, fmt, rng):
                rates.setdefault(defect, []).append(f"{(~accepts(outputs)).mean():.4f}")
        for defect, figures in rates.items():
            click.echo(f"| {fmt.name} | {defect} | " + " | ".join(figures) + " |")
    return [f"the interval rejects {wrong} of {judged} correct elements"] if wrong else [], judged


def _elements(terms: np.ndarray, fmt: FloatFormat, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    yield "one term lost", simulate(terms[:, 1:], fmt, ACC32, "forward", rng)
    yield "one term duplicated", simulate(np.hstack([terms, terms[:, :1]]), fmt, ACC32, "forward", rng)
    if fmt is FLOAT32:
        for accumulator in (FLOAT16, BFLOAT16, HF32):
            cells = np.repeat(np.arange(len(terms)), terms.shape[1])
            kernel = _accumulating(accumulator)
            yield f"{accumulator.name} accumulation", kernel(cells, terms.ravel(), len(terms), fmt, rng)
        return
    yield "native accumulation", simulate(terms, fmt, NATIVE, "forward", rng)
    wide = simulate(terms, FLOAT32, ACC32, "forward", rng)
    for mode in ("toward zero", "half away from zero"):
        yield f"narrowing {mode}", np.where(wide == 0.0, wide, round_by(mode, wide, np.zeros(len(wide)), fmt))


@click.command()
@click.option("--repetitions", default=40, show_default=True, help="Tensors per line of the first table.")
def main(repetitions: int) -> None:
    wrong = tensor_table(repetitions)
    click.echo()
    more, judged = element_table()
    click.echo(f"\ncorrect elements judged: {judged:,}, orders: {', '.join(ORDERS)}")
    for text in [*wrong, *more]:
        click.echo(f"WRONG: {text}")
    sys.exit(bool(wrong or more))


if __name__ == "__main__":
    main()
