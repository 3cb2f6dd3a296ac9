"""The verdicts a row can carry, and what they mean for a run."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """How one case ended on one backend."""

    CONFORMS = "conforms"
    VIOLATES = "violates"
    WAIVED = "waived"
    REFUSED = "refused as documented"
    NOT_SUPPORTED = "not supported"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    NOT_RUN = "not run"


JUDGED = frozenset(
    {Verdict.CONFORMS, Verdict.VIOLATES, Verdict.WAIVED, Verdict.REFUSED, Verdict.CRASHED, Verdict.TIMED_OUT}
)
"""A verdict about the implementation was reached."""

FAILED = frozenset({Verdict.VIOLATES, Verdict.CRASHED, Verdict.TIMED_OUT})
"""The implementation deviated, and nobody has accepted that."""

SKIPPED = frozenset({Verdict.NOT_SUPPORTED, Verdict.NOT_RUN})
"""Nothing was learned; the row's reason says why."""
