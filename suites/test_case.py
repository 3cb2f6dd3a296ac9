"""The single cases, or low-level calls, named by --case."""

from collections.abc import Callable

from poolproof.suites.running.sandbox import AnyQuestion


def test_case(question: AnyQuestion, backend_name: str, examine_one: Callable[[AnyQuestion, str], None]) -> None:
    examine_one(question, backend_name)
