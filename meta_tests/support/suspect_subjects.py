"""Subjects of a made-up backend."""

from __future__ import annotations

from poolproof.backends.abilities import ALL, Abilities
from poolproof.references.operators import OPERATORS
from poolproof.suites.plan.plans import Subject

WINDOWED = ("MaxPool3dWithArgmaxBackward", "MaxPool2dWithIndicesBackward")


def subjects(abilities: Abilities = ALL) -> list[Subject]:
    return [
        Subject("mine", OPERATORS[name], dtype, "int64", abilities=abilities)
        for name in WINDOWED
        for dtype in ("float32", "float16")
    ]
