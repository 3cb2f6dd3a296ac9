"""Low-level calls, complete and immutable, with conversion from and to JSON.

The JSON is one object. Observed statuses are recorded in this form:

    {"api": "aclnnMaxPool2dWithIndicesBackward",
     "tensors": {"gradOutput": {"shape": [1, 1, 2, 2], "dtype": "FLOAT", "format": "NCHW", "strides": [4, 4, 2, 1],
                                "offset": 0, "storage": [1, 1, 2, 2]},
                 "self": {...}, "indices": null, "gradInput": {...}},
     "lists": {"kernelSize": [2, 2], "stride": [], "padding": null, "dilation": [1]},
     "ceilMode": false,
     "null_outputs": {"workspaceSize": false, "executor": false}}

``tensors`` and ``lists`` contain exactly the names that the API takes; null stands for a null pointer. ``strides`` and
``offset`` count elements, ``storage`` is the shape of the allocation; a contiguous tensor needs none of them. ``lists``
is null if the API takes none, and ``ceilMode`` for adaptive APIs. ``null_outputs`` may be missing if no out-pointer is
null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, Union

from poolproof.references.contract.vocabulary import DTYPES, OUT_POINTERS, SIGNATURES, TAGS, Signature


class ContractError(ValueError):
    """An impossible call, clause or product. The text says what is wrong and what is expected."""


@dataclass(frozen=True)
class TensorArgument:
    """The description of an aclTensor, without its data."""

    shape: tuple[int, ...]
    dtype: str
    format: str
    strides: tuple[int, ...]
    offset: int
    storage: tuple[int, ...]

    @classmethod
    def contiguous(cls, shape: tuple[int, ...], dtype: str, tag: str) -> TensorArgument:
        return cls(shape, dtype, tag, row_major_strides(shape), 0, shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_empty(self) -> bool:
        return 0 in self.shape

    @property
    def view(self) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
        return self.strides, self.offset, self.storage

    def reshaped(self, shape: tuple[int, ...]) -> TensorArgument:
        """Return a contiguous tensor of another shape, with the same dtype and tag."""
        return TensorArgument.contiguous(shape, self.dtype, self.format)

    def to_record(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}


ArgumentValue = Union[TensorArgument, tuple[int, ...], bool, None]
"""A tensor, a list, a flag or a null pointer."""


@dataclass(frozen=True)
class ContractCall:
    """The arguments of one call of phase one, including null pointers."""

    api: str
    tensors: Mapping[str, TensorArgument | None]
    lists: Mapping[str, tuple[int, ...] | None] = field(default_factory=dict)
    ceil_mode: bool | None = None
    null_outputs: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensors", _unchanging(self.tensors))
        object.__setattr__(self, "lists", _unchanging(self.lists))

    def __hash__(self) -> int:
        """Hash the fields; a mapping has no hash."""
        given = frozenset(self.tensors.items()), frozenset(self.lists.items())
        return hash((self.api, *given, self.ceil_mode, self.null_outputs))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as JSON, because a mapping proxy cannot be pickled."""
        return ContractCall.from_json, (self.to_json(),)

    @property
    def signature(self) -> Signature:
        return SIGNATURES[self.api]

    def values(self) -> dict[str, ArgumentValue]:
        """Return all arguments of phase one except the out-pointers, in API order."""
        flags = dict.fromkeys(self.signature.flags, bool(self.ceil_mode))
        given: dict[str, ArgumentValue] = {**self.tensors, **self.lists, **flags}
        return {argument.name: given[argument.name] for argument in self.signature.arguments}

    def tensor(self, name: str) -> TensorArgument:
        """Return a tensor; raise `ContractError` if it is null."""
        tensor = self.tensors[name]
        if tensor is None:
            raise ContractError(f"{name} is a null pointer in this call")
        return tensor

    def attribute(self, name: str) -> tuple[int, ...]:
        """Return an attribute list; raise `ContractError` if it is null."""
        values = self.lists[name]
        if values is None:
            raise ContractError(f"{name} is a null pointer in this call")
        return values

    def is_null(self, name: str) -> bool:
        return name in self.null_outputs or None in (self.tensors.get(name, self), self.lists.get(name, self))

    def with_tensors(self, tensors: Mapping[str, TensorArgument | None]) -> ContractCall:
        given = {**self.tensors, **tensors}
        return ContractCall(self.api, given, self.lists, self.ceil_mode, self.null_outputs)

    def with_lists(self, lists: Mapping[str, tuple[int, ...] | None]) -> ContractCall:
        given = {**self.lists, **lists}
        return ContractCall(self.api, self.tensors, given, self.ceil_mode, self.null_outputs)

    def with_null(self, name: str) -> ContractCall:
        if name in OUT_POINTERS:
            return replace(self, null_outputs=self.null_outputs | {name})
        return self.with_lists({name: None}) if name in self.lists else self.with_tensors({name: None})

    def to_record(self) -> dict[str, Any]:
        """Make the JSON object of the module's docstring, with every field."""
        return {
            "api": self.api,
            "tensors": {name: tensor and tensor.to_record() for name, tensor in self.tensors.items()},
            "lists": {name: None if values is None else list(values) for name, values in self.lists.items()} or None,
            "ceilMode": self.ceil_mode,
            "null_outputs": {name: name in self.null_outputs for name in OUT_POINTERS},
        }

    def to_json(self) -> str:
        return json.dumps(self.to_record(), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> ContractCall:
        """Read one JSON object; `ContractError` says what is wrong with it."""
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ContractError(f"a call is one JSON object, and this is not JSON: {error}") from error
        return cls.from_record(record)

    @classmethod
    def from_record(cls, record: Any) -> ContractCall:
        """Read the JSON object of the module's docstring; `ContractError` says what is wrong with it."""
        fields = _read_object("a call", record, ("api", "tensors"), ("lists", "ceilMode", "null_outputs"))
        if not isinstance(fields["api"], str) or fields["api"] not in SIGNATURES:
            raise ContractError(f"api {fields['api']!r} is not one of {', '.join(SIGNATURES)}")
        signature = SIGNATURES[fields["api"]]
        tensors = _read_object("tensors", fields["tensors"], signature.tensors)
        lists = _read_object("lists", fields.get("lists") or {}, signature.lists)
        return cls(
            api=fields["api"],
            tensors={name: _read_tensor(name, tensors[name]) for name in signature.tensors},
            lists={
                name: None if values is None else _read_integers(name, values)
                for name, values in ((name, lists[name]) for name in signature.lists)
            },
            ceil_mode=_read_ceil_mode(signature, fields.get("ceilMode")),
            null_outputs=_read_null_outputs(fields.get("null_outputs")),
        )


Field = Literal["dtype", "format", "shape", "view", "values", "flag", "null"]
"""Of a tensor: its dtype, tag, shape (then contiguous) or view (strides, offset in elements, storage shape). Also the
values of a list, ceilMode, or a null pointer."""


@dataclass(frozen=True)
class Change:
    """One field of one argument, and its new value; for a tensor, this may be a function of the old value."""

    argument: str
    field: Field
    value: Any = None

    def applied(self, call: ContractCall) -> ContractCall:
        """Apply the change. A null pointer without such a field leaves the call unchanged."""
        if self.field == "null":
            return call.with_null(self.argument)
        if self.field == "flag":
            return replace(call, ceil_mode=self.value)
        if self.field == "values":
            return call.with_lists({self.argument: self.value})
        tensor = call.tensors[self.argument]
        if tensor is None:
            return call
        value = self.value(getattr(tensor, self.field)) if callable(self.value) else self.value
        if self.field == "shape":
            tensor = tensor.reshaped(value)
        elif self.field != "view":
            tensor = replace(tensor, **{self.field: value})
        elif len(value[0]) == tensor.rank:
            tensor = replace(tensor, strides=value[0], offset=value[1], storage=value[2])
        return call.with_tensors({self.argument: tensor})

    def __str__(self) -> str:
        """Describe the change as a clause of a sentence."""
        if self.field == "null":
            return f"{self.argument} is a null pointer"
        if self.field == "flag":
            return f"{self.argument} is {str(self.value).lower()}"
        if self.field == "values":
            return f"{self.argument} is {list(self.value)}"
        if self.field == "dtype":
            return f"{self.argument} has dtype {self.value}"
        if self.field == "format":
            return f"{self.argument} is tagged {self.value}"
        if self.field == "shape":
            return f"{self.argument} has shape {list(self.value)}"
        strides, offset, storage = self.value
        layout = f"strides {list(strides)} and offset {offset}"
        return f"{self.argument} has {layout} in a storage of shape {list(storage)}"


Changes = tuple[Change, ...]
"""Changes that are made together, in order."""


def changed(call: ContractCall, changes: Changes) -> ContractCall:
    for change in changes:
        call = change.applied(call)
    return call


def wrapped(value: int) -> int:
    """Wrap ``value`` to a signed 64-bit integer."""
    return (value + 2**63) % 2**64 - 2**63


def _unchanging(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Copy to a read-only mapping, unless it is one already."""
    return given if isinstance(given, MappingProxyType) else MappingProxyType(dict(given))


@lru_cache(1 << 12)
def row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Compute a contiguous tensor's strides in elements, as torch does: an axis of length 0 counts as 1.

    Strides wrap to 64 bits.
    """
    strides: list[int] = []
    step = 1
    for length in reversed(shape):
        strides.insert(0, wrapped(step))
        step *= max(length, 1)
    return tuple(strides)


def _read_object(name: str, value: Any, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ContractError(f"{name} must be a JSON object, not {value!r}")
    known = (*required, *optional)
    for key in value:
        if key not in known:
            raise ContractError(f"{name} has no field {key!r}; it has {', '.join(known) or 'none'}")
    for key in required:
        if key not in value:
            raise ContractError(f"{name} needs the field {key!r}")
    return value


def _read_tensor(name: str, value: Any) -> TensorArgument | None:
    if value is None:
        return None
    fields = _read_object(name, value, ("shape", "dtype", "format"), ("strides", "offset", "storage"))
    shape = _read_integers(f"{name}.shape", fields["shape"])
    strides = _read_integers(f"{name}.strides", fields.get("strides", list(row_major_strides(shape))))
    if len(strides) != len(shape):
        raise ContractError(f"{name}.strides has {len(strides)} values for {len(shape)} axes")
    return TensorArgument(
        shape=shape,
        dtype=_read_word(f"{name}.dtype", fields["dtype"], tuple(DTYPES)),
        format=_read_word(f"{name}.format", fields["format"], TAGS),
        strides=strides,
        offset=_read_integers(f"{name}.offset", [fields.get("offset", 0)])[0],
        storage=_read_integers(f"{name}.storage", fields.get("storage", list(shape))),
    )


def _read_integers(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(item) is int for item in value):
        raise ContractError(f"{name} must be a list of integers, not {value!r}")
    return tuple(value)


def _read_word(name: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ContractError(f"{name} {value!r} is not one of {', '.join(known)}")
    return str(value)


def _read_ceil_mode(signature: Signature, value: Any) -> bool | None:
    if bool(signature.flags) != isinstance(value, bool) or value not in (None, True, False):
        wanted = "true or false" if signature.flags else "null, for this API has none"
        raise ContractError(f"ceilMode must be {wanted}, not {value!r}")
    return value if signature.flags else None


def _read_null_outputs(value: Any) -> frozenset[str]:
    flags = _read_object("null_outputs", value or {}, (), OUT_POINTERS)
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise ContractError(f"null_outputs.{name} must be true or false, not {flag!r}")
    return frozenset(name for name, flag in flags.items() if flag)
