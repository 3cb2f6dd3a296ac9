"""A plugin by which a session is disturbed as the variable DISTURBANCE says: ``-p disturbing``.

A clock that is set back; a budget that is over before the N-th test (``leap N``); Ctrl-C behind the last case, or
behind the whole session; a hook at its end that fails.
"""

import itertools
import os
import signal
import time
from collections.abc import Generator

import pytest

_REAL, _MONOTONIC = time.time, time.monotonic
_LEAP = 3600.0

_tests = itertools.count(1)


def _disturb(*ways: str) -> None:
    way = os.environ.get("DISTURBANCE")
    if way in ways and way.startswith("interrupt"):
        signal.raise_signal(signal.SIGINT)
    elif way in ways:
        raise LookupError(f"no server to upload to, in {way}")


def pytest_runtest_setup() -> None:
    way = os.environ.get("DISTURBANCE", "")
    if way == "clock":
        time.time = lambda: _REAL() - 7200.0
    if way.startswith("leap ") and next(_tests) >= int(way.removeprefix("leap ")):
        time.monotonic = lambda: _MONOTONIC() + _LEAP


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
