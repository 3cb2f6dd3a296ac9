"""From data to a call: tensors laid out in guarded memory, of which outputs are poisoned.

What the tensors mean is decided elsewhere (`Contents`); here are the bytes around them. Memory is laid out the same
each time, so that what it held before a call can be told after it without a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Call, Tensor
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.fence import fenced
from poolproof.suites.cases.forms import BITS, Form
from poolproof.suites.cases.layouts import Layout
from poolproof.suites.cases.operands import Contents

GUARD_BYTES = 512
"""Length of a guard band; a multiple of every alignment a kernel might write in."""

SHIFT_BYTES = 64
"""By how much repetitions move their tensors: what the memory page guarantees of an address, and no more."""

POISONS = (0xFF, 0x5A)
"""Two byte patterns for memory nobody has written: a NaN (or -1) and a finite value in every dtype."""

SURROUNDINGS = 0x03
"""The byte around the elements of outputs: a small number in every dtype, which changes by whatever is added to it, as
a NaN would not."""


def _own_memory(size: int, beyond: int) -> NDArray[np.uint8]:
    """Memory of this process, with a fence where it is not to be left for so many bytes."""
    return fenced(size, beyond) if beyond else np.empty(size, np.uint8)


allocator = _own_memory
"""Where the memory of tensors comes from: (bytes, bytes behind them that may not be touched) -> any content."""


def allocate(
    content: Contents,
    poison: int,
    layouts: Mapping[str, Layout] | None = None,
    index_dtype: str | None = None,
    shift: int = 0,
) -> Call:
    """A call on fresh memory: inputs filled, outputs poisoned, and of inputs the gaps and guard bands, too.

    ``layouts`` and ``index_dtype`` replace the case's own. ``shift`` moves every storage by that many `SHIFT_BYTES`.
    What indices point past the last plane is fenced in, behind the guard band.
    """
    case = content.case
    guard = GUARD_BYTES + shift * SHIFT_BYTES
    forms = _forms(case, layouts, index_dtype)
    tensors = {name: _input(forms[name], content, name, poison, guard) for name in case.api.inputs}
    for name in case.api.outputs:
        tensors[name] = _output(forms[name], content.beyond, poison, guard)
    return Call(case.api, case.attributes, tensors, case.deterministic)


def kept_inputs(call: Call) -> dict[str, bytes]:
    """The memory of those inputs that are short, as it is now: to keep that costs less than to make it once more."""
    buffers = {name: call.tensors[name].buffer for name in call.operator.inputs}
    return {name: buffer.tobytes() for name, buffer in buffers.items() if len(buffer) <= _KEPT}


_KEPT = 1 << 16
"""Bytes of an input, guard bands included, that are kept beside it: little beside what judging takes anyway."""


def as_before(content: Contents, name: str, poison: int) -> Tensor:
    """An input of `allocate` once more: what its memory held before the call."""
    return _input(content.case.forms[name], content, name, poison, GUARD_BYTES)


def holds_poison(elements: NDArray, poison: int) -> NDArray[np.bool_]:
    """Which elements hold nothing but that byte."""
    return as_bits(elements) == _pattern(poison, elements.itemsize)


def as_bits(elements: NDArray) -> NDArray:
    """The same memory, with an unsigned integer for each element."""
    return elements.view(BITS[elements.itemsize])


def element_bytes(tensor: Tensor) -> NDArray[np.uint8]:
    """The bytes of the elements, those of one element along a last axis, in the tensor's own memory."""
    return _of_elements(tensor, tensor.buffer)


def _of_elements(tensor: Tensor, memory: NDArray[Any]) -> NDArray[Any]:
    """What ``memory``, which has an entry for each byte of the tensor's buffer, has for those of its elements."""
    size = tensor.dtype.itemsize
    strides = (*(stride * size for stride in tensor.strides), 1)
    return np.ndarray((*tensor.shape, size), memory.dtype, memory.data, tensor.guard + tensor.offset * size, strides)


