"""Right backends but for one defect each: what some calls leave behind spoils another, often of another operator.

Name them as ``two_operators:key_lacks_operator``.
"""

from collections.abc import Sequence

import numpy as np

from poolproof.backends.base import Call, Outcome, SequenceResult
from poolproof.references.sequences import Actions
from scatter import Scatter


class Sharing(Scatter):
    """Spoils the first output of a call that finds what another operator has left in its ``place``."""

    def __init__(self) -> None:
        super().__init__()
        self.left: dict[object, str] = {}

    def place(self, call: Call) -> object:
        """Where something is kept of a call."""
        return ()

    def keep(self, call: Call) -> str:
        """Return the operator whose data lie in the place of a call, which puts its own there."""
        found, self.left[self.place(call)] = self.left.get(self.place(call), call.operator.name), call.operator.name
        return found

    def run(self, call: Call, mode: str = "") -> Outcome:
        found, outcome = self.keep(call), super().run(call, mode)
        return self.spoilt(call, outcome) if found != call.operator.name else outcome

    def spoilt(self, call: Call, outcome: Outcome) -> Outcome:
        out = call.tensors[call.operator.outputs[0]].array
        if out.size:
            out[(-1,) * out.ndim] += np.asarray(1, out.dtype)
        return outcome


class key_lacks_operator(Sharing):  # noqa: N801
    """The cache of tilings has shapes and attributes in its key, and no operator: the first of two is kept."""

    def place(self, call: Call) -> object:
        return call.dtype, call.tensors["self"].shape, call.tensors[call.operator.pooled].shape

    def keep(self, call: Call) -> str:
        return self.left.setdefault(self.place(call), call.operator.name)


class static_buffer(Sharing):  # noqa: N801
    """A buffer that forwards and backwards share is cleared by a call behind one of another operator, not before."""


class one_slot_between_phases(Scatter):  # noqa: N801
    """Phase one leaves its tiling in one slot of the process: of two operators the last to be prepared is taken."""

    def run_sequence(self, actions: Actions, calls: Sequence[Call]) -> SequenceResult:
        result, prepared, spoilt = super().run_sequence(actions, calls), dict[int, int](), set[int]()
        slot = ""
        for action in actions:
            if action.do == "prepare":
                prepared[action.executor], slot = action.call, calls[action.call].operator.name
            else:
                call = prepared[action.executor]
                (spoilt.add if slot != calls[call].operator.name else spoilt.discard)(call)
        for number in spoilt:
            Sharing.spoilt(Sharing(), calls[number], Outcome(None))  # type: ignore[arg-type]
        return result


class hangs_on_two_earlier(Scatter):  # noqa: N801
    """A plane seven wide is wrong once there was one three wide and one five wide, in whichever order."""

    def __init__(self) -> None:
        super().__init__()
        self.widths: set[int] = set()

    def run(self, call: Call, mode: str = "") -> Outcome:
        width, outcome = call.tensors["self"].shape[-1], super().run(call, mode)
        self.widths.add(width)
        return Sharing.spoilt(Sharing(), call, outcome) if self.widths >= {3, 5, 7} and width == 7 else outcome
