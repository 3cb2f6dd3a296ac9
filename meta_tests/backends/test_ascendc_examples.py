"""Kernels of `examples/kernels` are right in every order; each fault seeded into them is found and named."""

import json
from itertools import islice
from pathlib import Path

import pytest

from poolproof.backends.ascendc.manifest import Kernel
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.api import judge
from seeded_kernels import EXAMPLES, FAULTS, KERNELS, made, seeded, smoke_plan, write_kernels

COMPILED = [(kernel, dtype) for kernel, dtypes in KERNELS.items() for dtype in dtypes]
FEW = 10


@pytest.mark.parametrize(("kernel", "dtype"), COMPILED)
def test_the_right_one_is_clean_and_each_fault_is_found_and_named(kernel: str, dtype: str, tmp_path: Path) -> None:
    write_kernels(tmp_path)
    backend = made(tmp_path, kernel, dtype)
    for question in islice(smoke_plan(backend, dtype, 1), FEW):
        row = question.judge(backend)
        assert row["verdict"] == Verdict.CONFORMS, row["reason"]
    for fault in (fault for fault in FAULTS if (fault.kernel, fault.dtype) == (kernel, dtype)):
        right = judge(fault.line, backend)
        assert right["verdict"] == Verdict.CONFORMS, right["reason"]
        with seeded(fault.name):
            wrong = judge(fault.line, backend)
        assert wrong["verdict"] == Verdict.VIOLATES, fault.name
        said = [each["message"] for each in json.loads(wrong["findings"]) if each["check"] == fault.found_by]
        assert any(fault.says in message for message in said), (fault.name, wrong["findings"])


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_a_manifest_of_an_example_is_short_and_is_tested(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 20
    assert KERNELS[path.stem] == Kernel(str(path)).manifest.dtypes
