"""Whose a failure is of a question that makes other calls besides its own: that call's, or another's by itself.

A call may die, or come out wrong, of what was called before it in the same process. Where another call deviates when
it is asked about alone, the question is asked again without it: what is still found then is the call's own, or due to
calls that are right by themselves. Otherwise the other call is the one that is accused.
"""

from __future__ import annotations

from collections.abc import Callable

from poolproof.reports.rows.checks import REFUSAL
from poolproof.reports.rows.failures import replay_line
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.suites.judging.checks import CALLS_AUXILIARIES
from poolproof.suites.judging.question import Question
from poolproof.suites.running.repetition import deviates

Ask = Callable[[Question], Row]
"""Puts a question to a process of the backend that was asked nothing before; the row, deviations waived if accepted."""

_DEATHS = (Verdict.CRASHED, Verdict.TIMED_OUT)


def settled(question: Question, row: Row, ask: Ask) -> tuple[Row, ...]:
    """The row of the question once the calls beside its own were asked about, and that of one which is to blame."""
    auxiliary = question.auxiliary_calls() if _may_be_anothers(row) else ()
    if not auxiliary:
        return (row,)
    alone = question.without_auxiliary([call.id for call in auxiliary])
    if row["verdict"] in _DEATHS and ask(alone)["verdict"] in _DEATHS:
        return (row,)
    guilty = [call for call in map(ask, auxiliary) if deviates(call)]
    if not guilty:
        return (row,)
    again = ask(question.without_auxiliary([call["case_id"] for call in guilty]))
    return (again,) if again["verdict"] in FAILED else (_cleared(again, guilty[0]), guilty[0])


def _may_be_anothers(row: Row) -> bool:
    """Whether the row fails by what is found only after other calls were made, or by a death, at whatever time."""
    found_late = {*CALLS_AUXILIARIES, REFUSAL} & {*(row["checks_violated"] or ())}
    return row["verdict"] in _DEATHS or (row["verdict"] in FAILED and bool(found_late))


def _cleared(row: Row, guilty: Row) -> Row:
    found = f"asked without a call that came before and deviates by itself: {replay_line(guilty)}"
    return row | {"reason": "; ".join(filter(None, (row["reason"], found)))}
