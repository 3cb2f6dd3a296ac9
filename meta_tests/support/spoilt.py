"""A right backend but for one defect in sequences: which of their calls it makes wrong follows from their actions."""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from poolproof.backends.base import Backend, Call, SequenceResult
from poolproof.references.sequences import Actions


def spoils(actions: Actions) -> set[int]:
    """Return the calls whose last run is on the third stream, behind a refusal of another call."""
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


def _runs(actions: Actions) -> list[int]:
    return [action.executor for action in actions if action.do == "run"]


SPOILING: Mapping[str, Callable[[Actions], bool]] = {
    "phase_two.workspace_enlarged": lambda actions: any(action.what == "enlarged" for action in actions),
    "phase_two.workspace_shifted": lambda actions: any(action.what == "shifted" for action in actions),
    "executor.addresses_set_twice": lambda actions: [action.do for action in actions].count("set_addresses") > 1,
    "executor.repeated_in_other_order": lambda actions: _runs(actions)[-2:] == [1, 0] and len(_runs(actions)) > 2,
    "phase_one.after_refusal": lambda actions: actions[0].do == "refuse" and len(actions) > 1,
}
"""Defects by the scenario that shows them: how the size of a workspace is told, or its end found, by 512 bytes; the
first addresses are kept; the order of executors is; and the tiling of a call that was refused."""


class Spoilt:
    def __init__(self, right: Backend, spoils: Callable[[Actions], Collection[int]] = spoils) -> None:
        self._right, self._spoils = right, spoils

    def __getattr__(self, name: str) -> object:
        return getattr(self._right, name)

    def run_sequence(self, actions: Actions, calls: Sequence[Call]) -> SequenceResult:
        result = self._right.run_sequence(actions, calls)
        for call in self._spoils(actions):
            out = calls[call].tensors[calls[call].operator.outputs[0]].array
            if out.size:
                first = (0,) * out.ndim
                out[first] = 2 if np.isnan(out[first]) or out[first] != 2 else 3
        return result
