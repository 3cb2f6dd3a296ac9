"""Replays of large cases from the command line, as by a user, and torch's own forward and backward.

The time and memory of a passing small case are subtracted: they are the cost of the start. Torch has one thread, and
existing tensors.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from large_cases import large_case, torch_alone
from measuring import Figure, seconds_of
from poolproof.suites.cases.case import Case

OPERATOR = "MaxPool2dWithIndicesBackward"

KINDS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "exact sums": ("torch-cpu", {}),
    "sums by their order": ("torch-cpu", {"gradient": "uniform", "indices": "crowded"}),
    "layouts": ("torch-cpu", {"layouts": (("grad_input", "sliced"), ("grad_output", "sliced"))}),
    "one wrong cell": ("one_wrong:OneWrong", {}),
}
"""Kind -> the judged backend, and the special fields of the case."""

_MOST_TIME = {"one wrong cell": "<= 10"}
"""Bound of the ratio of times at 10^7 elements; 6 for other kinds."""


def measure_replays(sizes: Sequence[int], rounds: int) -> Iterator[Figure]:
    """Yield two figures for each number of elements of self and kind of case: seconds, and bytes beside the tensors."""
    torch.set_num_threads(1)
    for elements in sizes:
        for kind, (backend, particular) in KINDS.items():
            small, large = (large_case(OPERATOR, size, **particular) for size in (10**4, elements))
            alone, began = torch_alone(large), [_replayed("torch-cpu", small) for _ in range(rounds)]
            alone()
            taken = [(_replayed(backend, large), seconds_of(alone)) for _ in range(rounds)]
            bounds = (_MOST_TIME.get(kind, "<= 6"), "<= 4") if elements == 10**7 else ("", "")
            yield from _figures(f"{kind}, {elements:,} elements", bounds, large, began, taken)


def _figures(
    what: str,
    bounds: tuple[str, str],
    case: Case,
    small: Sequence[tuple[float, int]],
    large: Sequence[tuple[tuple[float, int], float]],
) -> Iterator[Figure]:
    begun, before = (statistics.median(figures) for figures in zip(*small, strict=True))
    ours = statistics.median(seconds for (seconds, _), _ in large) - begun
    theirs = statistics.median(seconds for _, seconds in large)
    yield Figure("replays", what, "s", ours, "torch's forward and backward", theirs, ours / theirs, bounds[0])
    peak = (max(peak for (_, peak), _ in large) - before) / 2**20
    tensors = case.memory_bytes() / 2**20
    yield Figure("replays", what, "MiB", peak, "the case's tensors", tensors, peak / tensors, bounds[1])


def _replayed(backend: str, case: Case) -> tuple[float, int]:
    """Return the seconds of a replay, and the peak memory of its process in bytes."""
    words = [sys.executable, "-c", "from poolproof.suites.cli import main; main()", "replay", "--timeout", "3600"]
    paths = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    started = time.perf_counter()
    process = subprocess.Popen([*words, "--backend", backend, case.to_json()], stdout=subprocess.PIPE, env=paths)
    printed = process.stdout.read() if process.stdout else b""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != (backend != "torch-cpu"):
        raise SystemExit(f"{case.to_json()} ended with {process.returncode}: {printed.decode(errors='replace')[:500]}")
    return time.perf_counter() - started, usage.ru_maxrss * 1024
