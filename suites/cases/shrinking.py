"""Smaller cases and low-level calls that fail alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import cache
from itertools import combinations
from random import Random
from typing import Any

from poolproof.references.contract.call import Changes, ContractCall, changed
from poolproof.references.contract.changes import BASE, models, nearest, single_changes
from poolproof.references.contract.expectation import expectations, may_ask
from poolproof.references.products import Product
from poolproof.references.windows import Windowed
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.strategies import shortened
from poolproof.suites.cases.varying import Record, parameters, spelled


def smaller_case(
    failing: Case, words: Mapping[str, Sequence[object]], still_fails: Callable[[Case], bool], seconds: float
) -> Case:
    """Return the smallest case that Hypothesis finds in time; ``words`` are what its fields may hold.

    A case is a choice for each of its `_Place`, the first being the simplest. `find` gets the choices of the failing
    case as its second alternative. The shrinker of Hypothesis moves them to the first, where each may be less.
    """
    from hypothesis import Verbosity, find, settings  # takes 0.3 s, which most commands do not need
    from hypothesis import strategies as st
    from hypothesis.errors import NoSuchExample

    deadline, places = time.monotonic() + seconds, _places(failing, words)
    own = tuple(len(choices) - 1 for *_, choices in places)
    smallest, errors, fails_once = failing, list[Exception](), cache(still_fails)

    @cache  # Hypothesis checks the last one again
    def fails(numbers: tuple[int, ...]) -> bool:
        nonlocal smallest
        case, is_over = _made(failing, places, numbers), errors or time.monotonic() >= deadline
        if numbers == own or case is None or is_over or _extent(case) >= _extent(smallest):
            return numbers == own or case == smallest
        try:
            smallest = case if fails_once(case) else smallest
        except Exception as error:  # Hypothesis would shrink what raises
            errors.append(error)
        return case == smallest

    anything = st.tuples(*(st.integers(0, number) for number in own))
    this_one = st.tuples(*(st.integers(number, number) for number in own))
    quiet = settings(max_examples=20, database=None, deadline=None, verbosity=Verbosity.quiet)
    with suppress(NoSuchExample):
        find(anything | this_one, fails, settings=quiet, random=Random(0))
    if errors:
        raise errors[0]
    return smallest


_OPTIONAL = ("stride", "padding", "dilation")
_Place = tuple[str, int | None, Sequence[Any]]
"""A field, the axis of a list or None, and what may stand there: the failing case's own last."""


def _places(case: Case, words: Mapping[str, Sequence[object]]) -> list[_Place]:
    """List where a case may become simpler."""
    windows = case.attributes
    usual = {field.name: field.default for field in (*fields(Case), *fields(windows))}
    own = {name: getattr(windows, name, getattr(case, name, None)) for name in usual}
    own |= {"layouts": dict(case.layouts), "literals": dict(case.literals)}

    def shorter(name: str, known: Iterable[object]) -> _Place:
        ordered = sorted([own[name], *known], key=lambda each: len(str(each)) * (each != usual[name]))
        return name, None, ordered[: ordered.index(own[name]) + 1]

    flags = {each.name: [False] for each in windows.attributes() if each.is_flag}
    layouts = [{}, *({tensor: layout} for tensor, layout in case.layouts)]
    places = [shorter(*each) for each in {**words, **flags, "layouts": layouts, "literals": [{}]}.items()]
    for each in sorted(parameters(case), key=lambda each: each.field == "shape"):
        if each.axis is not None and getattr(windows, each.field, True):
            low = min(each.low - (each.name == "N"), each.value)  # where N is 0, there is no batch axis
            places.append((each.field, each.axis, range(low, each.value + 1)))
    places.append(shorter("seed", (0, 1)))  # behind lengths: the shrinker raises one of the next four, too
    places += [(name, None, ([], None)) for name in _OPTIONAL if getattr(windows, name, ())]
    return [place for place in places if len(place[2]) > 1]


def _made(failing: Case, places: Sequence[_Place], numbers: Sequence[int]) -> Case | None:
    """Make the case of these choices, if need be with windows cut down to the plane; None where there is none."""
    record = spelled(failing) | {name: [] for name in _OPTIONAL if getattr(failing.attributes, name, None) == ()}
    for (name, axis, choices), number in zip(places, numbers, strict=True):
        if axis is not None:
            record[name][axis] = choices[number]
        elif choices[number] is not None:
            record[name] = choices[number]
    if record["shape"][0] < min(failing.shape[0], 1):
        del record["shape"][0]
    return _read(record, failing) or _read(_fitted(record, failing.api.spatial_rank), failing)


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


def _fitted(record: Record, rank: int) -> Record:
    """Cut windows down to the plane, and padding to the windows."""
    if "kernel_size" not in record:
        return record
    kernel = [min(own, max(size, 1)) for own, size in zip(record["kernel_size"], record["shape"][-rank:], strict=True)]
    padding = list(map(min, record["padding"], [length // 2 for length in kernel]))
    return record | {"kernel_size": kernel, "padding": padding, "dilation": record["dilation"] and [1] * rank}


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
