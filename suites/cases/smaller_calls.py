"""Smaller low-level calls that fail alike: fewer changes of a legal call, simpler values."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import combinations

from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.changes import BASE, Changes, changed, models, nearest, single_changes
from poolproof.references.contract.expectation import expectations, may_ask
from poolproof.references.products import Product

_MAX_TOGETHER = 3
"""How many changes are tried at once before all but one are."""


def smaller_call(
    product: Product, call: ContractCall, still_fails: Callable[[ContractCall], bool], seconds: float
) -> ContractCall:
    """Find the first smaller call that breaks the same clause and still fails; ``call`` itself if none does.

    Stops asking when the time is up.
    """
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
