"""Calls of torch, as lists name them: ``torch.nn.functional.max_pool2d`` and its arguments other than tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from poolproof.references.operators import FORWARDS, Operator, find_operator
from poolproof.suites.cases.lists.fields import RowError

_NAMES = {
    name: forward.name
    for forward in FORWARDS
    if forward.aten
    for pool in [forward.aten.removesuffix("_with_indices")]
    for name in (pool, f"{pool}_with_indices")
}
"""What `torch.nn.functional` calls the forwards, with and without indices as a result."""


def torch_operator(name: str) -> Operator:
    """Find the operator of a function of torch, whatever its module or overload; `RowError` where there is none."""
    bare = next((part for part in reversed(name.split(".")) if "pool" in part), name)
    try:
        return find_operator(_NAMES.get(bare, bare))
    except KeyError as error:
        tested = ", ".join(pool for pool in _NAMES if "_with_" not in pool)
        raise RowError(f"{name}: poolproof tests {tested} and their backwards only") from error


def torch_attributes(
    api: Operator, shape: Sequence[int], positional: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a case for the arguments of a call on self of a shape, without its tensors.

    torch takes one number for all axes, and None for a default or a length of self.
    """
    known = [attribute.name for attribute in api.windows.attributes()]
    order = [*known, "return_indices"]
    given = dict(zip(order, positional, strict=False)) | dict(named)
    if wrong := [*(name for name in given if name not in order), *positional[len(order) :]]:
        raise RowError(f"{wrong[0]}: no argument of {api.aten}, which takes {', '.join(known)}")
    fields: dict[str, Any] = {}
    for name in filter(given.__contains__, known):
        value = given[name]
        if name == "output_size":
            sizes = list(value) if isinstance(value, list | tuple) else [value] * api.spatial_rank
            pairs = zip(sizes, shape[-api.spatial_rank :], strict=False)
            fields[name] = [length if size is None else size for size, length in pairs]
        elif value is not None:
            fields[name] = value if isinstance(value, bool | list | tuple) else [value]
    return fields
