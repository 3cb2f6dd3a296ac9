"""Backends that anybody could plug in, each with one way not to be judged: it refuses, dies, raises or is killed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

from dying_backends import KilledOnce
from poolproof.backends.base import Call, Outcome, Status
from scatter import Scatter
from scatter_backends import FirstCellForEmptyWindow, Lost


class RefusesEverything(Scatter):
    """Turns every call down."""

    def objection(self, call: Call) -> str:
        return "not today"


class RefusesPadding(Scatter):
    """Has no padding, as some frameworks have none, and says so."""

    def objection(self, call: Call) -> str:
        return "padding is not supported" if call.attributes.is_padded else super().objection(call)


class CrashesAlways(Scatter):
    """Dies on every call."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        os.abort()


class RaisesAlways(Scatter):
    """The adapter raises on every call."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        raise ValueError("no stream")


class GivesNoOutcome(Scatter):
    """The adapter forgets to return what came."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        super().run(call, mode)
        return None  # type: ignore[return-value]


class NamesAStranger(Scatter):
    """The adapter tells of a tensor that the call does not put out."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        return Outcome(super().run(call, mode).status, results={"gradient": ((1,), "float32")})


class StatusIsText(Scatter):
    """The adapter gives a status of its own."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        return Outcome("ok")  # type: ignore[arg-type]


class LosesItsDevice(Scatter):
    """Reports as a refusal that its device is lost."""

    lost = False

    def is_usable(self) -> bool:
        return not self.lost

    def run(self, call: Call, mode: str = "") -> Outcome:
        self.lost = True
        return Outcome(Status.REFUSED, code=507015, message="507015 (AI Core exception)")


killed_once = KilledOnce


def _is_three_wide(call: Call) -> bool:
    return call.operator.is_backward and 3 in call.attributes.sizes


class DiesOfThrees(Scatter):
    """One kernel, for windows three wide, kills its process; all others are right."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        if _is_three_wide(call):
            os.abort()
        return super().run(call, mode)


class LosesThrees(Scatter):
    """One kernel, for windows three wide, loses the last gradient."""

    def route_terms(self, call: Call, cells: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (cells[:-1], terms[:-1]) if _is_three_wide(call) else (cells, terms)


class RemembersCeiling(Scatter):
    """Every call is right by itself, and one without ceil_mode is wrong after one with it."""

    trampled = False

    def run(self, call: Call, mode: str = "") -> Outcome:
        self.trampled |= call.attributes.rounds_up
        return super().run(call, mode)

    def narrow(self, call: Call, sums: np.ndarray) -> np.ndarray:
        return super().narrow(call, sums) + (self.trampled and not call.attributes.rounds_up)


class TramplesAtCeiling(RemembersCeiling):
    """One kernel, for windows with ceil_mode, writes past its output, and into what others read."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        outcome = super().run(call, mode)
        if call.attributes.rounds_up:
            call.tensors["grad_input"].buffer[-1] = 1
        return outcome


class UnforkableDiesOfThrees(DiesOfThrees):
    """The same, and it cannot be forked."""

    survives_fork = False


class LosesThreesAndRemembers(LosesThrees, RemembersCeiling):
    """One kernel is wrong by itself, and another after a third that is right."""


class SlowAtFirst(Scatter):
    """Loads in every process, at its first call, for longer than a case may take."""

    loaded = False

    def run(self, call: Call, mode: str = "") -> Outcome:
        if not self.loaded:
            time.sleep(3.0)
            self.loaded = True
        return super().run(call, mode)


class TellsWhatIsImported(Scatter):
    """Names as its route the packages that its process has imported."""

    def route(self, call: Call) -> str:
        return " ".join(sorted({name.partition(".")[0] for name in sys.modules}))


class LosesNowAndThen(Lost):
    """Loses in those processes that draw the letter L from a file; each takes the letter that it draws."""

    process, loses = 0, False

    def _draw(self) -> bool:
        lots = Path(os.environ["LOTS"])
        letters = lots.read_text()
        lots.write_text(letters[1:])
        return letters[:1] == "L"

    def route_terms(self, call: Call, cells: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.process != os.getpid():
            self.process, self.loses = os.getpid(), self._draw()
        return super().route_terms(call, cells, terms) if self.loses else (cells, terms)


class DiesInForward(FirstCellForEmptyWindow):
    """Its forward kills its process; its backward is right."""

    def forward(self, call: Call) -> None:
        os.abort()
