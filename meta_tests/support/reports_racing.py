"""Processes that write into the same histories at the same moments."""

from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

from forked import FORKSERVER
from poolproof.reports.history.entries import add


def race(histories: Sequence[Path], runs: Sequence[Path], writers: int) -> list[int | None]:
    """Let ``writers`` processes add the runs in turn to every history, all at once; returns their exit statuses."""
    barrier = FORKSERVER.Barrier(writers, timeout=300.0)  # seconds that a writer waits for the others
    given = [(histories, runs[number % len(runs)], barrier) for number in range(writers)]
    processes = [FORKSERVER.Process(target=_write, args=each) for each in given]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


def _write(histories: Sequence[Path], run: Path, barrier: Barrier) -> None:
    for history in histories:
        barrier.wait()
        add(history, run)
