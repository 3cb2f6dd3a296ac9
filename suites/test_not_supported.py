"""Operators and dtypes that a backend does not support: skipped, with the backend's own reason."""

from poolproof.suites.plan.plans import Subject
from poolproof.suites.plugin import BlockTest


def test_not_supported(unsupported: Subject, judge: BlockTest) -> None:
    judge.unsupported(unsupported)
