"""Every message of a mismatch reads alike, whichever check it is from."""

import json
import re

import numpy as np
import pytest

from holding import holding
from poolproof.backends.base import Call
from poolproof.references.accumulation import ACC32, AccumulationModel
from poolproof.references.forward import forward_maximum
from poolproof.references.forward_rule import ForwardRule, Nans, Nothing
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import CHECKS
from poolproof.suites.judging.findings import mismatch
from poolproof.suites.plan.aspects import CASE_ASPECTS
from scatter import Scatter, axes_of, planes_of
from scatter_backends import FAULTS, lost, stores
from switchable_backend import Switchable, Switches

WRONG = np.array([[False, True], [True, False]])

BACKWARD = '{"operator":"MaxPool2dWithIndicesBackward","shape":[1,2,4,4],"kernel_size":[2,2],"index_dtype":"int32"'
FORWARD = '{"operator":"MaxPool2dWithIndices","shape":[1,2,4,4],"kernel_size":[2,2],"index_dtype":"int32"'
TOLD = {
    "lost": ("interval", BACKWARD),
    "unwritten": ("written", BACKWARD),
    "writes_input": ("inputs_untouched", BACKWARD),
    "writes_past": ("memory_untouched", BACKWARD),
    "absolute_threshold": ("scale_equivariance", BACKWARD + ',"gradient":"uniform","scale":-8'),
    "wrong_result": ("results", BACKWARD),
    "other_mode": ("modes", BACKWARD),
    "wrong_variant": ("variants", BACKWARD),
    "disturbed": ("streams", BACKWARD),
    "zero_padded": ("maximum", FORWARD),
    "last_maximum": ("index_rule", FORWARD + ',"values":"constant"'),
    "window_local_indices": ("index_points", FORWARD),
    "tensor_indices": ("round_trip", BACKWARD),
}
"""Fault -> (check, the beginning of a case that trips it)."""


def test_a_message_names_what_came_what_was_expected_and_how_many() -> None:
    """The first that is wrong is not named twice, and large indices keep all their digits."""
    found = mismatch("out[1, 0]", np.float32(0.5), 2, "as before", wrong=WRONG, element=(1, 0), guess="as if lost")
    assert found.message == (
        "out[1, 0]: got 0.5, expected 2, as before; 2 of 4 elements are wrong, the first at [0, 1]; as if lost"
    )
    assert (found.wrong, found.judged, found.element, found.expected, found.got) == (2, 4, (1, 0), "2", "0.5")
    first = mismatch("out[0, 1]", 1, 2, wrong=WRONG, judged=3, noun="cells", element=(0, 1))
    assert first.message == "out[0, 1]: got 1, expected 2; 2 of 3 cells are wrong"
    assert mismatch("indices[0]", np.int64(2**62 + 1), 0).got == str(2**62 + 1)


@pytest.mark.parametrize("fault", TOLD)
def test_checks_that_say_what_was_expected_say_it_alike(fault: str) -> None:
    check, case = TOLD[fault]
    row = CaseQuestion(Case.from_json(case + "}"), holding(check)).judge(FAULTS[fault][0]())
    assert row["verdict"] == Verdict.VIOLATES
    (finding,) = json.loads(row["findings"])
    assert finding["check"] == check
    assert re.search(r": got (.+), expected (.+)", row["reason"])
    assert f": got {finding['got']}, expected {finding['owed']}" in row["reason"]
    if finding["wrong"]:
        assert re.search(
            rf"; {finding['wrong']} of {finding['judged']} (elements|cells|planes|bytes) are wrong", row["reason"]
        )


def test_a_write_outside_is_said_before_what_is_wrong_besides() -> None:
    both = type("Both", (FAULTS["writes_past"][0], FAULTS["lost"][0]), {})
    row = CaseQuestion(Case.from_json(BACKWARD + "}"), CASE_ASPECTS["values"]).judge(both())
    assert row["checks_violated"][:2] == ["memory_untouched", "interval"]
    assert row["reason"].startswith("a write at bytes 0 to 7 past the storage of grad_input: got 0, expected")


def test_an_index_that_points_nowhere_is_not_what_was_expected() -> None:
    rule = ForwardRule(nans=Nans.IGNORED, nothing=Nothing.LOWEST)

    class Lowest(Scatter):
        variants = ("other",)

        def forward_rule(self, call: Call) -> ForwardRule:
            return rule

        def forward(self, call: Call) -> None:
            self.store_forward(call, *forward_maximum(planes_of(call), axes_of(call), rule))

    row = CaseQuestion(Case.from_json(FORWARD + ',"values":"all_nan"}'), holding("variants")).judge(Lowest())
    assert "made with other: got -1, expected a cell of its window that holds -3.4" in row["reason"]


def test_the_registry_names_the_checks() -> None:
    assert all(check.id == name == check.find.__name__ for name, check in CHECKS.items())


def adding(kind: str, **switches: bool) -> Switchable:
    """Adds by a model, and declares another."""
    return Switchable(Switches(AccumulationModel(kind, **switches)), declared=ACC32)


@pytest.mark.parametrize(
    ("backend", "data", "said"),
    [
        (adding("native"), {"gradient": "uniform"}, "declared acc32; all of it would be right as native"),
        (adding("native", flushes_subnormals=True), {"gradient": "subnormal"}, "be right as native+ftz"),
        (adding("acc32", saturates=True), {"gradient": "near_overflow"}, "be right as acc32+saturate"),
        (stores(), {"gradient": "uniform"}, "be right if gradients were to be stored in place of added"),
        (lost(), {"gradient": "uniform"}, ""),
    ],
)
def test_another_way_to_add_is_named_where_it_explains_all(backend: Scatter, data: dict[str, str], said: str) -> None:
    windows = {"shape": (2, 8, 8), "kernel_size": (3,), "stride": (1,), "indices": "crowded", "dtype": "float16"}
    row = CaseQuestion(Case.of("MaxPool2dWithIndicesBackward", **windows, **data), CASE_ASPECTS["precision"]).judge(
        backend
    )
    assert row["verdict"] == Verdict.VIOLATES
    assert said in row["reason"]
    assert ("all of it would be right" in row["reason"]) is bool(said)
