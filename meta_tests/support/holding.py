"""Aspects made for a test, which claim nothing but that certain checks hold, and questions that a sandbox answers."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from poolproof.reports.rows.schema import Row
from poolproof.suites.judging.question import Aspect, Question
from poolproof.suites.run.sandbox import Sandbox


def holding(*checks: str, repeats: int = 1) -> Aspect:
    return Aspect("meta", "", checks, repeats)


def judged_by(backend: str, questions: Sequence[Question], scratch: Path, timeout: float = 60.0) -> list[Row]:
    """The answers of a sandbox that is opened for these questions."""
    with closing(Sandbox(backend, scratch, "sandbox", timeout)) as sandbox:
        return list(sandbox.judge(questions))
