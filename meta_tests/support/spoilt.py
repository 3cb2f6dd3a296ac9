"""A right backend but for one defect: a run on the third stream is wrong behind a refusal of another call."""

from collections.abc import Sequence

import numpy as np

from poolproof.backends.base import Backend, Call, SequenceResult
from poolproof.references.sequences import Actions


def spoils(actions: Actions) -> set[int]:
    """Return the calls whose results, those of their last run, the defect makes wrong."""
    call_of, last, refused = dict[int, int](), dict[int, bool](), set[int]()
    for action in actions:
        if action.do in ("prepare", "set_addresses"):
            call_of[action.executor] = action.call
        elif action.do == "refuse" and not action.what:
            refused.add(action.call)
        elif action.do == "run":
            call = call_of[action.executor]
            last[call] = action.stream == 2 and bool(refused - {call})
    return {call for call, is_wrong in last.items() if is_wrong}


class Spoilt:
    def __init__(self, right: Backend) -> None:
        self._right = right

    def __getattr__(self, name: str) -> object:
        return getattr(self._right, name)

    def run_sequence(self, actions: Actions, calls: Sequence[Call]) -> SequenceResult:
        result = self._right.run_sequence(actions, calls)
        for call in spoils(actions):
            out = calls[call].tensors[calls[call].operator.outputs[0]].array
            if out.size:
                first = (0,) * out.ndim
                out[first] = 2 if np.isnan(out[first]) or out[first] != 2 else 3
        return result
