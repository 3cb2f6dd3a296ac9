"""Operators and dtypes that a backend does not support: skipped, with the backend's own reason."""

from collections.abc import Callable

from poolproof.suites.plan.plans import Subject


def test_not_supported(unsupported: Subject, note_unsupported: Callable[[Subject], None]) -> None:
    note_unsupported(unsupported)
