"""What ends the further cases of a session, and that whatever was learned until then counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from poolproof.backends.base import BackendUnavailable
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.recorder import Done
from poolproof.reports.rows.schema import Row
from poolproof.suites.diagnosing import diagnose
from poolproof.suites.judging.question import Question
from poolproof.suites.running import interrupts
from poolproof.suites.running.plans import Subject
from suspect_subjects import subjects


class Ending:
    """Judges some questions, and then ends as it is told to."""

    def __init__(self, end: Callable[[], object], answers: int) -> None:
        self._end, self._answers = end, answers
        self.asked = 0

    def __call__(self, question: Question, backend: str) -> Row:
        self.asked += 1
        if self.asked > self._answers:
            self._end()
        return question.describe() | {"backend": backend, "verdict": "conforms"}


def told_of(diagnosed: Path, judge: Ending) -> list[str]:
    """What a session says that ends so; the suspects are those of a real run."""
    (backend,) = read_digest(diagnosed / "run").run["backends"]
    asked_of = [Subject(backend, each.operator, each.dtype, each.index_dtype) for each in subjects()]
    said: list[str] = []
    diagnose(diagnosed / "run", judge, asked_of, 30.0, NOTHING, said.append)
    return said


NOTHING = Done()


def interrupted() -> NoReturn:
    raise KeyboardInterrupt


def unavailable() -> NoReturn:
    raise BackendUnavailable("the card is gone")


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (interrupted, "diagnosis interrupted: what was learned so far counts"),
        (unavailable, "no further cases: the card is gone"),
    ],
)
def test_an_end_is_told_and_nothing_else_ends(diagnosed: Path, end: Callable[[], object], told: str) -> None:
    judge = Ending(end, answers=3)
    assert told_of(diagnosed, judge)[-1] == told
    assert judge.asked == 4


def test_an_interrupt_that_was_lost_is_no_interrupt_of_the_session(
    diagnosed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose() -> None:
        monkeypatch.setattr(interrupts, "_pending", True)

    assert told_of(diagnosed, Ending(lose, answers=3))[-1].startswith("diagnosis interrupted")


def test_what_no_end_disturbs_says_how_many_are_asked_about(diagnosed: Path) -> None:
    judge = Ending(lambda: None, answers=0)
    (said,) = told_of(diagnosed, judge)
    assert "further cases are asked about 1 suspect: 30 s each at most" in said
    assert judge.asked
