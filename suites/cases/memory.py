"""Calls in guarded memory: tensors laid out between guard bands, of which outputs are poisoned.

`CaseOperands` says what the tensors mean; here are the bytes around them. Memory is laid out the same each time, so
that its content before a call is known afterwards without a copy.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Call, Tensor
from poolproof.references.layouts import BITS, Form, MemoryLayout
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import CaseOperands

GUARD_BYTES = 512
"""Shortest length of a guard band; a multiple of every alignment a kernel might write in."""

SHIFT_BYTES = 64
"""By how much calls made again move their tensors: what the memory page guarantees of an address, and no more."""

ALIGNMENT = 64
"""Alignment of tensors in bytes, as the allocators of frameworks guarantee it."""

POISONS = ((0xFF, 0x5A), (0xFF, 0x00), (0x5A, 0xFF))
"""Pairs of bytes for memory nobody has written: for a call, and for the same call made again.

One of a pair is a NaN (or -1) in every dtype, the other a finite value. Zeros are what callers often give; they come
second, because a refused call that clears its outputs is to be seen.
"""

TEMPTING = 1000.0
"""The gradient behind grad_output for those who read on: finite in every dtype, and larger than rounding."""

GAP_FILL = 0x03
"""The byte around the elements of outputs: a small number in every dtype, which changes by whatever is added to it, as
a NaN would not."""


def _own_memory(size: int, beyond: int) -> NDArray[np.uint8]:
    """Memory of this process, with a fence where it is not to be left for so many bytes."""
    return fenced(size, beyond) if beyond else np.empty(size, np.uint8)


Allocator = Callable[[int, int], NDArray[np.uint8]]

allocator: Allocator = _own_memory
"""Where the memory of large tensors comes from: (bytes, bytes behind them that may not be touched) -> any content."""

SMALL = 1 << 16
"""Bytes of tensors, guard bands included, up to which a copy is little beside what judging takes anyway."""


def allocate(
    operands: CaseOperands,
    layouts: Mapping[str, MemoryLayout] | None = None,
    index_dtype: str | None = None,
    again: bool = False,
) -> Call:
    """Place a call in fresh memory: fill the inputs, and poison the outputs, all gaps and all guard bands.

    ``layouts`` and ``index_dtype`` replace the case's own. Poison and length of guard bands depend on the case. A call
    made ``again`` has other poison, and its storages begin `SHIFT_BYTES` later. Behind the tensors of a backward it has
    legal indices and large finite gradients, so that a kernel that reads too far adds something. Memory behind a guard
    band takes what a kernel writes by an index past the last plane. Outputs come first: they live longer than the
    inputs of most runs, and an arena takes back all memory behind them.
    """
    case, beyond = operands.case, operands.elements_past_end
    poison, guard = poisons(case)[again], _guard(case) + again * SHIFT_BYTES
    forms = case.forms
    if layouts is not None or index_dtype is not None:
        forms = case.forms_in(case.laid_out if layouts is None else layouts, index_dtype or case.index_dtype)
    placed = [forms[name] for name in (*case.api.outputs, *case.api.inputs)]
    take = allocator if beyond else _in_one_piece([2 * guard + form.nbytes for form in placed])
    outputs = {name: _tensor(forms[name], guard, GAP_FILL, take, beyond) for name in case.api.outputs}
    for name, output in outputs.items():
        output.array.view(forms[name].bits).fill(_pattern(poison, output.dtype.itemsize))
    tensors = {name: _input(forms[name], operands, name, poison, guard, take) for name in case.api.inputs} | outputs
    if again and case.api.is_backward and not case.has_bit_mask and not beyond:
        _elements_behind(tensors["grad_output"])[...] = TEMPTING
        places, step = _elements_behind(tensors["indices"]), max(1, case.plane_size // 61)
        places[...] = case.plane_size - 1 - np.arange(len(places)) % -(-case.plane_size // step) * step
    return Call(case.api, case.attributes, tensors, case.deterministic)


def poisons(case: Case) -> tuple[int, int]:
    """Return the bytes that fill the memory of a call, and of the same call made again."""
    return POISONS[case.seed % len(POISONS)]


def _guard(case: Case) -> int:
    return GUARD_BYTES * (1 + case.seed // len(POISONS) % 2)


def _in_one_piece(sizes: Sequence[int]) -> Allocator:
    """Take the memory of small tensors together, of this process, and give it out piece by piece."""
    starts = [0, *accumulate(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)]
    if starts[-1] > SMALL:
        return allocator
    piece, left = np.empty(starts[-1], np.uint8), iter(starts)
    return lambda size, _: piece[(start := next(left)) : start + size]


def rebuild_input(operands: CaseOperands, name: str) -> Tensor:
    """Make an input of `allocate` once more: what its memory held before the call."""
    case = operands.case
    return _input(case.forms[name], operands, name, poisons(case)[0], _guard(case), _own_memory)


def holds_poison(elements: NDArray, poison: int) -> NDArray[np.bool_]:
    """Find the elements that hold nothing but that byte."""
    return as_bits(elements) == _pattern(poison, elements.itemsize)


def as_bits(elements: NDArray) -> NDArray:
    """View the memory as an unsigned integer for each element."""
    return elements.view(BITS[elements.itemsize])


def written_text(call: Call) -> str:
    """How many elements of its outputs a call has written, in words."""
    outputs = {name: call.tensors[name].array for name in call.operator.outputs}
    poison = int(call.tensors[call.operator.inputs[0]].buffer[0])
    left = {name: int(holds_poison(array, poison).sum()) for name, array in outputs.items()}
    return ", ".join(f"{array.size - left[name]} of {array.size} elements of {name}" for name, array in outputs.items())


def has_gaps(tensor: Tensor) -> bool:
    """Tell whether some storage of an output belongs to no element; its elements share no memory."""
    return tensor.storage_elements != prod(tensor.shape)


def has_intact_guards(tensor: Tensor, byte: int) -> bool:
    """Tell whether both guard bands hold nothing but that byte."""
    buffer, guard = tensor.buffer, tensor.guard
    return buffer[:guard].tobytes() == bytes((byte,)) * guard == buffer[len(buffer) - guard :].tobytes()


def lies_outside(tensor: Tensor) -> NDArray[np.bool_]:
    """Mark the pieces of the buffer, each as long as an element, that belong to no element of the view."""
    mask, width = np.ones(len(tensor.buffer) // tensor.dtype.itemsize, bool), tensor.dtype.itemsize
    np.ndarray(tensor.shape, bool, mask.data, tensor.guard // width + tensor.offset, tensor.strides)[...] = False
    return mask


def guard_and_gap_mask(tensor: Tensor) -> NDArray[np.bool_]:
    """Mark the bytes of the buffer that belong to no element of the view."""
    return lies_outside(tensor).repeat(tensor.dtype.itemsize)


def _input(form: Form, operands: CaseOperands, name: str, poison: int, guard: int, take: Allocator) -> Tensor:
    tensor, case = _tensor(form, guard, poison, take), operands.case
    if name == "self":
        tensor.array[...] = operands.values
    elif name == "grad_output":
        tensor.array[...] = operands.gradient
    elif case.has_bit_mask:
        tensor.array[...] = 0 if operands.mask is None else operands.mask
    else:
        case.api.indices.encode(operands.indices, tensor.array)
    return tensor


def _elements_behind(tensor: Tensor) -> NDArray[Any]:
    """View the guard band behind a tensor as elements of it."""
    width = tensor.dtype.itemsize
    band = tensor.buffer[len(tensor.buffer) - tensor.guard :]
    return band[: tensor.guard // width * width].view(tensor.dtype)


_SHORT = 1 << 12
"""Bytes up to which a buffer is filled as a whole, elements included."""


def _tensor(form: Form, guard: int, fill: int, take: Allocator, beyond: int = 0) -> Tensor:
    """Place a tensor in fresh memory, with the byte ``fill`` in guard bands and gaps.

    Without gaps its elements are left for whoever fills them. There is a fence where ``beyond`` elements behind it may
    not be touched.
    """
    size = 2 * guard + form.nbytes
    buffer = take(size, beyond * form.dtype.itemsize)
    if size > _SHORT and form.is_dense:
        buffer[:guard] = buffer[size - guard :] = fill
    else:
        buffer.fill(fill)
    elements = np.ndarray(form.shape, form.dtype, buffer, guard + form.start_byte, form.byte_strides)
    return Tensor(buffer, guard, elements, form.strides, form.start, form.tag)


@cache
def _pattern(byte: int, length: int) -> int:
    """Repeat the byte to an unsigned integer of ``length`` bytes."""
    return int.from_bytes(bytes([byte]) * length, "little")


_ALIGNMENT = 16
"""Of the first byte of fenced memory; so many bytes less one may lie between the last one and the fence."""

_NO_ACCESS = 0
"""PROT_NONE of mmap(2)."""


def fenced(size: int, beyond: int) -> NDArray[np.uint8]:
    """Map ``size`` bytes of zeros, behind which the next ``beyond`` bytes may be neither read nor written.

    Whoever touches them is ended by a signal there and then, and damages nothing else.
    """
    inside, outside = whole_pages(size + _ALIGNMENT), whole_pages(beyond)
    pages = np.frombuffer(mmap.mmap(-1, inside + outside), np.uint8)
    fence = ctypes.c_void_p(pages.ctypes.data + inside)
    if ctypes.CDLL(None, use_errno=True).mprotect(fence, ctypes.c_size_t(outside), _NO_ACCESS):
        raise OSError(ctypes.get_errno(), "mprotect puts no fence behind memory")
    start = (inside - size) // _ALIGNMENT * _ALIGNMENT
    return pages[start : start + size]


def whole_pages(size: int) -> int:
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
