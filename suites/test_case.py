"""The single cases named by --case."""

from collections.abc import Callable

from poolproof.suites.case import Case


def test_case(case: Case, backend_name: str, examine_case: Callable[[Case, str], None]) -> None:
    examine_case(case, backend_name)
