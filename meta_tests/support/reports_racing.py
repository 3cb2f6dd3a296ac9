"""Processes that write into the same histories at the same moments."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path

from forked import FORKSERVER
from poolproof.reports.figures.history import add

PATIENCE = 300.0
"""Seconds that a writer waits for the others."""


def race(histories: Sequence[Path], runs: Sequence[Path], writers: int) -> list[int | None]:
    """Let ``writers`` processes add the runs in turn to every history, all at once; returns their exit statuses."""
    barrier = FORKSERVER.Barrier(writers)
    processes = [
        FORKSERVER.Process(target=_write, args=(histories, runs[number % len(runs)], barrier))
        for number in range(writers)
    ]
    for process in processes:
        process.start()
    _join(processes, barrier)
    return [process.exitcode for process in processes]


def _join(processes: Sequence[BaseProcess], barrier: Barrier) -> None:
    """Wait for all; where one ends otherwise than it should, none waits for it."""
    running = {process.sentinel: process for process in processes}
    while running:
        for sentinel in wait(list(running)):
            ended = running.pop(sentinel)  # type: ignore[call-overload]
            ended.join()
            if ended.exitcode:
                barrier.abort()


def _write(histories: Sequence[Path], run: Path, barrier: Barrier) -> None:
    for history in histories:
        barrier.wait(PATIENCE)
        add(history, run)
