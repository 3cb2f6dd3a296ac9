"""Forks of a test's own process, for what ends or changes the process that does it."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


def fork(work: Callable[[], int | None]) -> int:
    """The id of a process that does ``work`` and ends with the status it returns, 1 where it raises."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        status = work() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
