"""A failing call as a program for its vendor: nothing of this project, the tensors spelled out.

The program makes the call on memory that holds 0xFF bytes, as the suite does, works out in a few loops what is owed,
and prints where the result differs. It knows nothing of accumulation models: a sum it lists may be rounded legally.
"""

from __future__ import annotations

from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import POISONS, allocate, contents
from poolproof.suites.judging.standalone import aclnn_program, torch_program

MOST_VALUES = 20_000
"""Numbers that a program spells out at most."""


def program(case: Case, backend: str) -> str:
    """A Python program that makes the call of ``case``.

    Empty for large calls, for backends that neither torch nor aclnn is behind, and for bit masks, whose order is not
    published.
    """
    values = case.planes * (case.plane_size + 2 * case.plane_windows)
    is_aclnn = backend == "aclnn" or backend.startswith("emulator-")
    if not (is_aclnn or backend in torch_program.DEVICES) or values > MOST_VALUES or case.has_bit_mask:
        return ""
    content = contents(case)
    call = allocate(content, POISONS[0])
    return aclnn_program.write(content, call) if is_aclnn else torch_program.write(content, call, backend)
