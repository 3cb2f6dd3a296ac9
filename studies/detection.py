"""Detection by other tools: their case lists and standards on the emulator's seeded defects.

    python studies/detection.py [-n 2] [--defect ID]

A list is imitated, not copied: it has the shapes, gradients and indices that its owner draws. It has nothing that its
owner never does (strided tensors, our index recipes, NaN among numbers, poisoned memory). A list finds a defect if its
own standard rejects a case that it accepts from the honest emulator, or if a case ends the process.

The second table judges by every standard the outputs of our own cases, one call each (the first round of the smoke
plan). It also counts the outputs of the honest emulator that a standard fails. Exits with 1 if our own criterion fails
one.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import click
import numpy as np

from poolproof.backends.base import Backend, Call, Status
from poolproof.backends.emulator import library
from poolproof.backends.emulator.defects import defects
from poolproof.references.criterion import admissible
from poolproof.references.deviations import Deviations, sequential_sums
from poolproof.references.formats import FORMATS, Float64, FloatFormat
from poolproof.references.operators import OPERATORS
from poolproof.references.standards import STANDARDS, judge_all
from poolproof.references.standards.base import Figures, Standard, count_true
from poolproof.references.standards.ttk import CloseShare
from poolproof.score.hunt import HONEST, backend_name, in_processes
from poolproof.score.questions import rounds
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.memory import allocate
from poolproof.suites.cases.operands import CaseOperands, make_operands
from poolproof.suites.isolation.survey import survey
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.expected import refusal, unsupported
from poolproof.suites.plan.plans import PLANS

_WINDOWED_2D = ("MaxPool2dWithIndicesBackward", "MaxPool2dWithMaskBackward")
_WINDOWED = (*_WINDOWED_2D, "MaxPool3dWithArgmaxBackward")
_ADAPTIVE = ("AdaptiveMaxPool2dBackward", "AdaptiveMaxPool3dBackward")


@dataclass(frozen=True)
class Peer:
    """A kind of case list: ``draw`` makes a case without its dtypes, ``standard`` judges the output.

    ``poisons``: its owner fills the output with NaN before the call; otherwise the output starts as zeros.
    """

    name: str
    standard: Standard
    draw: Callable[[random.Random], Iterator[dict[str, Any]]]
    poisons: bool = False

    def cases(self, backend: Backend) -> list[Case]:
        """Return its cases in the dtypes of ``backend``, the same every time."""
        lots = random.Random(self.name)
        drawn = []
        for fields in self.draw(lots):
            pairs = _dtype_pairs(backend, fields["operator"])
            if pairs:
                dtype, index_dtype = lots.choice(pairs)
                drawn.append(Case.of(**fields, dtype=dtype, index_dtype=index_dtype, seed=lots.randrange(2**32)))
        return [case for case in drawn if not case.has_empty_window]


def _dtype_pairs(backend: Backend, operator: str) -> list[tuple[str, str]]:
    pairs = product(("float32", "float16", "bfloat16"), OPERATORS[operator].indices.dtypes)
    return [
        (dtype, index_dtype)
        for dtype, index_dtype in pairs
        if unsupported(backend, OPERATORS[operator], dtype, index_dtype) is None
    ]


def _operator_library(lots: random.Random) -> Iterator[dict[str, Any]]:
    """Yield system tests of the operator library: uniform gradients, forward indices, dilation 1, whole tensors."""
    for number in range(120):
        operator = _WINDOWED[number % 3] if number % 5 else lots.choice(_ADAPTIVE)
        rank = OPERATORS[operator].spatial_rank
        spatial = tuple(lots.randint(6, 40 if rank == 2 else 14) for _ in range(rank))
        case: dict[str, Any] = {
            "operator": operator,
            "shape": (lots.randint(1, 8), lots.choice((1, 3, 8, 16, 32)), *spatial),
            "gradient": "uniform",
            "indices": "forward",
        }
        if operator in _ADAPTIVE:
            yield case | {"output_size": tuple(lots.randint(1, size) for size in spatial)}
            continue
        kernel = tuple(lots.randint(1, 4) for _ in spatial)
        is_mask = operator == "MaxPool2dWithMaskBackward"
        stride = kernel if is_mask else tuple(lots.randint(1, 4) for _ in spatial)
        padding = tuple(lots.randint(0, size // 2) for size in kernel)
        yield case | {
            "kernel_size": (2,) * rank if is_mask and set(kernel) == {1} else kernel,
            "stride": stride,
            "padding": padding,
            "dilation": (1,) * rank,
            "ceil_mode": lots.random() < 0.5,
        }


def _ttk(lots: random.Random) -> Iterator[dict[str, Any]]:
    """Yield the other test tool's rows: kernel 2 equal to the stride, integers in [-128, 127] before the forward."""
    for channels, size in ((3, 16), (16, 32), (32, 56), (64, 14), (1, 64)):
        yield {
            "operator": "MaxPool2dWithIndicesBackward",
            "shape": (lots.randint(1, 4), channels, size, size),
            "kernel_size": (2, 2),
            "stride": (2, 2),
            "padding": (0, 0),
            "dilation": (1, 1),
            "gradient": "uniform",
            "indices": "forward",
            "values": "ties",
        }


