"""What a call leaves behind in its process."""

from __future__ import annotations

from poolproof.backends.host.protocol import FIRST_CALL
from poolproof.suites.judging.checks.registry import check
from poolproof.suites.judging.findings import Mismatch, mismatch
from poolproof.suites.judging.trial import Trial


def _is_watched(trial: Trial) -> bool:
    return trial.baseline.outcome.changed is not None


@check(
    "a call leaves its process as it was: rounding mode, flush-to-zero, folder, signals, umask, locale, limits, "
    "threads, children",
    _is_watched,
)
def process_untouched(trial: Trial) -> Mismatch | None:
    changed = next((run.outcome.changed for run in trial.runs if run.outcome.changed), None)
    if changed and all(what in FIRST_CALL for what, _, _ in changed):
        again = {what for what, _, _ in trial.after(()).outcome.changed or ()}
        changed = tuple(change for change in changed if change[0] in again)
    if not changed:
        return None
    what, before, after = changed[0]
    others = ", ".join(name for name, _, _ in changed[1:])
    reason = f"and {others} changed, too" if others else ""
    return mismatch(f"{what} of the process after the call", after, before, reason)
