"""Smaller cases and low-level calls that fail alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from poolproof.references.contract.call import Changes, ContractCall, changed
from poolproof.references.contract.changes import BASE, models, nearest, single_changes
from poolproof.references.contract.expectation import expectations, may_ask
from poolproof.references.products import Product
from poolproof.references.windows import Windowed
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.strategies import shortened
from poolproof.suites.cases.varying import Record, alternatives, parameters, spelled


def smaller_case(
    failing: Case, words: Mapping[str, Sequence[object]], still_fails: Callable[[Case], bool], seconds: float
) -> Case:
    """Reduce the case as long as it gets smaller and still fails; stop when the time is up.

    ``words`` are what its fields may hold, the simplest first.
    """
    deadline = time.monotonic() + seconds
    smallest, tried, reductions = failing, {failing}, list(_reductions(failing, words))
    position = in_vain = 0
    while in_vain < len(reductions):
        case = _read(reductions[position % len(reductions)], failing)
        position, in_vain = position + 1, in_vain + 1
        if case is None or case in tried or _extent(case) >= _extent(smallest):
            continue
        if time.monotonic() >= deadline:
            break
        tried.add(case)
        if still_fails(case):
            smallest, reductions = case, list(_reductions(case, words))
            position, in_vain = position - 1, 0
    return smallest


def _read(record: Record, failing: Case) -> Case | None:
    """Read a case, with short lists where the failing one has them; None where it is none."""
    try:
        case = Case.from_record(record)
    except CaseError:
        return None
    if case.has_empty_window and not failing.has_empty_window:
        return None
    windows = case.attributes
    return replace(case, attributes=shortened(windows)) if isinstance(windows, Windowed) else case


def _extent(case: Case) -> tuple[int, int, int, int]:
    """Measure how small a case is for a person: few elements, few and small windows, a short line."""
    return case.planes * case.plane_size, case.planes * case.plane_windows, case.taps, len(case.to_json())


def _reductions(case: Case, words: Mapping[str, Sequence[object]]) -> Iterator[Record]:
    """Yield records of cases that may be smaller, or none at all: with the seed of the case, then with other data."""
    for seed in (case.seed, 0, 1):
        record = spelled(case) | {"seed": seed}
        yield from (record | change for change in alternatives(case))
        yield from (record | {name: word} for name, choices in words.items() for word in choices)
        yield from (record | {name: []} for name in ("stride", "padding", "dilation") if name in record)
        for parameter in parameters(case):
            low, value = parameter.low, parameter.value
            for lower in dict.fromkeys((low, (low + value) // 2, value - 1)) if value > low else ():
                reduced = record | parameter.change(lower)
                yield reduced
                if "kernel_size" in reduced:
                    yield _fitted(reduced, case.api.spatial_rank)


def _fitted(record: Record, rank: int) -> Record:
    """Cut windows down to the plane, and padding to the windows."""
    kernel = list(map(min, record["kernel_size"], [max(length, 1) for length in record["shape"][-rank:]]))
    padding = [min(own, length // 2) for own, length in zip(record["padding"], kernel, strict=True)]
    return record | {"kernel_size": kernel, "padding": padding, "dilation": [1] * rank}


_MAX_TOGETHER = 3
"""How many changes are tried at once before all but one are."""


def smaller_call(
    product: Product, call: ContractCall, still_fails: Callable[[ContractCall], bool], seconds: float
) -> ContractCall:
    """Find, in time, the first smaller call that breaks the same clause and still fails; ``call`` itself if none."""
    deadline = time.monotonic() + seconds
    clause = expectations(product, call).code.clause

    def fails_alike(other: ContractCall) -> bool:
        expected = expectations(product, other)
        alike = expected.code.clause == clause and may_ask(other, expected)
        return alike and time.monotonic() < deadline and still_fails(other)

    return next((other for other in _candidates(product, call) if fails_alike(other)), call)


def _candidates(product: Product, call: ContractCall) -> Iterator[ContractCall]:
    """Yield calls with fewer changes first, of them the simpler; in the base before in other legal calls."""
    named = models(product, call.api)
    closest, changes = nearest(call, named)
    for count in range(len(changes)):
        for chosen in combinations(changes, count):
            if count > _MAX_TOGETHER and count < len(changes) - 1:
                continue
            for name in dict.fromkeys((BASE, closest)):
                yield from _simpler(named[name], chosen)
                yield changed(named[name], chosen)
    if closest != BASE:
        yield changed(named[BASE], changes)


def _simpler(model: ContractCall, changes: Changes) -> Iterator[ContractCall]:
    """Yield single changes of the same field to the values that are tried anyway, which are less far off."""
    if len(changes) != 1:
        return
    (change,) = changes
    for alone in single_changes(model):
        if len(alone) == 1 and (alone[0].argument, alone[0].field) == (change.argument, change.field):
            yield changed(model, alone)
