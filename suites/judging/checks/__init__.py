"""The checks: each tests one claim on one trial, and returns a mismatch if it is broken.

A check knows the trial, but not pytest, plans or rows. Its id is its function's name. `CHECKS` has all; plans name them
by id.
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
"""Checks that call further cases in the judged call's process: neighbours, producers, other calls of a sequence."""

USUAL = tuple(name for name in CHECKS if name not in {"modes", "state", "streams", "round_trip", "memory_kept"})
"""Checks of every aspect; costly checks belong to an aspect of their own."""


def expected_checks(case: Case, ids: Iterable[str]) -> tuple[str, ...]:
    """Return the ids of the checks that judge the case if it conforms, for any backend and data."""
    checks = [CHECKS[name] for name in ids if CHECKS[name].is_shown_by is None]
    return tuple(check.id for check in checks if check.applies is None or check.applies(case))


def run_checks(trial: Trial, ids: tuple[str, ...]) -> tuple[list[str], list[Finding]]:
    """Return (checks that judged, their findings) of a trial with a completed first run.

    If `results` finds another shape or dtype, that is the only finding: no other check can read the output. Other
    strides do not stop the checks. `VariationFailed` is raised if it is the implementation's fault, or if there is no
    finding.
    """
    assert trial.baseline.outcome.status is Status.COMPLETED
    judged, findings, excused = [], [], None
    for check in sorted(map(CHECKS.__getitem__, ids), key=lambda check: check.id != "results"):
        if (check.applies and not check.applies(trial.case)) or (check.is_shown_by and not check.is_shown_by(trial)):
            continue
        try:
            mismatch = check.find(trial)
        except VariationFailed as error:
            if not error.excuse:
                raise
            excused = error
            continue
        judged.append(check.id)
        if mismatch:
            findings.append(Finding(check.id, mismatch))
            if check.id == "results" and other_shape(trial.baseline):
                break
    if excused and not findings:
        raise excused
    return judged, findings
