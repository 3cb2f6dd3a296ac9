"""What the base class for frameworks with arrays takes care of, so that a framework's own file need not.

The frameworks, as somebody would plug them in, are made of numpy.
"""

import math
import tomllib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from places import ROOT
from poolproof.backends.base import Backend, BackendUnavailable, Call
from poolproof.backends.frameworks.copying import ArrayCall, CopyingBackend, IndexBase
from poolproof.backends.registry import _FAMILIES, create
from poolproof.references.accumulation import NATIVE, AccumulationModel
from poolproof.references.forward import forward_maximum
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive, Windowed
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.judging.faults import answer
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, blocks, subjects
from poolproof.suites.probe.questions import take_account


class Arrays(CopyingBackend):
    """Right, with indices of the plane."""

    survives_fork = True

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        return None if operator.aten and (dtype, index_dtype) == ("float32", "int64") else "only float32 and int64"

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        return self.invoke(_pool, call, self.index_base)

    def backward(self, call: ArrayCall) -> NDArray:
        return self.invoke(_scatter, call, self.index_base)

    def accumulation(self, call: Call) -> AccumulationModel:
        return NATIVE


def _pool(call: ArrayCall, base: IndexBase) -> tuple[NDArray, NDArray]:
    batch, channels, *spatial = call.values.shape
    windows = Adaptive(call.output_size) if call.output_size else Windowed(*call.windows)
    planes = call.values.reshape(batch * channels, *spatial)
    maxima, cells = forward_maximum(planes, windows.axes(tuple(spatial)))
    numbers = np.broadcast_to(np.arange(math.prod(spatial)), (len(planes), math.prod(spatial)))
    if base is IndexBase.TENSOR:
        numbers = np.arange(call.values.size).reshape(numbers.shape)
    elif base is IndexBase.CHANNELS_LAST:
        numbers = numbers * channels + np.tile(np.arange(channels), batch)[:, np.newaxis]
    pooled = (batch, channels, *maxima.shape[1:])
    return maxima.reshape(pooled), np.take_along_axis(numbers, _rows(cells, len(planes)), axis=1).reshape(pooled)


@np.errstate(over="ignore", invalid="ignore")
def _scatter(call: ArrayCall, base: IndexBase) -> NDArray:
    """Into arrays in the order of the framework's own indices."""
    assert call.gradient is not None
    assert call.indices is not None
    batch, channels, *spatial = call.values.shape
    count = {IndexBase.PLANE: batch * channels, IndexBase.TENSOR: 1, IndexBase.CHANNELS_LAST: batch}[base]
    sums = np.zeros_like(_rows(call.values, count))
    np.add.at(sums, (np.arange(count)[:, np.newaxis], _rows(call.indices, count)), _rows(call.gradient, count))
    if base is IndexBase.CHANNELS_LAST:
        return np.ascontiguousarray(np.moveaxis(sums.reshape(batch, *spatial, channels), -1, 1))
    return sums.reshape(call.values.shape)


def _rows(array: NDArray, count: int) -> NDArray:
    return array.reshape(count, array.size // max(count, 1))


def otherwise(**members: object) -> Backend:
    """A framework, or its adapter, in which something is different."""
    return type("Otherwise", (Arrays,), members)()


def _turned_down() -> tuple[NDArray, NDArray]:
    raise NotImplementedError("no kernel for this")


def _with_others(self: Arrays, call: ArrayCall, change: Callable[..., tuple[NDArray, NDArray]]) -> Any:
    return change(*Arrays.forward(self, call))


def rows(backend: Backend, *aspects: str, count: int = 12) -> list[Row]:
    chosen = [subject for subject in subjects("arrays", backend) if subject.unsupported is None]
    asked = blocks(chosen, [CASE_ASPECTS[name] for name in aspects], PLANS["smoke"], 1)
    return [answer(question, backend) for block in asked for question in block.prefix(count)]


@pytest.mark.parametrize("base", IndexBase)
def test_a_right_framework_conforms_whatever_its_indices_count(base: IndexBase) -> None:
    judged = rows(otherwise(index_base=base), "values", "special_values", "round_trip")
    assert len(judged) > 150
    assert {row["verdict"] for row in judged} == {Verdict.CONFORMS}, [row["reason"] for row in judged][:3]
    assert {len(row["shape"].split("x")) for row in judged if row["operator"] == "AdaptiveMaxPool2d"} == {4}


def test_indices_that_count_something_else_are_found_and_no_layout_asked_that_would_not_arrive() -> None:
    """Their base is said to be the tensor, and is the plane."""
    misjudged = otherwise(
        index_base=IndexBase.TENSOR, forward=lambda self, call: self.invoke(_pool, call, IndexBase.PLANE)
    )
    found = {row["verdict"] for row in rows(misjudged, "values") if "Backward" not in row["operator"]}
    assert Verdict.VIOLATES in found
    assert rows(Arrays(), "layouts") == []


WHOSE: dict[str, tuple[Callable[[Any, ArrayCall], Any], Verdict, str]] = {
    "the framework raises": (
        lambda self, call: self.invoke(_turned_down),
        *(Verdict.UNDOCUMENTED, "NotImplementedError: no kernel for this"),
    ),
    "the adapter raises": (
        lambda self, call: {}["forgotten"],
        *(Verdict.ADAPTER_ERROR, "the adapter raised KeyError: 'forgotten' (test_frameworks.py"),
    ),
    "the adapter calls the framework by itself": (
        lambda self, call: _turned_down(),
        *(Verdict.ADAPTER_ERROR, "no kernel for this; <lambda> called it outside of invoke, in line "),
    ),
    "the adapter forgets to return anything": (
        lambda self, call: None,
        *(Verdict.ADAPTER_ERROR, "raised TypeError: cannot unpack non-iterable NoneType object"),
    ),
    "one window too many": (
        lambda self, call: _with_others(self, call, lambda out, where: (np.concatenate([out, out], axis=-1), where)),
        *(Verdict.VIOLATES, "out as it came back: got float32[1, 3, 17, 22], expected float32[1, 3, 17, 11]"),
    ),
    "indices of 32 bits": (
        lambda self, call: _with_others(self, call, lambda out, where: (out, where.astype(np.int32))),
        *(Verdict.VIOLATES, "indices as it came back: got int32[1, 3, 17, 11], expected int64[1, 3, 17, 11]"),
    ),
}


@pytest.mark.parametrize(("forward", "verdict", "reason"), WHOSE.values(), ids=WHOSE)
def test_whose_fault_it_is(forward: Callable[[Any, ArrayCall], Any], verdict: Verdict, reason: str) -> None:
    judged = rows(otherwise(forward=forward), "values", count=1)
    (row,) = (row for row in judged if row["operator"] == "AdaptiveMaxPool2d")
    assert (row["verdict"], reason in row["reason"]) == (verdict, True), row["reason"]


FRAMEWORKS = [name for name, place in _FAMILIES.items() if ".frameworks." in place and not name.startswith("torch")]


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
