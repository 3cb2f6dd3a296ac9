"""Tests of many alike: every run asks a share of them, ``tox -e thorough`` asks the others."""

from collections.abc import Iterable
from typing import Any

import pytest


def a_share(values: Iterable[Any], of: int = 3) -> list[Any]:
    """Return parameters of which every ``of``-th is no thorough test."""
    marks = [() if number % of == 0 else pytest.mark.thorough for number in range(of)]
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks[number % of])
        for number, value in enumerate(values)
    ]
