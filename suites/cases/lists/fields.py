"""Fields of rows of case lists that several formats share: numbers, ranges, distributions, attributes, seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from poolproof.references.formats import FORMATS, FloatFormat
from poolproof.references.operators import OPERATORS, Operator
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.generation import derive_seed
from poolproof.suites.cases.recipes.spreads import Spread
from poolproof.suites.cases.recipes.stream import RandomStream

API_ATTRIBUTES = {
    "kernelSize": "kernel_size",
    "stride": "stride",
    "padding": "padding",
    "dilation": "dilation",
    "ceilMode": "ceil_mode",
}
"""Our names of attributes, by those of the API's pages."""

_POOLS = {2: "MaxPool2dWithIndices", 3: "MaxPool3dWithArgmax"}

_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64"}
_DTYPES |= {"f32": "float32", "f16": "float16", "f64": "float64"}


class ListError(BadInput):
    """A file that is no case list, or lists of one name."""


class RowError(ValueError):
    """A fault of one row; the text begins with the field."""


def legal_case(record: Mapping[str, Any]) -> Case:
    """Read the case of a row's record; `RowError` says what is wrong with it."""
    try:
        return Case.from_record(record)
    except CaseError as error:
        raise RowError(f"no legal call: {error}") from error


def dtype_named(field: str, given: Any) -> str:
    """Return our name of a dtype of data, of which lists have several spellings."""
    name = str(given).rpartition(".")[2].lower()
    name = _DTYPES.get(name, name)
    if name not in FORMATS:
        raise RowError(f"{field}: poolproof tests the dtypes {', '.join(FORMATS)}, not {given}")
    return name


def same_padding(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """Return the padding of each axis if it is the same at both ends; `RowError` if not."""
    if list(before) != list(after):
        raise RowError(f"padding: poolproof tests symmetric padding, not {list(before)} before and {list(after)} after")
    return list(before)


def pool_named(rank: int, is_backward: bool = False) -> Operator:
    """Find the pool with indices over so many axes; `RowError` where there is none."""
    if rank not in _POOLS:
        raise RowError(f"shape: poolproof tests 2-D and 3-D pools, not {rank}-D ones")
    return OPERATORS[_POOLS[rank] + "Backward" * is_backward]


def seed_of(name: str) -> int:
    """Derive the seed of a row without one from its name, wherever in the list it is."""
    return derive_seed("case list", name) >> 1


def tagged_layouts(case: Case) -> tuple[tuple[str, str], ...]:
    """Return the layouts of a case with all tensors channels last, and tagged as such."""
    return tuple(sorted((tensor, "nhwc") for tensor in case.api.strided))


# Recipes for the data that a list declares by a number, a range or a distribution.


def declared_recipe(field: str, given: Any, dtype: str, seed: int) -> str:
    """Return the recipe for one tensor of numbers; raise `RowError` where ``given`` is no known declaration."""
    fmt = FORMATS[dtype]
    if isinstance(given, Mapping):
        return _normal(field, given, fmt, RandomStream(seed, field))
    numbers = [number_of(field, each) for each in (given if _is_list(given) else [given])]
    if len(numbers) not in (1, 2):
        raise RowError(f"{field}: {given!r} is neither a number nor a range")
    low, high = numbers[0], numbers[-1]
    if low == high or (low != low and high != high):
        return str(Spread("filled", (_within(low, fmt) if isfinite(low) else low,)))
    if not low < high:
        raise RowError(f"{field}: [{low}, {high}] is no range")
    # no uniform distribution reaches infinity: a bound that the format does not have is its largest number
    return str(Spread("between", (_within(low, fmt), _within(high, fmt))))


def number_of(field: str, given: Any) -> float:
    """Read a number of a list, which spells infinities and NaN as texts."""
    if isinstance(given, str) and given in ("inf", "-inf", "nan"):
        return float(given)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise RowError(f"{field}: {given!r} is no number")
    try:
        return float(given)
    except OverflowError as error:
        raise RowError(f"{field}: {given!r:.40} is beyond every format") from error


def _is_list(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str)


def _normal(field: str, given: Mapping[str, Any], fmt: FloatFormat, stream: RandomStream) -> str:
    """Draw the mean and the deviation of a normal distribution from their ranges."""
    if given.get("name") != "nd":
        raise RowError(f"{field}: the distribution {given.get('name')!r} is not known, only 'nd'")
    drawn = []
    for name in ("mean", "std"):
        bounds = given.get(name)
        if not _is_list(bounds) or len(bounds) != 2:  # type: ignore[arg-type]
            raise RowError(f"{field}: {name} {bounds!r} of a normal distribution is no range")
        low, high = (number_of(field, bound) for bound in bounds)  # type: ignore[union-attr]
        if not (isfinite(low) and isfinite(high) and low <= high):
            raise RowError(f"{field}: {name} [{low}, {high}] of a normal distribution is no range")
        drawn.append(low + (high - low) * round(float(stream.beside(name).uniform(1)[0]), 4))
    try:
        return str(Spread("gaussian", (_within(drawn[0], fmt), min(drawn[1], fmt.max))))
    except ValueError as error:
        raise RowError(f"{field}: {error}") from error


def _within(value: float, fmt: FloatFormat) -> float:
    """Clip a number to the format's largest."""
    return value if np.isfinite(fmt.round(np.array([value])))[0] else float(np.copysign(fmt.max, value))
