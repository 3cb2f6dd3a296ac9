"""Large cases and torch's own forward and backward: time, and memory relative to the case's tensors.

    python benchmarks/large_cases.py OPERATOR ELEMENTS ROUNDS

Run like this, it measures one case in a separate process, with a host as in a run, and prints one line of JSON. Torch
has one thread. Memory is the peak of the judge, including the tensors that it shares with the host, minus its memory
after a small case of the operator.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any

import torch

from measuring import Figure, seconds_of
from poolproof.references.operators import OPERATORS as FAMILY
from poolproof.reports.rows.schema import Row
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.run.sandbox import Sandbox

OPERATORS = ("MaxPool2dWithIndicesBackward", "MaxPool3dWithArgmaxBackward")

_PLANES = {
    "MaxPool2dWithIndicesBackward": (100, 100),
    "MaxPool3dWithArgmaxBackward": (10, 100, 100),
}
"""Shape of one plane; the number of planes follows from that of elements."""

_ENOUGH_SECONDS = 60.0
"""Seconds after which no further measurement of a case begins."""

_MOST_TIME, _MOST_MEMORY = "<= 6", "<= 6"


def measure_large(operators: Sequence[str], sizes: Sequence[int], rounds: int) -> Iterator[Figure]:
    """Yield two figures for each operator and number of elements of self: seconds and bytes."""
    for elements in sizes:
        for operator in (name for name in OPERATORS if name in operators):
            yield from _measured(operator, elements, rounds)


def _measured(operator: str, elements: int, rounds: int) -> Iterator[Figure]:
    command = [sys.executable, __file__, operator, str(elements), str(rounds)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    what = f"{operator}, {elements:,} elements"
    if ended.returncode:
        why = (ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"])[-1]
        yield Figure("large cases", what, "s", None, note=why)
        return
    measured: dict[str, Any] = json.loads(ended.stdout)
    ours, theirs = measured["seconds"], measured["torch_seconds"]
    bound = _MOST_TIME if elements == 10**7 else ""
    beside = "torch's forward and backward"
    yield Figure("large cases", what, "s", ours, beside, theirs, ours / theirs, bound, measured["verdict"])
    peak, tensors = measured["peak_bytes"] / 2**20, measured["tensor_bytes"] / 2**20
    bound = _MOST_MEMORY if elements == 10**7 else ""
    yield Figure("large cases", what, "MiB", peak, "the case's tensors", tensors, peak / tensors, bound)


def _measure_here(operator: str, elements: int, rounds: int) -> dict[str, Any]:
    """Return the seconds and bytes of judging one case in this process, and the seconds of torch."""
    torch.set_num_threads(1)
    case = large_case(operator, elements)
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox("torch-cpu", Path(folder), "large", 600.0)

        def judge(given: Case) -> Row:
            (row,) = sandbox.judge([CaseQuestion(given, CASE_ASPECTS["values"])])
            return row

        judge(large_case(operator, 10**5))  # loads and compiles the used code
        before = _memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets VmHWM
        row = judge(case)
        peak = _memory("VmHWM") - before
        compute = torch_alone(case)
        compute()
        began, taken = time.perf_counter(), {"ours": [row["seconds"]], "torch": [seconds_of(compute)]}
        while len(taken["ours"]) < rounds and taken["ours"][0] + time.perf_counter() - began < _ENOUGH_SECONDS:
            taken["torch"].append(seconds_of(compute))
            taken["ours"].append(seconds_of(lambda: judge(case)))
        sandbox.close()
    return {
        "seconds": statistics.median(taken["ours"]),
        "torch_seconds": statistics.median(taken["torch"]),
        "peak_bytes": peak,
        "tensor_bytes": case.memory_bytes(),
        "verdict": ": ".join(filter(None, (row["verdict"], row["reason"]))),
    }


def large_case(operator: str, elements: int, **particular: Any) -> Case:
    """Return a case with windows of 3, stride 2 and padding 1, as after the first convolution of many networks."""
    plane = _PLANES[operator]
    planes = max(elements // prod(plane), 1)
    windows = {"kernel_size": (3,), "stride": (2,), "padding": (1,), "dilation": (1,)}
    data = {"gradient": "integers", "indices": "forward"} | particular
    return Case.of(operator=operator, shape=(1, planes, *plane), **windows, **data)


def torch_alone(case: Case) -> Callable[[], None]:
    """Return torch's forward and backward of the case, on existing tensors."""
    aten, api, producer = torch.ops.aten, case.api, FAMILY[case.api.producer or ""]
    values, gradient = torch.randn(case.shape), torch.randn(case.pooled_shape)
    forward, backward = getattr(aten, producer.aten), getattr(aten, api.aten)

    def compute() -> None:
        _, indices = forward(values, *producer.passed(case.attributes))
        backward(gradient, values, *api.passed(case.attributes), indices)

    return compute


def _memory(name: str) -> int:
    """Return the bytes that the system counts under a name for this process."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc/self/status has no {name}: memory can be measured on Linux alone")


if __name__ == "__main__":
    name, elements, rounds = sys.argv[1:]
    print(json.dumps(_measure_here(name, int(elements), int(rounds))))
