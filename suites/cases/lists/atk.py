"""Case lists of ATK, the test tool of the operator library: a JSON list of objects, one for each case.

How the tool completes a row was read in its executors for this family: indices are those of a forward on self,
whatever tensor is listed, as int32 (in the first bytes of the buffer where there is a mask); the gradient of an
adaptive backward is that forward's output; all other tensors are as listed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from poolproof.references.operators import Operator, find_operator
from poolproof.references.windows import Adaptive
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.entry import Entry, OwnStandard
from poolproof.suites.cases.lists.base import ListFormat, NotExpressible, check_expressible
from poolproof.suites.cases.lists.fields import (
    API_ATTRIBUTES,
    RowError,
    declared_recipe,
    dtype_named,
    legal_case,
    seed_of,
)
from poolproof.suites.cases.recipes.gradients import pointed
from poolproof.suites.cases.recipes.spreads import Spread, parse_spread
from poolproof.suites.cases.recipes.stream import RandomStream

_SPELLED = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}

TENSORS = {"gradOutput": "grad_output", "self": "self", "indices": "indices"}
_ATTRIBUTES = API_ATTRIBUTES | {"output_size": "output_size"}
_NAMES = TENSORS | _ATTRIBUTES
_THEIRS = {ours: name for name, ours in _NAMES.items()}

_STANDARDS = {"single_bm": "atk-single"}
"""What ATK's names of standards mean; what "default" means, nobody has published."""

Item = Mapping[str, Any]


class Atk(ListFormat):
    name = "atk"
    looks = "a JSON list of rows with an aclnn_name"

    def recognises(self, text: str) -> bool:
        return text.lstrip().startswith("[") and '"aclnn_name"' in text

    def entries(self, text: str, label: str) -> Iterator[Entry]:
        rows = json.loads(text)
        for number, row in enumerate(rows, 1):
            yield self.entry(row, label, number)

    def name_of(self, row: Any, number: int) -> str:
        return str(row.get("id", number)) if isinstance(row, Mapping) else str(number)

    def read(self, row: Any, name: str) -> tuple[Case, OwnStandard]:
        if not isinstance(row, Mapping):
            raise RowError(f"the row: {row!r:.40} is no object")
        if "aclnn_name" not in row:
            raise RowError("aclnn_name: the row has none")
        try:
            api = find_operator(str(row["aclnn_name"]))
        except KeyError as error:
            raise RowError(f"aclnn_name: {error.args[0]}") from error
        tensors, attributes = _inputs(row)
        own, seed = _standard(row), seed_of(name)
        record = {"operator": api.name, "shape": _shape("self", tensors), "seed": seed}
        record |= _windows(api, attributes, seed)
        record["dtype"] = dtype = _dtype("self", tensors)
        record["index_dtype"] = api.indices.dtypes[0]
        record["values"] = declared_recipe("self", tensors["self"].get("range_values"), dtype, seed)
        if api.is_backward:
            record["gradient"] = _gradient(api, tensors, dtype, seed)
        case = legal_case(record)
        if api.is_backward and _shape("grad_output", tensors) != list(case.pooled_shape):
            given = tensors["grad_output"]["shape"]
            raise RowError(f"grad_output.shape: {given} is not what the windows give, {list(case.pooled_shape)}")
        return case, own

    def write(self, case: Case, number: int) -> dict[str, Any]:
        check_expressible(case)
        if case.index_dtype != case.api.indices.dtypes[0]:
            raise NotExpressible("ATK's executors make int32 indices, not int64")
        if case.dtype not in _SPELLED:
            raise NotExpressible(f"ATK has no dtype {case.dtype}")
        gradient_first = sorted(case.api.inputs, key=lambda tensor: tensor != "grad_output")
        return {
            "id": number,
            "name": f"aclnn{case.operator}",
            "aclnn_name": case.operator,
            "standard": {"acc": "single_bm", "perf": "not_key"},
            "inputs": [*(_tensor(case, tensor) for tensor in gradient_first), *_written_attributes(case)],
        }

    def document(self, rows: Sequence[Any]) -> str:
        return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n"


def _inputs(row: Item) -> tuple[dict[str, Item], dict[str, Any]]:
    """Return (tensors, attributes) by our names; `RowError` names an input that is not known or there twice."""
    given = row.get("inputs")
    if not isinstance(given, list):
        raise RowError("inputs: there must be a list of them")
    tensors: dict[str, Item] = {}
    attributes: dict[str, Any] = {}
    for item in given:
        name, value = _attribute_list(item) if isinstance(item, list) else _named(item)
        ours = _NAMES.get(name)
        if ours is None:
            raise RowError(f"inputs: {name!r} is none of {', '.join(_NAMES)}")
        if ours in tensors or ours in attributes:
            raise RowError(f"{name}: it is there twice")
        if name in TENSORS:
            if not isinstance(item, Mapping):
                raise RowError(f"{name}: a tensor is one object, not a list of them")
            tensors[ours] = item
        else:
            attributes[ours] = value
    if "self" not in tensors:
        raise RowError("self: the row has no such tensor")
    return tensors, attributes


def _named(item: Any) -> tuple[str, Any]:
    """Return (name, what its range says) of an input."""
    if not isinstance(item, Mapping) or "name" not in item:
        raise RowError(f"inputs: {item!r:.40} is no input with a name")
    return str(item["name"]), item.get("range_values")


