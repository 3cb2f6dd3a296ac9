"""A plugin by which a session is disturbed as the variable DISTURBANCE says: ``-p disturbing``.

A clock that is set back; Ctrl-C behind the last case, or behind the whole session; a hook at its end that fails.
"""

import os
import signal
import time
from collections.abc import Generator

import pytest

_REAL = time.time


def _disturb(*ways: str) -> None:
    way = os.environ.get("DISTURBANCE")
    if way in ways and way.startswith("interrupt"):
        signal.raise_signal(signal.SIGINT)
    elif way in ways:
        raise LookupError(f"no server to upload to, in {way}")


def pytest_runtest_setup() -> None:
    if os.environ.get("DISTURBANCE") == "clock":
        time.time = lambda: _REAL() - 7200.0


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop() -> Generator[None, object, object]:
    result = yield
    _disturb("interrupt behind the last case")
    return result


def pytest_sessionfinish() -> None:
    _disturb("interrupt behind the session", "sessionfinish")


def pytest_terminal_summary() -> None:
    _disturb("terminal_summary")


def pytest_unconfigure() -> None:
    _disturb("unconfigure")
