"""The checks: each holds one claim against one trial and returns a mismatch when it is broken.

A check knows a trial, nothing of pytest, plans or rows, and not its own id: the registry takes it from the function's
name. `CHECKS` is the complete list; a plan names checks by id.
"""

from __future__ import annotations

from collections.abc import Iterable

from poolproof.backends.base import Status
from poolproof.reports.rows.checks import CHECK_ORDER
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.checks import maxima, memory, sums, variants  # noqa: F401  (they register their checks)
from poolproof.suites.judging.checks.registry import REGISTERED
from poolproof.suites.judging.comparing import other_shape
from poolproof.suites.judging.findings import Finding
from poolproof.suites.judging.trial import Trial, VariationFailed

_UNPLACED = REGISTERED.keys() ^ {*CHECK_ORDER}
assert not _UNPLACED, f"a check, or its place in CHECK_ORDER of reports/rows/checks.py, is missing: {sorted(_UNPLACED)}"

CHECKS = {name: REGISTERED[name] for name in CHECK_ORDER}

CALLS_AUXILIARIES = ("state", "round_trip", "phase_criterion")
"""Checks that make calls of other cases in the process of the call that they judge: neighbours, producers, other calls
of a sequence."""

USUAL = tuple(name for name in CHECKS if name not in {"modes", "state", "streams", "round_trip", "memory_kept"})
"""Checks of every aspect; the costly ones belong to an aspect of their own."""


def expected_checks(case: Case, ids: Iterable[str]) -> tuple[str, ...]:
    """Select the checks that judge the case whatever the backend and the data are, if it conforms."""
    checks = [CHECKS[name] for name in ids if CHECKS[name].is_shown_by is None]
    return tuple(check.id for check in checks if check.applies is None or check.applies(case))


def run_checks(trial: Trial, ids: tuple[str, ...]) -> tuple[list[str], list[Finding]]:
    """Return (checks that judged, what they found) for a trial whose first run completed.

    An output of another shape or dtype than was given, which `results` finds first, is all that is said: nothing else
    can be held against it. With other strides it is read as its caller reads it, and judged. `VariationFailed` where
    somebody is accused of it, or nothing is wrong.
    """
    assert trial.baseline.outcome.status is Status.COMPLETED
    judged, findings, excused = [], [], None
    for check in sorted(map(CHECKS.__getitem__, ids), key=lambda check: check.id != "results"):
        if (check.applies and not check.applies(trial.case)) or (check.is_shown_by and not check.is_shown_by(trial)):
            continue
        try:
            found = check.find(trial)
        except VariationFailed as error:
            if not error.excuse:
                raise
            excused = error
            continue
        judged.append(check.id)
        if found:
            findings.append(Finding(check.id, found))
            if check.id == "results" and other_shape(trial.baseline):
                break
    if excused and not findings:
        raise excused
    return judged, findings
