"""The end of a session that found something wrong: further cases are asked of it, in the process that controls it.

Here who knows suspects (the reports) and who can ask cases (`poolproof.suites.running.diagnosis`) are brought together.
Nothing of this is imported by a session that conforms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from poolproof.backends.base import BackendUnavailable
from poolproof.backends.registry import UnknownBackend
from poolproof.reports.clusters.open_clusters import open_clusters_of
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
"""Gives the row of a question that is put to a backend."""


def diagnose(
    folder: Path, judge: Judge, subjects: Sequence[Subject], seconds: float, done: Done, say: Callable[[str], object]
) -> None:
    """Narrow down what is wrong with the run in a folder, by cases that ``judge`` judges and records; an interrupt ends
    that, and nothing else.

    `CannotWrite` where a row cannot be recorded.
    """
    known = {case for block, case in done.cases if block.startswith(DIAGNOSIS)}
    first = True

    def announced(suspects: int) -> None:
        nonlocal first
        if first and suspects:
            about = count_of(suspects, "suspect")
            say(f"\nfurther cases are asked about {about}: {seconds:g} s each at most (--diagnose)")
        first = False

    try:
        with environment_errors():
            Diagnosis(partial(open_clusters_of, folder), judge, subjects, seconds, announced, known).run()
            raise_lost_interrupt()
    except KeyboardInterrupt:
        say(f"{DIAGNOSIS} interrupted: what was learned so far counts")
    except (BackendUnavailable, UnknownBackend) as error:
        say(f"no further cases: {error}")
