"""Attribution of failures to the call that caused them.

A call may die, or give wrong results, because of what was called before it in the same process. If one of a question's
auxiliary calls deviates by itself, the question is judged again without it: a failure that remains belongs to the
question's own call. Otherwise the auxiliary call is blamed.
"""

from __future__ import annotations

from collections.abc import Callable

from poolproof.reports.rows.checks import REFUSAL
from poolproof.reports.rows.failures import replay_line
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.suites.judging.checks import CALLS_AUXILIARIES
from poolproof.suites.judging.question import Question
from poolproof.suites.run.repetition import deviates

Ask = Callable[[Question], Row]
"""Judges a question in a fresh process of the backend, and returns its row with waivers applied."""

_DEATHS = (Verdict.CRASHED, Verdict.TIMED_OUT)


def attribute(question: Question, row: Row, ask: Ask) -> tuple[Row, ...]:
    """Return the question's final row, followed by that of the auxiliary call that is blamed instead, if one is."""
    auxiliary = question.auxiliary_calls() if _may_be_auxiliary(row) else ()
    if not auxiliary:
        return (row,)
    alone = question.without_auxiliary([call.id for call in auxiliary])
    if row["verdict"] in _DEATHS and ask(alone)["verdict"] in _DEATHS:
        return (row,)
    blamed = [call for call in map(ask, auxiliary) if deviates(call)]
    if not blamed:
        return (row,)
    again = ask(question.without_auxiliary([call["case_id"] for call in blamed]))
    if again["verdict"] in FAILED:
        return (again,)
    found = f"asked without a call that came before and deviates by itself: {replay_line(blamed[0])}"
    return again | {"reason": "; ".join(filter(None, (again["reason"], found)))}, blamed[0]


def _may_be_auxiliary(row: Row) -> bool:
    """Tell whether a row fails by a death, or by a check that runs after auxiliary calls."""
    found_late = {*CALLS_AUXILIARIES, REFUSAL} & {*(row["checks_violated"] or ())}
    return row["verdict"] in _DEATHS or (row["verdict"] in FAILED and bool(found_late))