def written_text(call: Call) -> str:
    """How many elements of its outputs a call has written, in words."""
    outputs = {name: call.tensors[name].array for name in call.operator.outputs}
    left = {name: sum(int(holds_poison(array, poison).sum()) for poison in POISONS) for name, array in outputs.items()}
    return ", ".join(f"{array.size - left[name]} of {array.size} elements of {name}" for name, array in outputs.items())


def has_gaps(tensor: Tensor) -> bool:
    """Whether some of the storage of an output, whose elements share no memory, belongs to no element."""
    return tensor.storage_elements != prod(tensor.shape)


def is_surrounded(tensor: Tensor, byte: int) -> bool:
    """Whether both guard bands hold nothing but that byte."""
    buffer, guard = tensor.buffer, tensor.guard
    return buffer[:guard].tobytes() == _band(byte, guard) == buffer[len(buffer) - guard :].tobytes()


@cache
def _band(byte: int, length: int) -> bytes:
    return bytes((byte,)) * length


def guard_and_gap_mask(tensor: Tensor) -> NDArray[np.bool_]:
    """Which bytes of the buffer belong to no element of the view."""
    mask = np.ones(len(tensor.buffer), bool)
    _of_elements(tensor, mask)[...] = False
    return mask


def _forms(case: Case, layouts: Mapping[str, Layout] | None, index_dtype: str | None) -> Mapping[str, Form]:
    if layouts is None and index_dtype is None:
        return case.forms
    if layouts is None:
        layouts = {name: case.layout(name) for name in case.api.tensors}
    return case.forms_in(layouts, index_dtype or case.index_dtype)


def _input(form: Form, content: Contents, name: str, poison: int, guard: int) -> Tensor:
    tensor = _tensor(form, guard, poison)
    _fill(tensor, content, name)
    return tensor


def _output(form: Form, beyond: int, poison: int, guard: int) -> Tensor:
    tensor = _tensor(form, guard, SURROUNDINGS, beyond)
    tensor.array.view(form.bits).fill(_pattern(poison, form.dtype.itemsize))
    return tensor


_SHORT = 1 << 12
"""Bytes that are filled sooner than it is told which of them are going to be filled anyway."""


def _tensor(form: Form, guard: int, surroundings: int, beyond: int = 0) -> Tensor:
    """A tensor on fresh memory, whose guard bands and gaps hold that byte.

    What an element is going to hold is not written twice where there are no gaps. There is a fence where ``beyond``
    elements behind it may not be touched.
    """
    size = 2 * guard + form.nbytes
    buffer = allocator(size, beyond * form.dtype.itemsize)
    if size > _SHORT and form.is_dense:
        buffer[:guard] = buffer[size - guard :] = surroundings
    else:
        buffer.fill(surroundings)
    elements = np.ndarray(form.shape, form.dtype, buffer, guard + form.start_byte, form.byte_strides)
    return Tensor(buffer, guard, elements, form.strides, form.start, form.tag)


@cache
def _pattern(byte: int, length: int) -> int:
    """The unsigned integer of ``length`` times that byte."""
    return int.from_bytes(bytes([byte]) * length, "little")


def meant(content: Contents, name: str) -> NDArray | None:
    """What the elements of an input are filled with, of its size; None where that is bits of a mask."""
    if name == "indices" and not content.case.api.indices.has_layout:
        return None
    return {"self": content.values, "grad_output": content.gradient, "indices": content.indices}[name]


def _fill(tensor: Tensor, content: Contents, name: str) -> None:
    if name == "self":
        tensor.array[...] = content.values
    elif name == "grad_output":
        tensor.array[...] = content.gradient
    elif content.case.has_bit_mask:
        tensor.array[...] = 0 if content.mask is None else content.mask
    else:
        assert content.indices is not None
        content.case.api.indices.encode(content.indices, tensor.array)
