"""Measures of a judged case: the errors of its output, and the verdicts of published standards.

Every case gets the statistics. The standards judge the outputs of aspects with `Aspect.standards`, and single cases
that were named.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.references.criterion import scatter_sums
from poolproof.references.deviations import PART, Deviations
from poolproof.references.formats import FORMATS, Float64, FloatFormat
from poolproof.references.forward import forward_indices
from poolproof.references.forward_rule import ForwardRule, Ties
from poolproof.references.geometry import Int64
from poolproof.references.kernels.sums import BOTH_INFINITIES
from poolproof.references.standards import judge_all
from poolproof.references.summary import error_statistics, ordinals
from poolproof.reports.rows.features import DATA, INDEX_BITS
from poolproof.reports.rows.schema import Row
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.memory import as_bits
from poolproof.suites.cases.operands import CHUNKS_OF_LARGE_PLANE, CaseOperands
from poolproof.suites.judging.chunks import array_chunks
from poolproof.suites.judging.trial import Trial


def measure_output(trial: Trial) -> Row:
    """Return the error statistics of a backward's grad_input, and the comparison with its repetitions."""
    row: Row = {**error_statistics(trial.summary)}
    output = trial.baseline.output("grad_input")
    row["output_digest"] = digest(output)
    if row["n_reject"]:
        row["decoded_faults"] = json.dumps(trial.fault_records)
    repetitions = trial.repetitions
    row["repeat_n"] = len(repetitions)
    if repetitions:
        unequal = [run.output("grad_input") for run in repetitions if not trial.equals_baseline(run, "grad_input")]
        row["repeat_bitwise_equal"] = not unequal
        row["repeat_max_ulp_spread"] = max((_spread(trial, output, other) for other in unequal), default=0.0)
    return row


MOST_LOOKED_AT = 1 << 20
"""Most elements of self for `look_at_data`, which passes over them several times."""


def look_at_data(operands: CaseOperands) -> Row:
    """Return the column ``data``: the properties of the data that kernels treat differently."""
    case, fmt = operands.case, FORMATS[operands.case.dtype]
    if not 0 < operands.values.size <= MOST_LOOKED_AT:
        return {}
    values = np.sort(operands.values.reshape(case.planes, -1).astype(np.float64), axis=1)
    has_equal = (values[:, 1:] == values[:, :-1]).any(axis=1)
    flags = [*_kinds_of_number(values, fmt), has_equal.any()]
    words = DATA["values"] + DATA[case.api.direction]
    if case.api.is_backward:
        indices = operands.indices.reshape(case.planes, *(axis.windows for axis in case.axes))
        has_forward = not (case.has_empty_window or case.has_bit_mask)
        flags += [*_kinds_of_number(operands.terms, fmt), *_kinds_of_sum(operands, fmt)]
        are_first = operands.first_maxima is operands.indices
        flags.append(has_forward and not are_first and _has_others(case, operands.planes, lambda part: indices[part]))
        flags += [operands.indices.max(initial=0) >= 1 << bits for bits in INDEX_BITS]
    else:
        rule, tied = ForwardRule(Ties.LAST), operands.planes[has_equal]
        flags.append(_has_others(case, tied, lambda part: forward_indices(tied[part], case.axes, rule)))
    return {"data": [word for word, holds in zip(words, flags, strict=True) if holds]}


def _has_others(case: Case, planes: NDArray[Any], indices_of: Callable[[slice], Int64]) -> bool:
    """Tell whether the indices of planes differ from the first maxima's; usually the first plane shows it."""
    step = max(1, PART // max(case.plane_size, case.plane_windows, 1))
    parts = (slice(0, 1), *(slice(first, first + step) for first in range(1, len(planes), step)))
    return any((forward_indices(planes[part], case.axes) != indices_of(part)).any() for part in parts)


def _kinds_of_sum(operands: CaseOperands, fmt: FloatFormat) -> NDArray[np.bool_]:
    """Tell whether there are cells of several windows, inexact finite sums, and infinities of both signs in a cell."""
    kinds = np.zeros(3, bool)
    for part in operands.chunk_ranges(PART, CHUNKS_OF_LARGE_PLANE):
        sums = scatter_sums(*operands.gradients_into(part), part.stop - part.start)
        inexact = (sums.residue != 0) | (fmt.round(sums.sum) != sums.sum)
        cells = sums.k > 1, inexact & (sums.kinds == 0), sums.kinds == BOTH_INFINITIES
        kinds |= [mask.any() for mask in cells]
    return kinds


def _kinds_of_number(data: Float64, fmt: FloatFormat) -> list[Any]:
    """Tell whether there are NaN, infinities, -0.0 and subnormal numbers."""
    is_zero = data == 0
    are = (np.isnan(data), np.isinf(data), is_zero & np.signbit(data), (np.abs(data) < fmt.smallest_normal) & ~is_zero)
    return [mask.any() for mask in are]


def digest(output: NDArray[Any]) -> str:
    """Return a hash of an output's elements in logical order; all NaN are equal: their sign depends on the machine."""
    bits, unknown = as_bits(np.ascontiguousarray(output)), np.isnan(output)
    if unknown.any():
        bits = np.where(unknown, as_bits(np.full(1, np.nan, output.dtype)), bits)
    return hashlib.blake2b(bits.data, digest_size=8).hexdigest()


def _spread(trial: Trial, first: NDArray[Any], other: NDArray[Any]) -> float:
    """Return the largest distance of two outputs in representable values; infinite if only one is finite somewhere."""
    most = 0
    for one, another in array_chunks(first, other):
        finite = np.isfinite(one)
        if not np.array_equal(finite, np.isfinite(another)):
            return float("inf")
        steps = np.abs(ordinals(one[finite], trial.fmt) - ordinals(another[finite], trial.fmt))
        most = max(most, int(steps.max(initial=0)))
    return float(most)


def deviation_parts(trial: Trial) -> Iterator[Deviations]:
    """Yield the deviations of a backward's grad_input, a few cells at a time."""
    ranges = list(trial.operands.chunk_ranges(PART, CHUNKS_OF_LARGE_PLANE)) or [slice(0, 0)]
    return chain.from_iterable(chunk.parts() for chunk in trial.deviations(ranges))


def measure_standards(trial: Trial) -> Row:
    """Judge a backward's grad_input by every standard."""
    verdicts = judge_all(deviation_parts(trial))
    return {
        "standards_passed": [name for name, passes in verdicts.items() if passes],
        "standards_failed": [name for name, passes in verdicts.items() if passes is False],
    }
