"""What a call changes in another: one field of one argument at a time, each in words that a person can check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

from poolproof.references.contract.call import ContractCall, TensorArgument
from poolproof.references.contract.facts import Shape, wrapped
from poolproof.references.contract.vocabulary import OUT_POINTERS


class Change(Protocol):
    """One field of one argument, and the value that it is given."""

    @property
    def argument(self) -> str: ...

    def applied(self, call: ContractCall) -> ContractCall:
        """The call with that field changed; as it is where the argument is a null pointer that has no such field."""

    def alters(self, call: ContractCall) -> bool:
        """Whether the call with that field changed is another one."""

    def __str__(self) -> str:
        """Field and value, as a clause of a sentence."""


Changes = tuple[Change, ...]
"""Changes that are made together, in this order."""


def changed(call: ContractCall, changes: Changes) -> ContractCall:
    for change in changes:
        call = change.applied(call)
    return call


def sentence(changes: Changes) -> str:
    """What is changed, in words; no words for no changes."""
    return ", ".join(map(str, changes))


class _OfTensor:
    """A change of one tensor."""

    argument: str

    def edited(self, tensor: TensorArgument) -> TensorArgument:
        raise NotImplementedError

    def applied(self, call: ContractCall) -> ContractCall:
        tensor = call.tensors[self.argument]
        return call if tensor is None else call.with_tensors({self.argument: self.edited(tensor)})

    def alters(self, call: ContractCall) -> bool:
        tensor = call.tensors[self.argument]
        return tensor is not None and self.edited(tensor) != tensor


@dataclass(frozen=True)
class Retyped(_OfTensor):
    """A tensor of another dtype."""

    argument: str
    dtype: str

    def edited(self, tensor: TensorArgument) -> TensorArgument:
        return replace(tensor, dtype=self.dtype)

    def __str__(self) -> str:
        return f"{self.argument} has dtype {self.dtype}"


@dataclass(frozen=True)
class Retagged(_OfTensor):
    """A tensor with another format tag."""

    argument: str
    tag: str

    def edited(self, tensor: TensorArgument) -> TensorArgument:
        return replace(tensor, format=self.tag)

    def __str__(self) -> str:
        return f"{self.argument} is tagged {self.tag}"


@dataclass(frozen=True)
class Reshaped(_OfTensor):
    """A contiguous tensor of another shape."""

    argument: str
    shape: Shape

    def edited(self, tensor: TensorArgument) -> TensorArgument:
        return _contiguous(tensor, self.shape)

    def __str__(self) -> str:
        return f"{self.argument} has shape {list(self.shape)}"


@dataclass(frozen=True)
class Viewed(_OfTensor):
    """A tensor of the same shape, laid out otherwise; strides and offset count elements."""

    argument: str
    strides: Shape
    offset: int
    storage: Shape

    def edited(self, tensor: TensorArgument) -> TensorArgument:
        if len(self.strides) != tensor.rank:
            return tensor
        return replace(tensor, strides=self.strides, offset=self.offset, storage=self.storage)

    def __str__(self) -> str:
        layout = f"strides {list(self.strides)} and offset {self.offset}"
        return f"{self.argument} has {layout} in a storage of shape {list(self.storage)}"


@dataclass(frozen=True)
class Listed:
    """A list of other values."""

    argument: str
    values: Shape

    def applied(self, call: ContractCall) -> ContractCall:
        return call.with_lists({self.argument: self.values})

    def alters(self, call: ContractCall) -> bool:
        return call.lists[self.argument] != self.values

    def __str__(self) -> str:
        return f"{self.argument} is {list(self.values)}"


@dataclass(frozen=True)
class Flagged:
    """Another ceilMode."""

    is_set: bool
    argument: str = "ceilMode"

    def applied(self, call: ContractCall) -> ContractCall:
        return replace(call, ceil_mode=self.is_set)

    def alters(self, call: ContractCall) -> bool:
        return call.ceil_mode != self.is_set

    def __str__(self) -> str:
        return f"ceilMode is {str(self.is_set).lower()}"


@dataclass(frozen=True)
class Nulled:
    """A null pointer, in place of a tensor, a list or what phase one writes its results through."""

    argument: str

    def applied(self, call: ContractCall) -> ContractCall:
        if self.argument in OUT_POINTERS:
            return replace(call, null_outputs=call.null_outputs | {self.argument})
        if self.argument in call.tensors:
            return call.with_tensors({self.argument: None})
        return call.with_lists({self.argument: None})

    def alters(self, call: ContractCall) -> bool:
        return self.applied(call) != call

    def __str__(self) -> str:
        return f"{self.argument} is a null pointer"


def differences(call: ContractCall, model: ContractCall) -> Changes:
    """The changes that make ``call`` of ``model``, another call of the same API without null pointers."""
    tensors = (_of_tensor(name, tensor, model.tensor(name)) for name, tensor in call.tensors.items())
    lists = (_of_list(name, values, model.lists[name]) for name, values in call.lists.items())
    flag: Changes = (Flagged(bool(call.ceil_mode)),) if call.ceil_mode != model.ceil_mode else ()
    pointers = tuple(Nulled(name) for name in OUT_POINTERS if name in call.null_outputs)
    return (*chain(*tensors, *lists), *flag, *pointers)


def nearest(call: ContractCall, models: Mapping[str, ContractCall]) -> tuple[str, Changes]:
    """The one of the models, each under its name, that the fewest changes make the call of, and those changes."""
    made = {name: differences(call, model) for name, model in models.items()}
    name = min(made, key=lambda each: len(made[each]))
    return name, made[name]


def _of_tensor(name: str, tensor: TensorArgument | None, model: TensorArgument) -> Changes:
    if tensor is None:
        return (Nulled(name),)
    found: list[Change] = []
    if tensor.shape != model.shape:
        found.append(Reshaped(name, tensor.shape))
        model = _contiguous(model, tensor.shape)
    if (tensor.strides, tensor.offset, tensor.storage) != (model.strides, model.offset, model.storage):
        found.append(Viewed(name, tensor.strides, tensor.offset, tensor.storage))
    if tensor.dtype != model.dtype:
        found.append(Retyped(name, tensor.dtype))
    if tensor.format != model.format:
        found.append(Retagged(name, tensor.format))
    return tuple(found)


def _of_list(name: str, values: Shape | None, model: Shape | None) -> Changes:
    if values == model:
        return ()
    return (Nulled(name),) if values is None else (Listed(name, values),)


def _contiguous(tensor: TensorArgument, shape: Shape) -> TensorArgument:
    """The contiguous tensor of that shape, with the strides that 64 bits hold."""
    reshaped = tensor.reshaped(shape)
    strides = tuple(map(wrapped, reshaped.strides))
    return reshaped if strides == reshaped.strides else replace(reshaped, strides=strides)
