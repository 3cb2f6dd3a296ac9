"""A plugin by which Ctrl-C comes behind the last case: ``-p interrupting``, with LATEST behind the whole session."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop() -> Generator[None, object, object]:
    result = yield
    if "LATEST" not in os.environ:
        signal.raise_signal(signal.SIGINT)
    return result


def pytest_sessionfinish() -> None:
    if "LATEST" in os.environ:
        signal.raise_signal(signal.SIGINT)