def _attribute_list(items: Sequence[Any]) -> tuple[str, list[Any]]:
    """Read an attribute that is a list of objects of one name, each with one value."""
    named = [_named(item) for item in items]
    names = {name for name, _ in named}
    if len(names) != 1:
        raise RowError(f"inputs: a list of values has the names {', '.join(sorted(names)) or 'of nothing'}")
    return named[0][0], [value for _, value in named]


def _dtype(tensor: str, tensors: Mapping[str, Item]) -> str:
    return dtype_named(f"{tensor}.dtype", tensors[tensor].get("dtype"))


def _shape(tensor: str, tensors: Mapping[str, Item]) -> list[Any]:
    given = tensors[tensor].get("shape")
    if not isinstance(given, list):
        raise RowError(f"{tensor}.shape: {given!r} is no list")
    return given


def _windows(api: Operator, attributes: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Read the attributes of the windows, which the adaptive backwards are told as well."""
    known = {attribute.name for attribute in api.windows.attributes()}
    for name in attributes:
        if name not in known:
            raise RowError(f"{name}: {api.name} has no such attribute")
    given = dict(attributes)
    if given.get("ceil_mode") in (["inf"], ["-inf"]):  # no range of a bool: the tool draws either
        given["ceil_mode"] = bool(RandomStream(seed, "ceil_mode").uniform(1)[0] < 0.5)
    return {name: value if name == "ceil_mode" or isinstance(value, list) else [value] for name, value in given.items()}


def _gradient(api: Operator, tensors: Mapping[str, Item], dtype: str, seed: int) -> str:
    """Return the recipe of the gradient that the tool gives a backward with a self of ``dtype``."""
    if "grad_output" not in tensors:
        raise RowError("grad_output: a backward needs one")
    own_dtype = _dtype("grad_output", tensors)
    if own_dtype != dtype:
        raise RowError(f"grad_output.dtype: {own_dtype} is not that of self, {dtype}")
    recipe = declared_recipe("grad_output", tensors["grad_output"].get("range_values"), dtype, seed)
    return pointed.__name__ if issubclass(api.windows, Adaptive) else recipe


def _standard(row: Item) -> OwnStandard:
    given = row.get("standard")
    acc = given.get("acc") if isinstance(given, Mapping) else given
    if acc is None:
        return OwnStandard()
    if isinstance(acc, str):
        return OwnStandard(acc, _STANDARDS.get(acc, ""))
    if not isinstance(acc, Mapping) or len(acc) != 1:
        raise RowError(f"standard.acc: {acc!r:.60} names no single standard")
    ((name, settings),) = acc.items()
    kind = settings.get("type", "") if isinstance(settings, Mapping) else ""
    return OwnStandard(f"{name} {kind}".strip(), _STANDARDS.get(name, ""))


_RANGES: Mapping[str, Any] = {
    "normal": {"name": "nd", "mean": [0, 0], "std": [1, 1]},
    "constant": 1.5,
    "negative": [-9, -1],
    "negative_infinity": ["-inf"],
    "all_nan": ["nan"],
    "ones": 1,
}
"""Ranges that say what a recipe of ours draws."""


def _range(recipe: str) -> Any:
    if recipe in _RANGES:
        return _RANGES[recipe]
    match parse_spread(recipe):
        case Spread("between", (low, high)):
            return [low, high]
        case Spread("gaussian", (mean, deviation)):
            return {"name": "nd", "mean": [mean, mean], "std": [deviation, deviation]}
        case Spread("filled", (value,)):
            return value if value - value == 0.0 else [str(value)]
        case _:
            raise NotExpressible(f"ATK has no range for data of the recipe {recipe}")


def _tensor(case: Case, tensor: str) -> dict[str, Any]:
    name, shape = _THEIRS[tensor], list(case.tensor_shape(tensor))
    if tensor == "indices":
        return _item(name, "tensor", case.index_dtype, shape, [0, max(case.plane_size - 1, 0)])
    if tensor == "grad_output" and issubclass(case.api.windows, Adaptive):
        if case.gradient != pointed.__name__:
            raise NotExpressible("ATK's executors give the adaptive backwards their forward's output as gradient")
        return _item(name, "tensor", _SPELLED[case.dtype], shape, 0)
    if tensor == "grad_output" and case.gradient == pointed.__name__:
        raise NotExpressible("ATK's executors give the windowed backwards the gradient that is listed")
    return _item(name, "tensor", _SPELLED[case.dtype], shape, _range(case.recipe(tensor)))


def _written_attributes(case: Case) -> Iterator[Any]:
    kind = "attr_tuple" if isinstance(case.attributes, Adaptive) else "attrs"
    for attribute in case.api.windows.attributes():
        name, value = _THEIRS[attribute.name], getattr(case.attributes.passed(), attribute.name)
        if isinstance(value, bool):
            yield _item(name, "attr", "bool", None, value)
        else:
            yield [_item(name, kind, "int", None, item) for item in value or case.attributes.sizes]


def _item(name: str, kind: str, dtype: str, shape: list[int] | None, values: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "required": True, "dtype": dtype, "shape": shape, "range_values": values}