def _opinfo(lots: random.Random) -> Iterator[dict[str, Any]]:
    """Yield samples of a framework's operator database: small inputs, every attribute, a gradient of ones."""
    for kernel, stride, ceil_mode, dilation, padded in product((2, 3), (2, 1, 0), (False, True), (1, 2), (False, True)):
        for shape in ((1, 3, 6, 8), (3, 6, 8), (2, 1, 6, 6)):
            yield {
                "operator": lots.choice(_WINDOWED_2D),
                "shape": shape,
                "kernel_size": (kernel,),
                "stride": (stride,) if stride else (),
                "padding": (kernel // 2 if padded else 0,),
                "dilation": (dilation,),
                "ceil_mode": ceil_mode,
                "gradient": "ones",
                "indices": "forward",
            }


def _benchdnn(lots: random.Random) -> Iterator[dict[str, Any]]:
    """Yield a deep learning library's cases: small integers, overlapping and dilated windows, forward indices."""
    for _ in range(96):
        rank = lots.choice((2, 2, 3))
        kernel = tuple(lots.randint(1, 5) for _ in range(rank))
        yield {
            "operator": "MaxPool3dWithArgmaxBackward" if rank == 3 else lots.choice(_WINDOWED_2D),
            "shape": (2, lots.choice((3, 16, 32)), *(lots.randint(7, 24 if rank == 2 else 12) for _ in range(rank))),
            "kernel_size": (2,) * rank if set(kernel) == {1} else kernel,
            "stride": tuple(lots.randint(1, 3) for _ in range(rank)),
            "padding": tuple(lots.randint(0, size // 2) for size in kernel),
            "dilation": (1,) * rank,
            "gradient": "integers",
            "indices": "forward",
        }


class Benchdnn(Standard):
    """No error at all on data with exact sums; other data do not apply."""

    def count(self, part: Deviations) -> Figures:
        exact = (part.golden == part.rounded) & (part.sums.residue == 0.0)
        return Figures(inexact=count_true(~exact), wrong=count_true(part.rounded_error != 0.0))

    def passes(self, figures: Figures, _: FloatFormat) -> bool | None:
        return None if figures["inexact"] else not figures["wrong"]


_BENCHDNN = Benchdnn(name="benchdnn-strict", source="oneDNN benchdnn, pooling driver, strict and float32 accumulation")
_TORCH = CloseShare(
    name="torch-assert-close",
    source="torch.testing, table of default tolerances",
    rtol={"float32": 1.3e-6, "float16": 1e-3, "bfloat16": 1.6e-2},
    atol=dict.fromkeys(("float32", "float16", "bfloat16"), 1e-5),
)

PEERS = (
    Peer("ATK lists", STANDARDS["ecosystem-2026-09"], _operator_library),
    Peer("TTK rows", STANDARDS["ttk-close"], _ttk),
    Peer("OpInfo samples", _TORCH, _opinfo),
    Peer("benchdnn pool", _BENCHDNN, _benchdnn, poisons=True),
)
"""Lists by their owners, each with the standard of its owner for this operator."""


OUR_CASES = "our cases"
"""Our own cases, judged by every standard."""

JUDGES = (*(peer.name for peer in PEERS), OUR_CASES)

Rejected = dict[str, set[int]]
"""Standard, or list, -> numbers of the cases that it rejects."""


def judge_by_others(
    seeded: Sequence[tuple[str, str]],
    own_cases: Mapping[str, Sequence[Case]],
    workers: int,
    timeout: float,
    judges: Sequence[str] = JUDGES,
) -> dict[tuple[str, str], dict[str, Rejected]]:
    """Return each list's and standard's rejections, for each product's honest emulator and each (product, defect)."""
    honest = [(product, HONEST) for product in dict.fromkeys(product for product, _ in seeded)]
    jobs = [(product, defect, judge) for product, defect in (*honest, *seeded) for judge in judges]
    tasks = [
        (product, defect, partial(_rejected_by, judge, own_cases[product], defect == HONEST))
        for product, defect, judge in jobs
    ]
    rejected: dict[tuple[str, str], dict[str, Rejected]] = defaultdict(dict)
    for number, answer in in_processes(tasks, workers, timeout):
        product, defect, judge = jobs[number]
        rejected[product, defect][judge] = dict.fromkeys(_columns(judge), _ENDED) if answer is None else answer
    return rejected


def finds(rejected: Mapping[tuple[str, str], dict[str, Rejected]], seeded: tuple[str, str], judge: str) -> set[str]:
    """Return the columns of ``judge`` that find a defect and accept the honest emulator."""
    innocent = rejected[seeded[0], HONEST][judge]
    return {name for name, cases in rejected[seeded][judge].items() if cases - innocent[name]}


def _columns(judge: str) -> list[str]:
    """Return the columns of a judge: a list's own name, or the standards that judge our cases."""
    return [*STANDARDS, "interval"] if judge == OUR_CASES else [judge]


_ENDED = {-1}
"""Replaces the rejected cases of a judge with a dead or hung process: no list can overlook that."""


def _rejected_by(judge: str, own_cases: Sequence[Case], is_honest: bool, backend: Backend) -> Rejected:
    """Return the numbers of the rejected cases: by the list of that name, or by each standard."""
    if judge == OUR_CASES:
        return rejecting_standards(backend, own_cases, is_honest)
    (peer,) = (peer for peer in PEERS if peer.name == judge)
    return {judge: {number for number, case in enumerate(peer.cases(backend)) if not _passes(backend, peer, case)}}


def rejecting_standards(backend: Backend, cases: Sequence[Case], is_honest: bool) -> Rejected:
    """Return the numbers of ``cases`` that each standard rejects; ``interval`` is our criterion.

    A standard judges what the criterion rejects, and all outputs of the honest emulator.
    """
    rejected: Rejected = {name: set() for name in _columns(OUR_CASES)}
    for number, case in enumerate(cases):
        operands = make_operands(case)
        call = allocate(operands)
        if backend.run(call).status is not Status.COMPLETED:
            continue
        allowed = (
            admissible(operands.sums, FORMATS[case.dtype], backend.accumulation(call)).accepts(_output(call)).all()
        )
        if not allowed:
            rejected["interval"].add(number)
        if allowed and not is_honest:
            continue
        for name, passes in judge_all([_deviations(operands, call)]).items():
            if passes is False:
                rejected[name].add(number)
    return rejected


def _passes(backend: Backend, peer: Peer, case: Case) -> bool:
    operands = make_operands(case)
    call = allocate(operands)
    for name in () if peer.poisons else call.operator.outputs:
        call.tensors[name].array.fill(0)
    if backend.run(call).status is not Status.COMPLETED:
        return refusal(backend, case, call) is not None
    return peer.standard.judge(_deviations(operands, call)) is not False


def _output(call: Call) -> Float64:
    return call.tensors["grad_input"].array.astype(np.float64).ravel()


def _deviations(operands: CaseOperands, call: Call) -> Deviations:
    fmt, landing = FORMATS[operands.case.dtype], operands.landing
    terms = landing.cells, operands.terms
    return Deviations(
        _output(call),
        operands.sums,
        fmt,
        second=sequential_sums(*terms, landing.size, fmt),
    )


def our_cases(products: Sequence[str], workers: int) -> dict[str, list[Case]]:
    """Return the smoke plan's first backward cases, per product; without masks of bits, which are undefined."""
    surveys = {product: survey(backend_name(product)) for product in products}
    first = next(rounds(surveys, PLANS["smoke"], 0, workers))
    return {
        product: [
            question.case
            for question in questions
            if isinstance(question, CaseQuestion) and question.case.api.is_backward and not question.case.has_bit_mask
        ]
        for product, questions in first.questions.items()
    }


def _print_lists(rejected: Mapping[tuple[str, str], dict[str, Rejected]], seeded: Sequence[tuple[str, str]]) -> None:
    click.echo(f"| list | its standard | finds, of {len(seeded)} |\n|---|---|--:|")
    for peer in PEERS:
        count = sum(bool(finds(rejected, each, peer.name)) for each in seeded)
        click.echo(f"| {peer.name} | {peer.standard.name} | {count} |")
    together = sum(any(finds(rejected, each, peer.name) for peer in PEERS) for each in seeded)
    click.echo(f"| any of them | | {together} |\n")


def _print_standards(rejected: Mapping[tuple[str, str], dict[str, Rejected]], seeded: Sequence[tuple[str, str]]) -> int:
    """Print the table of standards; return the number of honest outputs that our criterion fails."""
    click.echo("| standard | finds | honest failed |\n|---|--:|--:|")
    honest = list(dict.fromkeys((product, HONEST) for product, _ in seeded))
    for name in _columns(OUR_CASES):
        count = sum(name in finds(rejected, each, OUR_CASES) for each in seeded)
        click.echo(f"| `{name}` | {count} | {sum(len(rejected[each][OUR_CASES][name]) for each in honest)} |")
    return sum(len(rejected[each][OUR_CASES]["interval"]) for each in honest)


@click.command()
@click.option("-n", "workers", default=2, show_default=True, help="Processes at a time.")
@click.option("--defect", "chosen", multiple=True, metavar="ID", help="Only this defect, repeatable.")
@click.option("--timeout", default=300.0, show_default=True, help="Seconds that a judge may take on one defect.")
def main(workers: int, chosen: tuple[str, ...], timeout: float) -> None:
    library()  # before all processes need it
    known = defects()
    seeded = [(known[name].products[0], name) for name in chosen or known]
    products = list(dict.fromkeys(product for product, _ in seeded))
    rejected = judge_by_others(seeded, our_cases(products, workers), workers, timeout)
    _print_lists(rejected, seeded)
    sys.exit(bool(_print_standards(rejected, seeded)))


if __name__ == "__main__":
    main()
