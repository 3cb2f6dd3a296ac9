"""Plugin of pytest: somebody sets the clock back by two hours while the first test runs."""

from __future__ import annotations

import time

_REAL = time.time


def pytest_runtest_setup() -> None:
    time.time = lambda: _REAL() - 7200.0
