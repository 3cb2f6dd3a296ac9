"""The single cases, or low-level calls, named by --case."""

from collections.abc import Callable

from poolproof.suites.judging.question import Question


def test_case(question: Question, backend_name: str, examine_one: Callable[[Question, str], None]) -> None:
    examine_one(question, backend_name)
