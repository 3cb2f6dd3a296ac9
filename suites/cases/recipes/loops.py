"""Compiled loops that draw numbers and place gradients, for a few elements as for many.

Numbers are those of Philox4x64-10 (Salmon et al., 2011) as numpy's ``random_raw`` gives them: number i of a key is word
``i % 4`` of the block whose counter is ``i // 4 + 1``. A draw begins at any number. A key's two words, of which numpy
makes unsigned integers, are here signed ones of the same bits.

All that is compiled here has its helpers here or in `poolproof.references.kernels`: the cache of compiled code looks at
this file and at those alone to know whether it is up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.references.kernels.compiled import Floats, Ints, compiled, helper

_MULTIPLIERS = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_KEY_STEPS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_ROUNDS = 10

_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_DROPPED = np.uint64(11)
"""Bits of a raw number that float64 has no place for."""

_AT_ONCE = 1 << 13
"""Raw numbers of a draw that are kept at a time: benchmarks/large_cases.py shows what it takes to keep them all."""

Words = NDArray[np.unsignedinteger[Any]]
"""Raw numbers, uint64."""


@helper
def _high(a: Any, b: Any) -> Any:
    """Compute the upper 64 bits of the product of two uint64, from products of their halves."""
    a_low, a_high, b_low, b_high = a & _LOW_HALF, a >> _HALF, b & _LOW_HALF, b >> _HALF
    middle = a_high * b_low + ((a_low * b_low) >> _HALF)
    other = a_low * b_high + (middle & _LOW_HALF)
    return a_high * b_high + (middle >> _HALF) + (other >> _HALF)


@helper
def raw(low: int, high: int, first: int, count: int) -> Words:
    """Compute ``count`` raw numbers of a key from the ``first`` on."""
    block, before = first >> 2, first & 3
    words = np.empty(before + count + 3, np.uint64)
    for start in range(0, before + count, 4):
        block += 1
        key, other_key = np.uint64(np.int64(low)), np.uint64(np.int64(high))
        a, b, c, d = np.uint64(block), np.uint64(0), np.uint64(0), np.uint64(0)
        for _ in range(_ROUNDS):
            a, b, c, d = (
                _high(_MULTIPLIERS[1], c) ^ b ^ key,
                _MULTIPLIERS[1] * c,
                _high(_MULTIPLIERS[0], a) ^ d ^ other_key,
                _MULTIPLIERS[0] * a,
            )
            key, other_key = key + _KEY_STEPS[0], other_key + _KEY_STEPS[1]
        words[start], words[start + 1], words[start + 2], words[start + 3] = a, b, c, d
    return words[before : before + count]


@helper
def _below(word: Any, bound: int) -> int:
    """Map a raw number to an integer in [0, bound); ``bound`` is at most 2**32."""
    return int(np.int64(((word >> _HALF) * np.uint64(bound)) >> _HALF))


@helper
def _uniform(word: Any) -> float:
    """Map a raw number to a multiple of 2**-53 in [0, 1)."""
    return np.float64(word >> _DROPPED) * 2.0**-53


@compiled
def fill_below(low: int, high: int, first: int, bound: int, out: Ints) -> None:
    """Draw integers in [0, bound)."""
    for start in range(0, len(out), _AT_ONCE):
        words = raw(low, high, first + start, min(_AT_ONCE, len(out) - start))
        for i in range(len(words)):
            out[start + i] = _below(words[i], bound)


@compiled
def fill_uniform(low: int, high: int, first: int, out: Floats) -> None:
    """Draw multiples of 2**-53 in [0, 1)."""
    for start in range(0, len(out), _AT_ONCE):
        words = raw(low, high, first + start, min(_AT_ONCE, len(out) - start))
        for i in range(len(words)):
            out[start + i] = _uniform(words[i])


@compiled
def fill_normal(low: int, high: int, first: int, out: Floats) -> None:
    """Sum twelve uniforms, less six: all elements' first ones are drawn before their second ones."""
    for start in range(0, len(out), _AT_ONCE):
        count = min(_AT_ONCE, len(out) - start)
        for i in range(count):
            out[start + i] = 0.0
        for draw in range(12):
            words = raw(low, high, first + draw * len(out) + start, count)
            for i in range(count):
                out[start + i] += _uniform(words[i])
        for i in range(count):
            out[start + i] -= 6.0


@compiled
def fill_any(
    low: int, high: int, first: int, choices: Ints, firsts: Ints, step: int, size: int, repeats: int, cells: Ints
) -> None:
    """Go from cells of the axes before to those of one more, of ``size`` cells: a drawn one of each element's window.

    The element's window is the next after every ``repeats`` elements, and the first after the last; it visits
    ``choices`` cells from ``firsts`` on, ``step`` apart.
    """
    words = raw(low, high, first, 0)
    i = 0
    while i < len(cells):
        for window in range(len(choices)):
            for _ in range(repeats):
                if i % _AT_ONCE == 0:
                    words = raw(low, high, first + i, min(_AT_ONCE, len(cells) - i))
                cells[i] = cells[i] * size + firsts[window] + step * _below(words[i % _AT_ONCE], choices[window])
                i += 1


@compiled
def fill_best(scores: Ints, choices: Ints, firsts: Ints, step: int, coordinates: Ints) -> None:
    """Find the first of each window's cells along an axis that has the highest score."""
    for window in range(len(choices)):
        best = firsts[window]
        for tap in range(1, choices[window]):
            coordinate = firsts[window] + tap * step
            if scores[coordinate] > scores[best]:
                best = coordinate
        coordinates[window] = best


def in_space(digits: Iterable[Ints], sizes: Sequence[int]) -> tuple[Ints, Ints, int, Ints, int]:
    """Arrange up to three axes for `fill_numbers`: those that are missing have one window of one cell."""
    missing = 3 - len(sizes)
    depth, height, width = [_ONE] * missing + list(digits)
    _, heights, widths = [1] * missing + list(sizes)
    return depth, height, heights, width, widths


_ONE = np.zeros(1, np.int64)


@compiled
def fill_numbers(depth: Ints, height: Ints, heights: int, width: Ints, widths: int, numbers: Ints) -> None:
    """Assign numbers to all windows of a plane, in every plane, by the digits of the window along each axis.

    There are as many digits along an axis as it says: ``heights`` of height, ``widths`` of width.
    """
    plane = len(depth) * len(height) * len(width)
    for i in range(min(plane, len(numbers))):
        d, h, w = i // (len(height) * len(width)), i // len(width) % len(height), i % len(width)
        numbers[i] = (depth[d] * heights + height[h]) * widths + width[w]
    for i in range(plane, len(numbers)):
        numbers[i] = numbers[i - plane]


@compiled
def most_in_one_cell(indices: Ints, windows: int, plane_size: int) -> int:
    """Count the gradients of the fullest cell, in planes of ``windows`` gradients each; 1 where there are none."""
    counts, largest = np.zeros(plane_size, np.int64), 1
    for plane in range(0, len(indices), max(windows, 1)):
        for i in range(plane, plane + windows):
            counts[indices[i]] += 1
            largest = max(largest, counts[indices[i]])
        for i in range(plane, plane + windows):
            counts[indices[i]] = 0
    return largest
