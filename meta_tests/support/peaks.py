"""How much memory judging takes, measured: `python peaks.py` prints one JSON object for each case, passing and failing.

Each case is judged in a process of its own, forked when all is loaded; what counts is the most that it held, less what
it held before.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from holding import holding
from poolproof.backends.base import Call, Outcome
from poolproof.backends.torch_eager import TorchEager
from poolproof.references.kernels.compiled import compile_all
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.budget import needed_memory
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import USUAL
from poolproof.suites.judging.question import Aspect


class WrongEverywhere(TorchEager):
    """One too many in every element of every output; no memory is taken to make it so."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        outcome = super().run(call, mode)
        for name in call.operator.outputs:
            elements = call.tensors[name].array
            elements += np.ones((), elements.dtype)
        return outcome


_OVERLAPPING: dict[str, Any] = {"kernel_size": (3,), "stride": (2,), "padding": (1,)}
_BACKWARD, _FORWARD = "MaxPool2dWithIndicesBackward", "MaxPool2dWithIndices"
_PLANES, _PLANE = (1, 400, 100, 100), (1, 1, 2000, 2000)

CASES = {
    "many planes": Case.of(_BACKWARD, shape=_PLANES, **_OVERLAPPING),
    "many planes of float16": Case.of(_BACKWARD, shape=_PLANES, dtype="float16", **_OVERLAPPING),
    "a plane": Case.of(_BACKWARD, shape=(1, 4, 1000, 1000), **_OVERLAPPING),
    "one plane": Case.of(_BACKWARD, shape=_PLANE, **_OVERLAPPING),
    "many planes forward": Case.of(_FORWARD, shape=_PLANES, **_OVERLAPPING),
}
REPEATS = {"many planes": 5}


def main() -> None:
    torch.set_num_threads(1)
    compile_all()  # which takes memory, too
    for label, case in CASES.items():
        aspect = holding(*USUAL, repeats=REPEATS.get(label, 1))
        for backend in (TorchEager("cpu"), WrongEverywhere("cpu")):
            child = os.fork()
            if not child:
                sys.stdout.write(json.dumps(_measured(label, case, aspect, backend)) + "\n")
                sys.stdout.flush()
                os._exit(0)
            os.waitpid(child, 0)


def _measured(label: str, case: Case, aspect: Aspect, backend: TorchEager) -> dict[str, Any]:
    CaseQuestion(replace(case, shape=(1, 4, 100, 100)), aspect).judge(backend)  # libraries count where they are touched
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # VmHWM is counted from here
    row = CaseQuestion(case, aspect).judge(backend)
    return {
        "case": label,
        "verdict": row["verdict"],
        "peak": _memory("VmHWM") - before,
        "needed": needed_memory(case, aspect.repeats),
        "tensors": case.memory_bytes(),
        "planes": case.planes,
    }


def _memory(name: str) -> int:
    """Bytes that the system counts under a name for this process."""
    (line,) = [each for each in Path("/proc/self/status").read_text("ascii").splitlines() if each.startswith(name)]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
