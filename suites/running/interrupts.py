"""Ctrl-C and SIGTERM that are not lost: what arrives in a callback of the garbage collector is printed and forgotten.

Python cannot raise there (Hypothesis has such a callback), so the interrupt is noted as well, and raised again by
whoever asks between two questions.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn

_pending = False


def keep_interrupts() -> None:
    """Note every interrupt from now on, besides raising it where it arrives; SIGTERM is one, unless one came before."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _terminate)


def ignore_termination() -> None:
    """Let SIGTERM no longer do what is done already: a session that ends closes and publishes its run."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def raise_lost_interrupt() -> None:
    """KeyboardInterrupt if one arrived, and was lost on its way."""
    if _pending:
        raise KeyboardInterrupt


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    global _pending
    _pending = True
    raise KeyboardInterrupt


def _terminate(number: int, frame: FrameType | None) -> None:
    if not _pending:
        _interrupt(number, frame)
