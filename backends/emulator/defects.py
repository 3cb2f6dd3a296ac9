"""Seeded defects as data, read from the table that is compiled into the emulator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

VARIABLE = "POOLPROOF_EMULATOR_DEFECTS"
"""Environment variable with the ids of a process's defects, separated by commas."""

_TABLE = Path(__file__).parent / "ascendcl" / "seeds.def"
_ROW = re.compile(r"^DEFECT\((\w+),\s*(.*?)\)$", re.MULTILINE | re.DOTALL)
_VALUE = re.compile(r'"((?:[^"\\]|\\.)*)"|(\d+)')


@dataclass(frozen=True)
class Defect:
    """One fault that the emulator can have.

    Attributes:
        group: Its class, in words.
        clause: The sentence that it breaks.
        trigger: What exposes it.
        difficulty: From 1 (any case exposes it) to 5 (only a case aimed at it).
        products: Products that can have it, the typical one first.
    """

    id: str
    group: str
    clause: str
    trigger: str
    severity: str
    difficulty: int
    products: tuple[str, ...]


@cache
def defects() -> dict[str, Defect]:
    """Return every defect by id, in the order of the table."""
    table = {}
    for match in _ROW.finditer(_TABLE.read_text()):
        group, clause, trigger, severity, difficulty, products = (
            text or number for text, number in _VALUE.findall(match[2])
        )
        table[match[1]] = Defect(match[1], group, clause, trigger, severity, int(difficulty), tuple(products.split()))
    return table
