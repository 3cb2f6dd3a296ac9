"""Copies of a correct backend that do not answer every call: they die, hang, are killed, raise, are lost, or are slow.

Name them on a command line as ``dying_backends:crashing`` with this folder on PYTHONPATH.
"""

import os
import signal
import time
from pathlib import Path

from poolproof.backends.base import Outcome, Status
from scatter import Scatter


class Crashing(Scatter):
    """Dies on the first call with ceil_mode."""

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        if call.attributes.rounds_up:
            os.kill(os.getpid(), 11)
        return super().run(call, mode)


class CrashingOnOneCell(Scatter):
    """Dies on planes of one cell."""

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        if call.tensors["self"].array.size == 1:
            os.kill(os.getpid(), 11)
        return super().run(call, mode)


class Hanging(Scatter):
    """Never returns from a call with ceil_mode."""

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        while call.attributes.rounds_up:
            time.sleep(1)
        return super().run(call, mode)


class Exiting(Scatter):
    """Ends its process on a call with ceil_mode."""

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        if call.attributes.rounds_up:
            os._exit(7)
        return super().run(call, mode)


class Raising(Scatter):
    """The adapter itself raises on a call with ceil_mode."""

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        if call.attributes.rounds_up:
            raise ValueError("no stream")
        return super().run(call, mode)


class KilledEveryTime(Scatter):
    """Its process is killed from outside on every call with ceil_mode."""

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        if call.attributes.rounds_up:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(call, mode)


class KilledOnce(KilledEveryTime):
    """Its process is killed from outside, on the first call with ceil_mode of all: a file tells that it was."""

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        flag = Path(os.environ["KILLED_ONCE"])
        if not call.attributes.rounds_up or flag.exists():
            return Scatter.run(self, call, mode)
        flag.touch()
        return super().run(call, mode)


class UnforkableKilledOnce(KilledOnce):
    """The same, and it cannot be forked."""

    survives_fork = False


class KilledOnceAndLosing(KilledOnce):
    """The same, and it loses a gradient of every call with ceil_mode besides."""

    def route_terms(self, call, cells, terms):  # type: ignore[no-untyped-def]
        return (cells[:-1], terms[:-1]) if call.attributes.rounds_up else (cells, terms)


class Unforkable(Crashing):
    """Crashes, and cannot be forked."""

    survives_fork = False


class LosesContext(Scatter):
    """Reports a device exception for ceil_mode, after which nothing works any more; cannot be forked."""

    survives_fork = False
    lost = False

    def is_usable(self):  # type: ignore[no-untyped-def]
        return not self.lost

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        self.lost |= call.attributes.rounds_up
        if self.lost:
            return Outcome(Status.REFUSED, code=507015, message="507015 (AI Core exception)")
        return super().run(call, mode)


class Slow(Scatter):
    """Takes its time for every call; int64 indices alone."""

    def unsupported(self, operator, dtype, index_dtype):  # type: ignore[no-untyped-def]
        return "int64 alone" if index_dtype != "int64" else super().unsupported(operator, dtype, index_dtype)

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        time.sleep(0.02)
        return super().run(call, mode)


class Environment(Scatter):
    """Kernel binaries are not installed."""

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        return Outcome(Status.UNAVAILABLE, code=561112, message="the kernel package is not installed")


crashing, hanging, exiting, unforkable, environment = Crashing, Hanging, Exiting, Unforkable, Environment
crashing_on_one_cell, raising, slow, loses_context = CrashingOnOneCell, Raising, Slow, LosesContext
killed_once, killed_every_time, unforkable_killed_once = KilledOnce, KilledEveryTime, UnforkableKilledOnce
killed_once_and_losing = KilledOnceAndLosing
