"""Kernels that run as they are written."""

from __future__ import annotations

import pytest

from poolproof.references.kernels import criterion, forward, numbers, sums
from poolproof.references.kernels.compiled import Compiled, in_numpy


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (numbers, sums, criterion, forward):
        for function in vars(module).values():
            if isinstance(function, Compiled):
                monkeypatch.setitem(function.__dict__, "_run", in_numpy(function.py_func))
