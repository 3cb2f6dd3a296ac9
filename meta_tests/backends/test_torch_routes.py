"""Torch behind its autograd: foreign indices arrive there, and what a user can choose is asked."""

from __future__ import annotations

from datetime import date

import pytest

from poolproof.backends.base import Call, Outcome
from poolproof.backends.frameworks import torch_routes
from poolproof.backends.frameworks.torch_routes import CHANNELS_LAST, VALUES_ALONE, TorchAutograd
from poolproof.backends.registry import create
from poolproof.reports.rows.verdicts import Verdict
from poolproof.reports.waivers import Waivers, load, shipped
from poolproof.suites.api import judge
from poolproof.suites.cases.case import Case

FOREIGN = [
    Case.of("MaxPool2dWithIndicesBackward", shape=(2, 3, 7, 6), kernel_size=(3,), stride=(2,), indices="in_window"),
    Case.of("MaxPool3dWithArgmaxBackward", shape=(1, 3, 4, 5, 6), kernel_size=(2,), stride=(1,), indices="crowded"),
    Case.of("AdaptiveMaxPool2dBackward", shape=(1, 2, 7, 6), output_size=(3, 4), indices="last", dtype="bfloat16"),
    Case.of("AdaptiveMaxPool3dBackward", shape=(1, 2, 4, 5, 6), output_size=(2, 3, 4), indices="in_window"),
]


ONEDNN = [
    Case.of("MaxPool2dWithIndicesBackward", shape=(2, 19, 9, 8), kernel_size=(3,), stride=(2,), padding=(1,)),
    Case.of("MaxPool2dWithIndicesBackward", shape=(1, 3, 7, 6), kernel_size=(2, 3), stride=(1,), dtype="bfloat16"),
    Case.of("MaxPool3dWithArgmaxBackward", shape=(1, 16, 4, 5, 6), kernel_size=(2,), stride=(1,), values="nan"),
]
NOTHING_GREATER = Case.of(
    "MaxPool2dWithIndicesBackward", shape=(1, 1, 3, 3), kernel_size=(3,), padding=(1,), values="negative_infinity"
)


def test_a_gradient_that_onednn_loses_to_the_padding_is_found_and_waived() -> None:
    backend = create("torch-mkldnn")
    row = judge(NOTHING_GREATER, backend) | {"backend": "torch-mkldnn"}
    assert "are lost" in row["reason"] or "were lost" in row["reason"]
    known = Waivers([waiver for path in shipped() for waiver in load(path)], date(2026, 12, 1))
    assert known.apply(row, backend.environment())["verdict"] == Verdict.WAIVED
    assert known.apply(row | {"values": "ties"}, backend.environment())["verdict"] == Verdict.VIOLATES


@pytest.mark.parametrize(
    ("route", "check", "case"),
    [
        *(("torch-autograd", "variants", case) for case in FOREIGN),
        *(("torch-mkldnn", "interval", case) for case in ONEDNN),
    ],
    ids=str,
)
def test_gradients_go_by_the_indices_of_the_call_or_by_onednns_own_rule(route: str, check: str, case: Case) -> None:
    row = judge(case, create(route))
    assert (row["verdict"], check in row["checks_judged"]) == (Verdict.CONFORMS, True), row["reason"]


def test_a_gradient_by_indices_of_its_own_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_routes, "_unless_indices", lambda indices, saved: saved)
    assert "interval" in judge(FOREIGN[0], create("torch-autograd"))["checks_violated"]


class MisroutedGradient(TorchAutograd):
    """One way to ask a forward puts zeros into an output."""

    def __init__(self, variant: str, output: str) -> None:
        super().__init__("cpu")
        self.wrong, self.output = variant, output

    def run(self, call: Call, mode: str = "") -> Outcome:
        outcome = super().run(call, mode)
        if mode == self.wrong:
            call.tensors[self.output].array[...] = 0
        return outcome


@pytest.mark.parametrize("variant", [CHANNELS_LAST, VALUES_ALONE])
@pytest.mark.parametrize("output", ["out", "indices"])
def test_every_way_to_ask_is_judged(variant: str, output: str) -> None:
    case = Case.of("MaxPool2dWithIndices", shape=(1, 3, 4, 4), kernel_size=(2,), values="nan")
    row = judge(case, MisroutedGradient(variant, output), "special_values")
    assert list(row["checks_violated"]) == ["variants"]
    assert f"made with {variant}" in row["reason"]
    assert f"{output}[" in row["reason"]
