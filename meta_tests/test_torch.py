"""What the torch backend declares is what the probe measures."""

from __future__ import annotations

import pytest

from poolproof.backends.registry import create
from poolproof.references.operators import BACKWARDS, Operator
from poolproof.suites.probe import MEMORY_FORMATS, measure_accumulation, probe_cases
from poolproof.suites.trial import Trial

pytest.importorskip("torch")

TORCH_BACKWARDS = [operator for operator in BACKWARDS if operator.aten]


@pytest.mark.parametrize("memory_format", MEMORY_FORMATS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("operator", TORCH_BACKWARDS, ids=lambda operator: operator.name)
def test_declared_accumulation_is_the_measured_one(operator: Operator, dtype: str, memory_format: str) -> None:
    backend = create("torch-cpu")
    if operator.name == "AdaptiveMaxPool3dBackward" and memory_format == "channels_last":
        pytest.skip("torch reads indices in this layout wrongly (waiver torch-3d-strided-outputs)")
    measured = measure_accumulation(backend, operator, dtype, "int64", memory_format)
    assert measured.judged > 1000
    for case in probe_cases(operator, dtype, "int64", memory_format):
        assert Trial(case, backend).model == measured.model
