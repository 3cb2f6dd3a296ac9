"""Storage of one tensor: what follows from shape, dtype and layout, whatever and wherever the tensor is."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from poolproof.references.formats import FORMATS
from poolproof.references.indices import INDEX_DTYPES
from poolproof.suites.cases.layouts import MemoryLayout, Shape, Strides, extent


class Form(NamedTuple):
    """``strides`` and ``start``, the place of the first element, count elements of the storage, which has ``extent``.

    ``is_dense``: each of these is one element of the tensor. ``bits`` is the unsigned integer as long as an element;
    ``nbytes`` are those of the storage, of which ``start_byte`` and ``byte_strides`` are for views.
    """

    shape: Shape
    dtype: np.dtype
    strides: Strides
    start: int
    extent: int
    is_dense: bool
    tag: str
    bits: np.dtype
    nbytes: int
    start_byte: int
    byte_strides: Strides


@lru_cache(maxsize=256)
def storage_form(shape: Shape, dtype: str, layout: MemoryLayout, spatial_rank: int) -> Form:
    """Place a tensor in its storage; cached, because the runs and neighbours of a case are laid out alike."""
    numpy_dtype = _DTYPES[dtype]
    size = numpy_dtype.itemsize
    placed = layout.place(shape, spatial_rank)
    elements = placed.start + extent(shape, placed.strides)
    return Form(
        shape,
        numpy_dtype,
        placed.strides,
        placed.start,
        elements,
        is_dense=elements == prod(shape) and not layout.repeats_elements,
        tag=layout.tag,
        bits=BITS[size],
        nbytes=elements * size,
        start_byte=placed.start * size,
        byte_strides=tuple([size * stride for stride in placed.strides]),
    )


_DTYPES = {name: fmt.dtype for name, fmt in FORMATS.items()} | {name: np.dtype(name) for name in INDEX_DTYPES}

BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
"""The unsigned integer of that many bytes."""
