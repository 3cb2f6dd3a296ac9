"""From data to a call: tensors laid out in guarded memory, of which outputs are poisoned.

What the tensors mean is decided elsewhere (`Contents`); here are the bytes around them. Memory is laid out the same
each time, so that what it held before a call can be told after it without a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Call, Tensor
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.fence import fenced
from poolproof.suites.cases.layouts import CONTIGUOUS, Form, Layout
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
    inputs = {name: _input(forms[name], content, name, poison, guard) for name in case.api.inputs}
    outputs = {name: _output(forms[name], content.beyond, poison, guard) for name in case.api.outputs}
    return Call(case.api, case.attributes, inputs | outputs, case.deterministic)


def as_before(content: Contents, name: str, poison: int) -> Tensor:
    """An input of `allocate` once more: what its memory held before the call."""
    return _input(content.case.forms[name], content, name, poison, GUARD_BYTES)


def holds_poison(elements: NDArray, poison: int) -> NDArray[np.bool_]:
    """Which elements hold nothing but that byte."""
    return as_bits(elements) == _pattern(poison, elements.itemsize)


def as_bits(elements: NDArray) -> NDArray:
    """The same memory, with an unsigned integer for each element."""
    return elements.view(_UNSIGNED[elements.itemsize])


_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def element_bytes(tensor: Tensor) -> NDArray[np.uint8]:
    """The bytes of the elements, those of one element along a last axis, in the tensor's own memory."""
    elements = tensor.array
    start = tensor.guard + tensor.offset * elements.itemsize
    return np.ndarray((*elements.shape, elements.itemsize), np.uint8, tensor.buffer.data, start, (*elements.strides, 1))


def has_gaps(tensor: Tensor) -> bool:
    """Whether some of the storage of an output, whose elements share no memory, belongs to no element."""
    return tensor.storage_elements != prod(tensor.shape)


def is_filled(memory: NDArray[np.uint8], byte: int) -> bool:
    """Whether a stretch of memory, as short as a guard band, holds nothing but that byte."""
    return memory.tobytes() == bytes((byte,)) * len(memory)


def guard_bands(tensor: Tensor) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    return tensor.buffer[: tensor.guard], tensor.buffer[len(tensor.buffer) - tensor.guard :]


def guard_and_gap_mask(tensor: Tensor) -> NDArray[np.bool_]:
    """Which bytes of the buffer belong to no element of the view."""
    elements = np.zeros(tensor.storage_elements, bool)
    view = np.ndarray(tensor.shape, bool, elements.data, offset=tensor.offset, strides=tensor.strides)
    view[...] = True
    mask = np.ones(len(tensor.buffer), bool)
    mask[tensor.guard : len(tensor.buffer) - tensor.guard] = ~np.repeat(elements, tensor.dtype.itemsize)
    return mask


def _forms(case: Case, layouts: Mapping[str, Layout] | None, index_dtype: str | None) -> Mapping[str, Form]:
    if layouts is None and index_dtype is None:
        return case.forms
    chosen = {name: case.layout(name) if layouts is None else layouts.get(name, CONTIGUOUS) for name in case.forms}
    dtypes = {"indices": index_dtype or case.index_dtype}
    return {name: case.form(name, layout, dtypes.get(name, case.dtype)) for name, layout in chosen.items()}


def _tensor(form: Form, guard: int, beyond: int = 0) -> Tensor:
    """A tensor on fresh memory, with a fence where ``beyond`` elements behind it may not be touched."""
    size = 2 * guard + form.storage_bytes
    buffer = fenced(size, beyond * form.dtype.itemsize) if beyond else np.empty(size, np.uint8)
    return Tensor(buffer, guard, form.dtype, form.shape, form.strides, form.start, form.tag)


def _input(form: Form, content: Contents, name: str, poison: int, guard: int) -> Tensor:
    tensor = _tensor(form, guard)
    _surround(tensor, form.is_dense, poison)
    _fill(tensor, content, name)
    return tensor


def _output(form: Form, beyond: int, poison: int, guard: int) -> Tensor:
    tensor = _tensor(form, guard, beyond)
    _surround(tensor, form.is_dense, SURROUNDINGS)
    as_bits(tensor.array)[...] = _pattern(poison, form.dtype.itemsize)
    return tensor


def _surround(tensor: Tensor, is_dense: bool, byte: int) -> None:
    """Fill guard bands and gaps. What an element is going to hold is not written twice where there are no gaps."""
    if not is_dense:
        tensor.buffer[:] = byte
        return
    for band in guard_bands(tensor):
        band[:] = byte


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
