"""Windowed geometries, each known to reach one branch of a library."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from poolproof.references.windows import Windowed


@dataclass(frozen=True)
class KnownGeometry:
    """A windowed geometry that somebody's tests take to reach one branch of a library."""

    branch: str
    spatial: tuple[int, ...]
    windows: Windowed

    @property
    def attributes(self) -> Windowed:
        return self.windows.passed()

    @property
    def cells(self) -> int:
        return prod(self.spatial)


KNOWN_GEOMETRIES = (
    KnownGeometry("cut kernel", (5, 66, 132), Windowed((5, 1, 6), (8, 13, 18))),
    KnownGeometry("cut kernel", (10, 78, 146), Windowed((5, 1, 6), (8, 13, 18), (1, 0, 1))),
    KnownGeometry("normal, one plane at once", (1, 15, 15), Windowed((1, 9, 9), (1, 1, 1), (0, 4, 4))),
    KnownGeometry("normal, without overlap", (16, 90, 16), Windowed((1, 2, 2), (1, 2, 2))),
    KnownGeometry("normal, with overlap", (16, 9, 9), Windowed((1, 3, 3), (1, 2, 2))),
    KnownGeometry("scatter", (23, 20, 8), Windowed((22, 19, 4), (22, 19, 4))),
    KnownGeometry("scatter, rows cut", (40, 38, 16), Windowed((20, 19, 4), (20, 19, 4))),
    KnownGeometry("scatter, columns cut", (1, 40, 1200), Windowed((1, 40, 40), (1, 40, 40))),
    KnownGeometry("simd, aligned", (8, 10, 514), Windowed((2, 2, 2), (2, 2, 2))),
    KnownGeometry("simd, unaligned", (10, 11, 512), Windowed((2, 4, 5), (1, 2, 3), (1, 2, 2))),
    KnownGeometry("simd, unaligned", (9, 10, 480), Windowed((3, 2, 7), (1, 2, 4))),
    KnownGeometry("simd, whole planes", (4, 4, 4), Windowed((2, 2, 2), (2, 2, 2), (1, 1, 1))),
    KnownGeometry("simd, overhang", (2, 33, 257), Windowed((2, 2, 2), (2, 2, 2), ceil_mode=True)),
    KnownGeometry("scalar", (64, 64), Windowed((64, 64), (64, 64))),
    KnownGeometry("simt", (2, 22), Windowed((2, 6), (2, 6), ceil_mode=True)),
    KnownGeometry("simt, a large plane of few windows", (192, 192), Windowed((3, 3), (13, 13))),
    KnownGeometry("simt, a large plane of few windows", (256, 255), Windowed((2, 3), (17, 17))),
    KnownGeometry("vector", (64, 64), Windowed((3, 3), (2, 2), (1, 1))),
    KnownGeometry("channels last", (18, 30), Windowed((2, 2), (2, 2), (1, 1))),
    KnownGeometry("kernel of one", (64, 3), Windowed((1, 1), (1, 1))),
)
"""After the tiling tests that the operator library publishes, made smaller where the branch stays the same."""


def known_geometries(rank: int) -> list[KnownGeometry]:
    """List those of ``rank`` spatial dimensions."""
    return [geometry for geometry in KNOWN_GEOMETRIES if len(geometry.spatial) == rank]
