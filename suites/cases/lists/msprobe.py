"""Dumps of msprobe: the calls of max pools in a ``dump.json``, which a training recorded, are the rows.

A dump holds each tensor's dtype, shape and range, from which the tool draws data of its own, as is done here. A
backward takes its attributes from the forward of the same number. A module (level L0) is recorded without its
attributes, so that it is no row. Source: the guide of dumps and ``data_generate.py`` of Ascend/mstt at 99c2e0fa.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from poolproof.references.operators import BACKWARDS
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.entry import Entry, OwnStandard
from poolproof.suites.cases.lists.base import ListFormat
from poolproof.suites.cases.lists.fields import RowError, declared_recipe, dtype_named, legal_case, seed_of
from poolproof.suites.cases.lists.torch_calls import torch_attributes, torch_operator


class Msprobe(ListFormat):
    name = "msprobe"
    looks = "a dump.json of level L1 or mix"

    def recognises(self, text: str) -> bool:
        return text.lstrip().startswith("{") and '"data"' in text and '"input_args"' in text

    def entries(self, text: str, label: str) -> Iterator[Entry]:
        calls = json.loads(text).get("data")
        if not isinstance(calls, dict):
            raise ValueError("its data are no object")
        for number, name in enumerate(calls, 1):
            if "max_pool" in name and not name.startswith("Module."):
                yield self.entry((name, calls), label, number)

    def name_of(self, row: Any, number: int) -> str:  # noqa: ARG002
        return row[0]

    def read(self, row: Any, name: str) -> tuple[Case, OwnStandard]:
        calls = row[1]
        is_backward, seed = name.endswith(".backward"), seed_of(name)
        forward = calls.get(name.removesuffix("backward") + "forward" if is_backward else name)
        if not isinstance(forward, Mapping):
            raise RowError("its forward, which has the attributes, is not in the dump")
        api = torch_operator(name.rpartition(".")[0])
        positional, named = (_value(forward.get(field)) for field in ("input_args", "input_kwargs"))
        if not isinstance(positional, list) or not isinstance(named, dict):
            raise RowError("input_args, input_kwargs: a call has a list and an object")
        given, *positional = [named.pop("input"), *positional] if "input" in named else positional or [None]
        if not _is_tensor(given) or api.is_backward:
            raise RowError("input_args: a pool takes a tensor first, and its backward is recorded under its own name")
        dtype, shape = dtype_named("dtype", given.get("dtype")), given["shape"]
        record = {"operator": api.name, "shape": shape, "dtype": dtype, "seed": seed}
        record |= torch_attributes(api, shape, positional, named)
        record["values"] = _recipe("self", given, dtype, seed)
        if is_backward:
            gradients = calls[name].get("input") if isinstance(calls[name], dict) else None
            gradient: Any = gradients[0] if isinstance(gradients, list) and gradients else None
            if not _is_tensor(gradient):
                raise RowError("input: a backward has the gradient there")
            (backward,) = (each for each in BACKWARDS if each.producer == api.name)
            record |= {"operator": backward.name, "gradient": _recipe("grad_output", gradient, dtype, seed)}
        return legal_case(record), OwnStandard()


def _is_tensor(argument: Any) -> bool:
    is_tensor = isinstance(argument, Mapping) and str(argument.get("type")).endswith("Tensor")
    return is_tensor and isinstance(argument.get("shape"), list)


def _value(argument: Any) -> Any:
    """Return an argument, a list or an object of them with the numbers that they were; tensors as they are recorded."""
    if isinstance(argument, list):
        return [_value(each) for each in argument]
    if not isinstance(argument, Mapping) or _is_tensor(argument):
        return argument
    return argument["value"] if "value" in argument else {name: _value(each) for name, each in argument.items()}


def _recipe(tensor: str, recorded: Mapping[str, Any], dtype: str, seed: int) -> str:
    bounds = [recorded.get(f"{bound}_except_inf_nan", recorded.get(bound)) for bound in ("Min", "Max")]
    return declared_recipe(tensor, [0, 0] if 0 in recorded["shape"] else bounds, dtype, seed)
