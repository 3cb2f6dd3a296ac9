"""Diagnosis at the end of a session with failures, in the process that controls it.

Connects the clusters of failures (reports) with the search for their conditions (`poolproof.suites.running.diagnosis`).
A session that conforms imports nothing of this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from poolproof.backends.base import BackendUnavailable
from poolproof.backends.registry import UnknownBackend
from poolproof.reports.clusters.reading import open_clusters_of
from poolproof.reports.recorder import Done
from poolproof.reports.rows.checks import DIAGNOSIS
from poolproof.reports.rows.io_errors import environment_errors
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import count_of
from poolproof.suites.judging.question import Question
from poolproof.suites.running.diagnosis import Diagnosis
from poolproof.suites.running.interrupts import raise_lost_interrupt
from poolproof.suites.running.plans import Subject

Judge = Callable[[Question, str], Row]
"""Judges a question on a backend, and returns its row."""


def diagnose(
    folder: Path, judge: Judge, subjects: Sequence[Subject], seconds: float, done: Done, say: Callable[[str], object]
) -> None:
    """Narrow down what is wrong with the run in a folder, by further cases that ``judge`` judges and records.

    An interrupt ends the diagnosis alone. `CannotWrite` if a row cannot be recorded.
    """
    known = {case for block, case in done.cases if block.startswith(DIAGNOSIS)}
    first = True

    def announce(suspects: int) -> None:
        nonlocal first
        if first and suspects:
            about = count_of(suspects, "suspect")
            say(f"\nfurther cases are asked about {about}: {seconds:g} s each at most (--diagnose)")
        first = False

    try:
        with environment_errors():
            Diagnosis(partial(open_clusters_of, folder), judge, subjects, seconds, announce, known).run()
            raise_lost_interrupt()
    except KeyboardInterrupt:
        say(f"{DIAGNOSIS} interrupted: what was learned so far counts")
    except (BackendUnavailable, UnknownBackend) as error:
        say(f"no further cases: {error}")
