"""Ctrl-C and SIGTERM, none of which gets lost.

In a callback of the garbage collector, such as Hypothesis's, Python prints an exception and drops it. So every
interrupt is also recorded, and raised again between two questions.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

_pending = False


def keep_interrupts() -> None:
    """Record and raise every interrupt from now on; SIGTERM counts as one, unless one came before."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)


def ignore_termination() -> None:
    """Ignore SIGTERM from now on: a session that ends closes and publishes its run."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def put_off_interrupt() -> None:
    """Answer the next Ctrl-C with a sentence only, and raise at the one after it: the report is being written."""
    signal.signal(signal.SIGINT, _put_off)


def raise_lost_interrupt() -> None:
    """Raise KeyboardInterrupt if one arrived before."""
    if _pending:
        raise KeyboardInterrupt


def _put_off(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.write(2, b"\nthe report is being written: another Ctrl-C leaves it unwritten, and --resume writes it\n")


def _interrupt(number: int, _frame: FrameType | None) -> None:
    global _pending
    if number == signal.SIGINT or not _pending:
        _pending = True
        raise KeyboardInterrupt
