"""Who takes no indices and any of the tied maxima is judged by those that it took: any one of them, once."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import Call
from poolproof.references.forward import forward_maximum, window_cells
from poolproof.references.forward_rule import ForwardRule
from poolproof.references.operators import Operator
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.faults import answer
from poolproof.suites.judging.trial import Trial
from poolproof.suites.plan.aspects import CASE_ASPECTS, EVERYTHING
from poolproof.suites.plan.plans import PLANS, blocks, subjects
from poolproof.suites.probe.questions import take_account
from scatter import Scatter, axes_of, planes_of
from scatter_backends import PicksLastAndTakesNoIndices

ANY = ForwardRule.parse("any+any-nan")


class Choosing(Scatter):
    """Takes another one of the tied cells from window to window."""

    declared = ANY

    def abilities(self, operator: Operator) -> Abilities:
        return Abilities(indices=False)

    def forward_rule(self, call: Call) -> ForwardRule:
        return self.declared

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        return super().unsupported(operator, dtype, index_dtype) if operator.is_backward else "no forwards"

    def route_terms(self, call: Call, cells: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        planes, axes = planes_of(call), axes_of(call)
        maxima, _ = forward_maximum(planes, axes)
        taps, valid = window_cells(axes)
        size = int(np.prod(planes.shape[1:]))
        flat = planes.reshape(len(planes), size)
        routed = [
            (plane * size + cell, share)
            for plane, row in enumerate(maxima.reshape(len(planes), len(taps)))
            for window, maximum in enumerate(row)
            for cell, share in self.sent(
                _tied(flat[plane], taps[window][valid[window]], maximum), window, terms[plane * len(row) + window]
            )
        ]
        if not routed:
            return np.zeros(0, np.int64), terms[:0]
        return np.array([cell for cell, _ in routed]), np.array([share for _, share in routed], terms.dtype)

    def sent(self, tied: np.ndarray, window: int, term: float) -> list[tuple[int, float]]:
        """(cell, gradient) of one window."""
        return [(int(tied[window % len(tied)]), term)]


def _tied(plane: np.ndarray, taps: np.ndarray, maximum: float) -> np.ndarray:
    values = plane[taps].astype(np.float64)
    return taps[np.isnan(values) if np.isnan(float(maximum)) else values == float(maximum)]


def choosing(name: str, sent: Callable[[np.ndarray, int, float], list[tuple[int, float]]]) -> type[Choosing]:
    """One that sends a window's gradient otherwise."""
    return type(name, (Choosing,), {"sent": lambda self, *window: sent(*window)})


Twice = choosing("Twice", lambda tied, window, term: [(int(cell), term) for cell in tied])
Split = choosing("Split", lambda tied, window, term: [(int(cell), term / len(tied)) for cell in tied])
Lost = choosing("Lost", lambda tied, window, term: [] if len(tied) > 1 else [(int(tied[0]), term)])
Beside = choosing(
    "Beside",
    lambda tied, window, term: [
        (next(cell for cell in range(9) if cell not in tied) if window == 0 else tied[0], term)
    ],
)
"""The first window's gradient goes to a cell that is no maximum of it."""
DeclaresFirst = type("DeclaresFirst", (Choosing,), {"declared": ForwardRule.parse("first")})
"""Takes any, and says that it is the first."""


TIES = Case.of(
    "MaxPool2dWithIndicesBackward", shape=(1, 2, 9, 8), kernel_size=(3,), stride=(1,), values="ties", indices="forward"
)

ASKED = ("MaxPool2dWithIndicesBackward", "AdaptiveMaxPool3dBackward")


def test_any_of_the_tied_is_right() -> None:
    """In every aspect and dtype, whose numbers hold 8 to 53 windows' codes, at once or one after the other."""
    backend = Choosing()
    chosen = [
        each
        for each in subjects("choosing", backend)
        if each.operator.name in ASKED and (each.unsupported, each.index_dtype) == (None, "int32")
    ]
    aspects = [CASE_ASPECTS[name] for name in ("values", "special_values", "state")]
    asked = blocks(chosen, aspects, PLANS["smoke"], 1)
    rows = [answer(question, backend) for block in asked for question in block.prefix(2)]
    assert len(rows) > 40
    assert {row["verdict"] for row in rows} == {Verdict.CONFORMS}, [row["reason"] for row in rows if row["reason"]][:3]


def test_gradients_are_made_for_the_cells_that_were_taken() -> None:
    """Of this recipe one cell has two gradients that are not zero, wherever a case's own indices would lead."""
    elsewhere = make_operands(replace(TIES, indices="in_window")).landing
    for backend in (Choosing(), DeclaresFirst()):
        operands = Trial(replace(TIES, gradient="rounding_probe", indices="in_window"), backend).operands
        assert np.array_equal(operands.terms != 0, operands.landing.rank < 2)
        assert not np.array_equal(operands.terms != 0, elsewhere.rank < 2)


@pytest.mark.parametrize("fault", [Twice, Split, Lost, Beside, DeclaresFirst])
def test_ties_excuse_nothing_else(fault: type[Choosing]) -> None:
    for values in ["ties"] if fault is Beside else ["ties", "constant", "all_nan", "negative_infinity"]:
        row = answer(CaseQuestion(replace(TIES, values=values), EVERYTHING), fault())
        assert {"interval", "unreached"} & set(row["checks_violated"]), (values, row["reason"])


SEVERAL = [
    pytest.param(Split, "shared", "shared equally", id="shared"),
    pytest.param(Twice, "all", "all, each as a whole", id="all"),
]


@pytest.mark.parametrize(("several", "rule", "words"), SEVERAL)
def test_the_probe_tells_that_several_are_taken_and_what_is_declared_then(several, rule, words) -> None:
    found = take_account(several(), TIES.operator, "float32", "int64")
    assert (found.found("tie"), found.rule) == (words, "none fits")
    (said,) = found.disagreements[:1]
    assert said.startswith(f"declared any+any-nan, but no known rule fits the observed NaN ({rule} comes closest)")


def test_the_probe_tells_what_a_backward_takes_that_finds_the_maxima_itself() -> None:
    for backend, rule in ((PicksLastAndTakesNoIndices(), "last"), (Choosing(), "any+any-nan")):
        found = take_account(backend, TIES.operator, "float32", "int64")
        assert (found.rule, found.model, found.disagreements) == (rule, "acc32", ())


@pytest.mark.parametrize(("several", "rule", "words"), SEVERAL)
def test_who_declares_that_several_are_taken_is_judged_where_there_are_no_ties(several, rule, words) -> None:
    backend = type("Declares", (several,), {"declared": ForwardRule.parse(rule)})()
    verdicts = {}
    for values in ("ties", "constant", "descending", "normal"):
        row = answer(CaseQuestion(replace(TIES, values=values), EVERYTHING), backend)
        verdicts[values] = row["verdict"], "are not judged" in (row["reason"] or "")
    unjudged, right = (Verdict.NOT_RUN, True), (Verdict.CONFORMS, False)
    assert verdicts == {"ties": unjudged, "constant": unjudged, "descending": right, "normal": right}


def test_who_may_take_others_in_each_call_cannot_be_read() -> None:
    class Undetermined(Choosing):
        def is_deterministic(self, call):  # type: ignore[no-untyped-def]
            return False

    row = answer(CaseQuestion(TIES, EVERYTHING), Undetermined())
    assert (row["verdict"], "tied maxima is unknown" in row["reason"]) == (Verdict.NOT_RUN, True)
