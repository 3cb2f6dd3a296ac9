"""The memory budget: whether a case fits into the memory that there is to judge it, before anything is allocated.

What a case takes follows from its tensors alone (`needed_memory`, held against what is measured); what there is,
whoever starts a run says, or the system.
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
"""Environment variable with the bytes that one process may take; without it, what is free when a case comes."""

PLANE_BYTES = {Direction.BACKWARD: 61, Direction.FORWARD: 8}
"""What each cell of a plane, or of a piece of a large one, takes while that is judged: its facts and its output."""

WINDOW_BYTES = 16
"""What each window takes then: its gradient, twice where sums are wider than float64, or its maximum and its index."""

VARIATIONS = ("layout_invariance", "index_dtype_invariance", "scale_equivariance")
"""Checks whose runs, in other layouts, dtypes and scales, are kept beside the repetitions; of a case two at most."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}

_GROUP = Path("/sys/fs/cgroup")


def parse_size(text: str) -> int:
    """Read a size such as 8GiB, 500 MB or 1.5TiB as bytes; `BadInput` for anything else, and for nothing."""
    match = _SIZE.fullmatch(text.strip())
    size = match and float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2].upper()]
    if not size or not 1.0 <= size < inf:
        raise BadInput(f"--memory-budget {text}: a size is a number above 0 and a unit, such as 8GiB or 500MB")
    return int(size)


def free_memory() -> int:
    """Return the bytes that the system could give to programs now; half of the machine's where it does not say.

    A container has no more than its control group is given (Linux, admin-guide/cgroup-v2: memory.max, memory.current,
    and of memory.stat inactive_file, pages of files that are given back on demand).
    """
    kilobytes = number_in(Path("/proc/meminfo"), "MemAvailable")
    free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2 if kilobytes is None else 1024 * kilobytes
    try:
        most, used = (int((_GROUP / name).read_text("ascii")) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # there is none, or it is given "max"
        return free
    return max(0, min(free, most - used + (number_in(_GROUP / "memory.stat", "inactive_file") or 0)))


def number_in(path: Path, name: str) -> int | None:
    """Return the number behind a name in a file of the system, a name in each line; None where it does not say."""
    with suppress(OSError):
        if found := re.search(rf"^{name}:?\s+(\d+)", path.read_text("ascii"), re.MULTILINE):
            return int(found[1])
    return None


def share(budget: int, workers: int) -> None:
    """Let this process, and those that it starts, take its share of a budget in bytes."""
    os.environ[VARIABLE] = str(budget // workers)


def allow_free_memory() -> None:
    """Let this process, and those that it starts, take what is free now, whatever the variable said before."""
    share(free_memory(), 1)


def needed_memory(case: Case, repeats: int = 1, checks: Collection[str] = VARIATIONS) -> int:
    """Estimate the bytes that judging a case takes, whether it passes or fails.

    The operands and the first run are kept throughout, and the outputs of every other run. To these comes what is made
    and dropped again: a run, and beside it what a device on this machine has of it or what is known of a plane.
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
    """Say why the case is left out, with its size; empty where there is memory enough."""
    needed, allowed = needed_memory(case, repeats, checks), _allowed()
    if needed <= allowed:
        return ""
    sizes = f"{case.memory_bytes() / 2**30:.3g} GiB of tensors, about {needed / 2**30:.3g} GiB to judge them"
    return f"beyond the memory budget of {allowed / 2**30:.3g} GiB a process: {sizes}"


def _allowed() -> int:
    return int(os.environ.get(VARIABLE) or free_memory())
