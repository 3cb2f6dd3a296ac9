"""The searches of Hypothesis beyond the plan, for failures and large errors.

``--plan`` is its profile, ``--seed`` its seed. Failures are remembered for the next run; ``--no-search`` skips it.
"""

from collections.abc import Callable

import pytest
from hypothesis import event, given, target
from hypothesis import strategies as st

from poolproof.reports.rows.failures import failure_text
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.scores import scores
from poolproof.suites.plan.search import Search


@given(data=st.data())
def test_search(search: Search, judge_case: Callable[[Case], Row], data: st.DataObject) -> None:
    """Search the cases of an aspect for one that fails, and gradients for the largest error of a sum."""
    row = judge_case(data.draw(search.cases))
    event(f"verdict: {row['verdict']}")
    for name, score in scores(row).items() if search.terms else ():
        target(score, label=name)
    if row["verdict"] in FAILED:
        pytest.fail(failure_text(row), pytrace=False)
