"""What the torch backend declares is what the probe finds, in every operator, dtype and memory format."""

from __future__ import annotations

import pytest

from poolproof.backends.registry import create
from poolproof.references.operators import BACKWARDS, FORWARDS, Operator
from poolproof.suites.probe.questions import MEMORY_FORMATS, take_account

pytest.importorskip("torch")

DTYPES = ("float64", "float32", "float16", "bfloat16")


@pytest.mark.parametrize("memory_format", MEMORY_FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", [operator for operator in BACKWARDS if operator.aten], ids=lambda op: op.name)
def test_declared_accumulation_is_the_one_found(operator: Operator, dtype: str, memory_format: str) -> None:
    account = take_account(create("torch-cpu"), operator.name, dtype, "int64", memory_format)
    wide = dtype in ("float32", "float64")
    assert account.model == account.declared == ("acc32" if wide else "native")
    traits = ("rounding", "subnormals", "overflow", "infinity", "NaN", "-0", "repetitions")
    found = ["even", "kept", "infinity", "kept", "kept", "becomes +0", "agree"]
    assert [account.found(trait) for trait in traits] == found
    if operator.name == "AdaptiveMaxPool3dBackward" and memory_format == "channels_last":
        assert account.found("exact data") == "wrong unless grad_input and indices are contiguous"  # known, waived
        assert len(account.disagreements) == 1
    else:
        assert account.found("exact data") == "right"
        assert account.disagreements == ()


@pytest.mark.parametrize("memory_format", MEMORY_FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", [operator for operator in FORWARDS if operator.aten], ids=lambda op: op.name)
def test_indices_follow_the_rules(operator: Operator, dtype: str, memory_format: str) -> None:
    account = take_account(create("torch-cpu"), operator.name, dtype, "int64", memory_format)
    assert account.found("tie") == "first"
    assert account.found("NaN") == "last NaN"
    if operator.name == "MaxPool3dWithArgmax" and memory_format == "channels_last":
        # Channels that do not fill a vector get an index outside the window (docs/precision.md).
        assert account.found("-inf") == "none of those known"
    else:
        assert account.found("-inf") == "a cell, as of ties"
        assert account.model == "first"
