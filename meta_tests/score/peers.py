"""What others would have found: their kinds of case lists, judged by their standards, on the same defects.

A list is imitated, not copied: the shapes, gradients and indices that its owner draws, and nothing that it never does
(strided tensors, index recipes of ours, NaN among numbers, poisoned memory). A defect counts as found by a list when
the list's own standard rejects a case that it accepts from the honest emulator, or when a case ends the process.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from poolproof.backends.base import Backend, Call, Status
from poolproof.references.criterion import acceptance
from poolproof.references.deviations import Deviations, sequential_sums
from poolproof.references.formats import FORMATS, Float64
from poolproof.references.operators import OPERATORS
from poolproof.references.standards import STANDARDS, judge_all
from poolproof.score.race import HONEST, in_processes
from poolproof.suites.cases.case import INDEX_DTYPES, Case
from poolproof.suites.cases.operands import POISONS, Contents, contents, place

_WINDOWED_2D = ("MaxPool2dWithIndicesBackward", "MaxPool2dWithMaskBackward")
_WINDOWED = (*_WINDOWED_2D, "MaxPool3dWithArgmaxBackward")
_ADAPTIVE = ("AdaptiveMaxPool2dBackward", "AdaptiveMaxPool3dBackward")


@dataclass(frozen=True)
class Peer:
    """A kind of case list: ``draw`` makes all of a case but its dtypes, ``standard`` judges the output.

    ``poisons``: whether its owner fills the output with NaN before the call; otherwise the output starts as zeros.
    """

    name: str
    standard: str
    draw: Callable[[random.Random], Iterator[dict[str, Any]]]
    poisons: bool = False

    def cases(self, backend: Backend) -> list[Case]:
        """Its cases in the dtypes that ``backend`` has; the same every time."""
        lots = random.Random(self.name)
        found = []
        for fields in self.draw(lots):
            pairs = _dtype_pairs(backend, fields["operator"])
            if pairs:
                dtype, index_dtype = lots.choice(pairs)
                found.append(Case.of(**fields, dtype=dtype, index_dtype=index_dtype, seed=lots.randrange(2**32)))
        return [case for case in found if not case.has_empty_window()]


def _dtype_pairs(backend: Backend, operator: str) -> list[tuple[str, str]]:
    pairs = product(("float32", "float16", "bfloat16"), INDEX_DTYPES)
    kind = OPERATORS[operator].indices
    return [
        (dtype, index_dtype)
        for dtype, index_dtype in pairs
        if (index_dtype == "int8") == (kind == "mask")
        and backend.unsupported(OPERATORS[operator], dtype, index_dtype) is None
    ]


def _operator_library(lots: random.Random) -> Iterator[dict[str, Any]]:
    """System tests of the operator library: uniform gradients, forward indices, dilation 1, whole tensors."""
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
    """The other test tool's rows: kernel 2 equal to the stride, integers in [-128, 127] ahead of the forward."""
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
    """Samples of a framework's operator database: small inputs, every attribute, a gradient of ones."""
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
    """A deep learning library's driver: small integers, overlapping and dilated windows, forward indices."""
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


PEERS = (
    Peer("ATK lists", "ecosystem-2026-09", _operator_library),
    Peer("TTK rows", "ttk-close", _ttk),
    Peer("OpInfo samples", "torch-assert-close", _opinfo),
    Peer("benchdnn pool", "benchdnn-strict", _benchdnn, poisons=True),
)
"""Lists by whom they are of, each with the standard that its owner holds this operator against."""


OUR_CASES = "our cases"
"""Beside the lists: the suite's own cases, judged by every standard."""


def judge_by_others(
    seeded: Sequence[tuple[str, str]], own_cases: Mapping[str, Sequence[Case]], workers: int, timeout: float
) -> list[dict[str, bool]]:
    """For each (product, defect): which lists find it, and which standards would have found it in ``own_cases``.

    Whatever a list or a standard holds against the honest emulator counts for no defect.
    """
    honest = [(product, HONEST) for product in dict.fromkeys(product for product, _ in seeded)]
    judges = (*(peer.name for peer in PEERS), OUR_CASES)
    asked = [(product, defect, judge) for product, defect in (*honest, *seeded) for judge in judges]
    tasks = [(product, defect, partial(_rejected_by, judge, own_cases[product])) for product, defect, judge in asked]
    rejected: dict[tuple[str, str], dict[str, set[int]]] = defaultdict(dict)
    for number, said in in_processes(tasks, workers, timeout):
        product, defect, judge = asked[number]
        rejected[product, defect] |= dict.fromkeys(_columns(judge), _ENDED) if said is None else said
    return [
        {
            name: bool(cases - rejected[product, HONEST].get(name, set()))
            for name, cases in rejected[product, defect].items()
        }
        for product, defect in seeded
    ]


def _columns(judge: str) -> list[str]:
    """What the verdicts of a judge go by: a list by its own name, our cases by the standards that judge them."""
    if judge != OUR_CASES:
        return [judge]
    return [*STANDARDS, "interval"]


_ENDED = {-1}
"""In place of the rejected cases of a judge whose process died or hung: something no list can overlook."""


def _rejected_by(judge: str, own_cases: Sequence[Case], backend: Backend) -> dict[str, set[int]]:
    """Numbers of the cases that are rejected: by the list of that name, or by each standard in our cases."""
    if judge == OUR_CASES:
        return rejecting_standards(backend, own_cases)
    (peer,) = (peer for peer in PEERS if peer.name == judge)
    return {judge: {number for number, case in enumerate(peer.cases(backend)) if not _passes(backend, peer, case)}}


def rejecting_standards(backend: Backend, cases: Sequence[Case]) -> dict[str, set[int]]:
    """Numbers of ``cases``, the suite's own, that each sound standard rejects; ``interval`` is the suite's criterion.

    A standard is asked only where the criterion rejects: a sound one has nothing to object elsewhere.
    """
    rejected: dict[str, set[int]] = {name: set() for name in _columns(OUR_CASES)}
    for number, case in enumerate(cases):
        content = contents(case)
        call = place(content, POISONS[0])
        if backend.run(call).status is not Status.COMPLETED:
            continue
        allowed = acceptance(content.sums, FORMATS[case.dtype], backend.accumulation(call))
        if allowed.accepts(_output(call)).all():
            continue
        verdicts = judge_all(_deviations(content, call))
        for name in rejected:
            if name == "interval" or verdicts[name].passed is False:
                rejected[name].add(number)
    return rejected


def _passes(backend: Backend, peer: Peer, case: Case) -> bool:
    content = contents(case)
    call = place(content, POISONS[0] if peer.poisons else 0)
    if backend.run(call).status is not Status.COMPLETED:
        return backend.refusal(call) is not None
    return STANDARDS[peer.standard].judge(_deviations(content, call)).passed is not False


def _output(call: Call) -> Float64:
    return call.tensors["grad_input"].array.astype(np.float64).ravel()


def _deviations(content: Contents, call: Call) -> Deviations:
    assert content.gradient is not None
    fmt, landing = FORMATS[content.case.dtype], content.landing
    terms = landing.cells, content.gradient.ravel()
    return Deviations(
        _output(call),
        content.sums,
        fmt,
        second=sequential_sums(*terms, landing.size, fmt),
        windows_per_plane=content.case.plane_windows,
    )
