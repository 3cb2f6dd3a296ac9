"""What the base class for frameworks with arrays takes care of, so that a framework's own file need not."""

from __future__ import annotations

import tomllib

import pytest

from array_frameworks import (
    Arrays,
    AtFault,
    AtFaultOutside,
    ChannelsLast,
    Misjudged,
    OfTensor,
    OtherDtype,
    OtherShape,
    Refusing,
    ReturnsNothing,
)
from places import ROOT
from poolproof.backends.base import Backend, BackendUnavailable
from poolproof.backends.registry import _BUILT_IN, create
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.judging.faults import answer
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, blocks, subjects
from poolproof.suites.probe.questions import take_account


def rows(backend: Backend, *aspects: str, count: int = 12) -> list[Row]:
    chosen = [subject for subject in subjects("arrays", backend) if subject.unsupported is None]
    asked = blocks(chosen, [CASE_ASPECTS[name] for name in aspects], PLANS["smoke"], 1)
    return [answer(question, backend) for block in asked for question in block.prefix(count)]


@pytest.mark.parametrize("framework", [Arrays, OfTensor, ChannelsLast])
def test_a_right_framework_conforms_whatever_its_indices_count(framework: type[Backend]) -> None:
    judged = rows(framework(), "values", "special_values", "round_trip")
    assert len(judged) > 150
    assert {row["verdict"] for row in judged} == {Verdict.CONFORMS}, [row["reason"] for row in judged][:3]
    assert {len(row["shape"].split("x")) for row in judged if row["operator"] == "AdaptiveMaxPool2d"} == {4}


def test_indices_that_count_something_else_are_found_and_no_layout_asked_that_would_not_arrive() -> None:
    found = {row["verdict"] for row in rows(Misjudged(), "values") if "Backward" not in row["operator"]}
    assert Verdict.VIOLATES in found
    assert rows(Arrays(), "layouts") == []


OUTSIDE = "no kernel for this; forward called it outside of invoke, in line "


@pytest.mark.parametrize(
    ("framework", "verdict", "reason"),
    [
        (Refusing, Verdict.UNDOCUMENTED, "NotImplementedError: no kernel for this"),
        (AtFault, Verdict.ADAPTER_ERROR, "the adapter raised NotImplementedError: forgotten (array_frameworks.py"),
        (AtFaultOutside, Verdict.ADAPTER_ERROR, OUTSIDE),
        (ReturnsNothing, Verdict.ADAPTER_ERROR, "raised TypeError: cannot unpack non-iterable NoneType object"),
        (
            OtherShape,
            Verdict.VIOLATES,
            "out as it came back: got float32[1, 3, 17, 22], expected float32[1, 3, 17, 11]",
        ),
        (
            OtherDtype,
            Verdict.VIOLATES,
            "indices as it came back: got int32[1, 3, 17, 11], expected int64[1, 3, 17, 11]",
        ),
    ],
)
def test_whose_fault_it_is(framework: type[Backend], verdict: Verdict, reason: str) -> None:
    (row,) = (row for row in rows(framework(), "values", count=1) if row["operator"] == "AdaptiveMaxPool2d")
    assert (row["verdict"], reason in row["reason"]) == (verdict, True), row["reason"]


FRAMEWORKS = [name for name, place in _BUILT_IN.items() if ".frameworks." in place and not name.startswith("torch")]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_has_an_extra_and_an_environment_of_its_name(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert name in project["optional-dependencies"]
    assert f"\n[testenv:{name}]\n" in (ROOT / "tox.ini").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_that_is_installed_takes_what_its_adapter_hands_over(name: str) -> None:
    try:
        backend = create(name)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    found = {row["verdict"] for row in rows(backend, "values", count=2)}
    assert Verdict.CONFORMS in found
    assert Verdict.ADAPTER_ERROR not in found


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_the_rule_of_onnx_runtime_is_what_the_probe_sees(dtype: str) -> None:
    pytest.importorskip("onnxruntime")
    found = take_account(create("onnxruntime"), "MaxPool2dWithIndices", dtype, "int64")
    assert (found.model, found.disagreements) == (found.declared, ())
