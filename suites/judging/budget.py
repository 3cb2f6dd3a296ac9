"""Whether a case fits into the memory that there is to judge it, decided before anything is allocated.

What a case takes follows from its tensors alone (`WORKING_COPIES`, measured); what there is, whoever starts a run
says, or the system.
"""

from __future__ import annotations

import os
import re
from math import inf
from pathlib import Path

from poolproof.references.operators import Direction
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.case import Case

VARIABLE = "POOLPROOF_MEMORY_BUDGET"
"""Environment variable with the bytes that one process may take; without it, what is free when a case comes."""

WORKING_COPIES = 5
"""What a case is judged in, in multiples of its tensors: runs that are compared, inputs as they were, contents.
Measured: 2.6 to 4.5 where it passes, on torch and on the emulator, where the device has tensors of its own; 16 where it
fails everywhere. One that fails and is too large for that is killed by the system, which is told as not run."""

PLANE_BYTES = {Direction.BACKWARD: 72, Direction.FORWARD: 8}
"""What each cell of a plane takes besides, while that plane is judged (measured: 66 and 6)."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


class NoSize(BadInput):
    """A text that is no size of memory."""


def parse_size(text: str) -> int:
    """Bytes of a size such as 8GiB, 500 MB or 1.5TiB; `NoSize` for anything else, and for nothing."""
    match = _SIZE.fullmatch(text.strip())
    size = match and float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2].upper()]
    if not size or not 1.0 <= size < inf:
        raise NoSize(f"--memory-budget {text}: a size is a number above 0 and a unit, such as 8GiB or 500MB")
    return int(size)


def free_memory() -> int:
    """Bytes that the system could give to programs now; half of what the machine has where it does not say."""
    try:
        said = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text("ascii"), re.MULTILINE)
    except OSError:
        said = None
    return int(said[1]) * 1024 if said else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def share(budget: int, workers: int) -> None:
    """Let this process, and those that it starts, take its share of a budget in bytes."""
    os.environ[VARIABLE] = str(budget // workers)


def allow_free_memory() -> None:
    """Let this process, and those that it starts, take what is free now, whatever the variable said before."""
    share(free_memory(), 1)


def needed_memory(case: Case) -> int:
    """Bytes that judging a case takes, about."""
    return WORKING_COPIES * case.memory_bytes() + PLANE_BYTES[case.api.direction] * case.plane_size


def too_large(case: Case) -> str:
    """Why the case is left out, with its size; empty where there is memory enough."""
    needed, allowed = needed_memory(case), int(os.environ.get(VARIABLE) or free_memory())
    if needed <= allowed:
        return ""
    sizes = f"{case.memory_bytes() / 2**30:.3g} GiB of tensors, about {needed / 2**30:.3g} GiB to judge them"
    return f"beyond the memory budget of {allowed / 2**30:.3g} GiB a process: {sizes}"
