"""A plugin of somebody else's whose hooks at the end of a session fail: ``-p failing_hooks`` and FAILING_HOOK=name."""

from __future__ import annotations

import os


def _fail(name: str) -> None:
    if os.environ.get("FAILING_HOOK") == name:
        raise LookupError(f"no server to upload to, in {name}")


def pytest_sessionfinish() -> None:
    _fail("sessionfinish")


def pytest_terminal_summary() -> None:
    _fail("terminal_summary")


def pytest_unconfigure() -> None:
    _fail("unconfigure")
