"""Backends that anybody could plug in, each with one way not to be judged: it refuses, dies, raises or is killed."""

from __future__ import annotations

import os

from poolproof.backends.base import Call, Outcome, Status
from scatter_backends import KilledOnce, Scatter


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
