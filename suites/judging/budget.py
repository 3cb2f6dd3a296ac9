"""The memory budget: whether a case fits into memory, decided before anything is allocated.

The need of a case follows from its tensors (`needed_memory`; a test compares it with measurements). The budget is an
option of the run, or the free memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from contextlib import suppress
from math import inf
from pathlib import Path

from poolproof.references.operators import Direction
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import CHUNKS_OF_LARGE_PLANE, MAX_WHOLE_PLANE

VARIABLE = "POOLPROOF_MEMORY_BUDGET"
"""Environment variable with the bytes that one process may use. Unset: the free memory when a case is judged."""

PLANE_BYTES = {Direction.BACKWARD: 61, Direction.FORWARD: 8}
"""Bytes per cell of a plane, or of a part of a large plane, during judging: facts about the cell, and its output."""

WINDOW_BYTES = 16
"""Bytes per window during judging: the gradient (twice if sums are wider than float64), or the maximum and its
index."""

VARIATIONS = ("layout_invariance", "index_dtype_invariance", "scale_equivariance")
"""Checks that keep further runs (layouts, dtypes, scales) beside the repetitions; a case has at most two of them."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}

_GROUP = Path("/sys/fs/cgroup")


def parse_size(text: str) -> int:
    """Return a size such as 8GiB, 500 MB or 1.5TiB in bytes; raise `BadInput` for anything else, also for 0."""
    match = _SIZE.fullmatch(text.strip())
    size = match and float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2].upper()]
    if not size or not 1.0 <= size < inf:
        raise BadInput(f"--memory-budget {text}: a size is a number above 0 and a unit, such as 8GiB or 500MB")
    return int(size)


def free_memory() -> int:
    """Return the bytes that are free for programs; half of the machine's memory if the system does not say.

    A container has no more than its control group (Linux, admin-guide/cgroup-v2: memory.max, memory.current, and
    inactive_file of memory.stat, the file pages that are freed on demand).
    """
    kilobytes = number_in(Path("/proc/meminfo"), "MemAvailable")
    free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2 if kilobytes is None else 1024 * kilobytes
    try:
        most, used = (int((_GROUP / name).read_text("ascii")) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no such file, or the value is "max"
        return free
    return max(0, min(free, most - used + (number_in(_GROUP / "memory.stat", "inactive_file") or 0)))


def number_in(path: Path, name: str) -> int | None:
    """Return the number after a name in a system file with one name per line; None if it is not there."""
    with suppress(OSError):
        if match := re.search(rf"^{name}:?\s+(\d+)", path.read_text("ascii"), re.MULTILINE):
            return int(match[1])
    return None


def share(budget: int, workers: int) -> None:
    """Set the budget of this process and its children: one worker's share of ``budget`` bytes."""
    os.environ[VARIABLE] = str(budget // workers)


def allow_free_memory() -> None:
    """Set the budget of this process and its children to the free memory, and replace an earlier value."""
    share(free_memory(), 1)


def needed_memory(case: Case, repeats: int = 1, checks: Collection[str] = VARIATIONS) -> int:
    """Estimate the bytes to judge a case, whether it passes or fails.

    The operands, the first run and the outputs of all other runs stay in memory. Temporary are one run, and beside it
    either its copies on a device of this machine or the facts about a plane.
    """
    forms, windows = case.forms, case.plane_windows
    outputs = sum(forms[name].nbytes for name in case.api.outputs)
    drawn = sum(forms[name].nbytes for name in case.api.inputs if name != "indices") + 8 * windows * case.planes
    at_once = case.plane_size
    if case.api.is_backward and at_once > MAX_WHOLE_PLANE:
        at_once = max(MAX_WHOLE_PLANE, -(-at_once // CHUNKS_OF_LARGE_PLANE))
    plane = PLANE_BYTES[case.api.direction] * at_once + WINDOW_BYTES * windows
    tensors = case.memory_bytes()
    variations = min(len({*VARIATIONS} & {*checks}), 2)
    return drawn + tensors + (repeats + variations) * outputs + tensors + max(tensors, plane)


def too_large(case: Case, repeats: int = 1, checks: Collection[str] = VARIATIONS) -> str:
    """Return the reason to skip the case, with its size; empty if the memory suffices."""
    needed, allowed = needed_memory(case, repeats, checks), _allowed()
    if needed <= allowed:
        return ""
    sizes = f"{case.memory_bytes() / 2**30:.3g} GiB of tensors, about {needed / 2**30:.3g} GiB to judge them"
    return f"beyond the memory budget of {allowed / 2**30:.3g} GiB a process: {sizes}"


def _allowed() -> int:
    return int(os.environ.get(VARIABLE) or free_memory())
