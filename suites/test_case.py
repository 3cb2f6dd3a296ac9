"""The single cases, or low-level calls, named by --case."""

from collections.abc import Callable

from poolproof.suites.judging.asked import Asked


def test_case(question: Asked, backend_name: str, examine_one: Callable[[Asked, str], None]) -> None:
    examine_one(question, backend_name)
