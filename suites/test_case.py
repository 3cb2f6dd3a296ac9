"""The single cases, or low-level calls, named by --case."""

from poolproof.suites.judging.question import Question
from poolproof.suites.plugin import Examiner


def test_case(question: Question, backend_name: str, examine: Examiner) -> None:
    examine.question(question, backend_name)
