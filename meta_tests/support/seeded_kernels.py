"""The kernels of `examples/kernels` with one fault each: one place of a source or of its tiling, done otherwise.

A copy of the examples holds all of them, each chosen by its name in the environment when the kernel runs, so that a
kernel is compiled once for the right one and for all of its faults.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

from places import ROOT
from poolproof.backends.base import Backend
from poolproof.backends.registry import create, prepare
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, blocks, subjects

EXAMPLES = ROOT / "examples" / "kernels"
VARIABLE = "POOLPROOF_SEEDED_KERNEL"

KERNELS = {
    "scatter": ("float32",),
    "tiles": ("float32", "float16"),
    "registers": ("float32",),
    "threads": ("float32",),
    "forward": ("float32",),
}


@dataclass(frozen=True)
class Fault:
    """``right`` is the first such text of a file, and ``wrong`` is done instead: both an expression, or a statement.

    ``case`` shows it: the check ``found_by`` notices, and ``says`` is a part of what it says.
    """

    name: str
    file: str
    right: str
    wrong: str
    says: str
    case: str
    found_by: str = "sanitizer"
    dtype: str = "float32"

    @property
    def kernel(self) -> str:
        return self.file.removesuffix("_tiling.py").removesuffix(".cpp")

    @property
    def line(self) -> str:
        """The case in JSON."""
        operator = "MaxPool2dWithIndices" + ("" if self.kernel == "forward" else "Backward")
        return f'{{"operator":"{operator}","dtype":"{self.dtype}","index_dtype":"int32",{self.case}}}'


_OVERLAPS = '"shape":[1,1,9,9],"kernel_size":[3,3],"stride":[2,2],"padding":[1,1]'
_PLANES = '"shape":[2,40,9,9],"kernel_size":[3,3],"stride":[2,2],"padding":[1,1]'
_TAILS = '"shape":[1,24,9,9],"kernel_size":[3,3],"stride":[2,2],"padding":[1,1]'
_DILATED = '"shape":[1,1,13,13],"kernel_size":[2,2],"stride":[2,2],"padding":[0,0],"dilation":[3,3]'
_APART = '"shape":[1,1,9,9],"kernel_size":[2,2],"stride":[2,2],"padding":[0,0]'
_MANY = '"shape":[2,1,260,260],"kernel_size":[1,1],"stride":[1,1],"padding":[0,0]'
_ROUNDS = '"shape":[1,1,60,60],"kernel_size":[5,5],"stride":[1,1],"padding":[2,2],"gradient":"wide","indices":"crowded"'
_ASKED = _ROUNDS + ',"deterministic":true'
_NAN = _OVERLAPS + ',"values":"nan"'

_BAR = "MicroAPI::LocalMemBar<MicroAPI::MemType::VEC_STORE, MicroAPI::MemType::VEC_LOAD>();"

FAULTS = (
    Fault("queue_step", "scatter.cpp", "yQueue_.EnQue(y);", "", "DeQue of an empty queue", _OVERLAPS),
    Fault(
        *("plane_offset_in_16_bits", "scatter.cpp", "plane * tiling_.windows + start"),
        *(
            "static_cast<uint16_t>(plane * tiling_.windows) + start",
            "65536 of 135200 cells are wrong",
            _MANY,
            "interval",
        ),
    ),
    Fault(
        *("dilation_forgotten", "tiles_tiling.py", "(kernel - 1) * dilation + 1", "kernel"),
        *("store and store of two cores, no SyncAll between", _DILATED),
    ),
    Fault("no_sync_all", "tiles.cpp", "AscendC::SyncAll();", "", "of two cores, no SyncAll between", _OVERLAPS),
    Fault(
        *("no_flag", "tiles.cpp", "Wait<AscendC::HardEvent::MTE3_V>();", ""),
        *("store by V is not ordered after the load by MTE3", _PLANES),
    ),
    Fault(
        *("tail_at_full_length", "tiles.cpp", "Smaller(tiling_.tileRows, tiling_.windowRows - row)"),
        *("tiling_.tileRows", "load outside of every tensor", _TAILS),
    ),
    Fault(
        *("sums_not_cleared", "tiles.cpp", "ClearSums();", ""),
        *("an output is computed from, or added to, what was never written", _OVERLAPS, "sanitizer", "float16"),
    ),
    Fault(
        *("key_without_a_branch", "tiles.cpp", "TILING_KEY_IS(1)", "TILING_KEY_IS(2)"),
        *("a tiling key that no branch serves: 1", _APART),
    ),
    Fault("determinism_unread", "tiles_tiling.py", "call.deterministic", "False", "in repetition", _ASKED, "repeat"),
    Fault(
        *("scatter_index_twice", "registers_tiling.py", "min(ceil(reach / call.stride[-1]), chunk)", "1"),
        *("one Scatter has an index twice: one of the values is lost", _OVERLAPS),
    ),
    Fault(
        "no_local_mem_bar", "registers.cpp", _BAR, "", "loads what it stored before, no LocalMemBar between", _OVERLAPS
    ),
    Fault(
        *("plain_addition", "threads.cpp", "asc_atomic_add(cell, grad[window]);", "*cell += grad[window];"),
        *("of two threads, no __syncthreads between", _OVERLAPS),
    ),
    Fault("nan_dropped", "forward.cpp", "Replace(kept, value, nan);", "", "expected nan", _NAN, "maximum"),
)

_ASKS = """#include <cstdlib>
#include <cstring>
inline bool is_seeded(const char* name)
{
    const char* const chosen = std::getenv("%s");
    return chosen && !std::strcmp(chosen, name);
}
#line 1
"""


def write_kernels(folder: Path) -> None:
    """Copy the examples, each with its faults."""
    for path in EXAMPLES.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    for fault in FAULTS:
        path = folder / fault.file
        text = path.read_text(encoding="utf-8")
        assert fault.right in text, f"{fault.name}: {fault.file} has changed"
        path.write_text(text.replace(fault.right, _either(fault), 1), encoding="utf-8")
    for path in folder.glob("*.cpp"):
        path.write_text(_ASKS % VARIABLE + path.read_text(encoding="utf-8"), encoding="utf-8")


def _either(fault: Fault) -> str:
    if fault.file.endswith(".py"):
        return f'({fault.wrong} if __import__("os").environ.get("{VARIABLE}") == "{fault.name}" else {fault.right})'
    if fault.right.endswith(";"):
        return f'if (is_seeded("{fault.name}")) {{ {fault.wrong} }} else {{ {fault.right} }}'
    return f'(is_seeded("{fault.name}") ? {fault.wrong} : {fault.right})'


@contextmanager
def seeded(name: str) -> Iterator[None]:
    """Have kernels run with the fault of that name; with none, where it is empty."""
    os.environ[VARIABLE] = name
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def made(folder: Path, kernel: str, dtype: str) -> Backend:
    name = f"ascendc:{folder / kernel}.toml"
    prepare(name, lambda _: None, dtype)
    return create(name)


def smoke_plan(backend: Backend, dtype: str, seed: int) -> Iterator[Question]:
    """Yield the questions of a kernel's smoke plan, of each aspect in turn, but for those that take long."""
    chosen = [aspect for aspect in CASE_ASPECTS.values() if not aspect.costly]
    asked = [subject for subject in subjects("", backend) if subject.dtype == dtype and not subject.unsupported]
    turns = zip_longest(*(block.questions() for block in blocks(asked, chosen, PLANS["smoke"], seed)))
    yield from (question for question in chain.from_iterable(turns) if question is not None)
