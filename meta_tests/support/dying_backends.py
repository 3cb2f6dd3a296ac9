"""Copies of a correct backend that do not answer every call: they die, hang, are killed, raise, are lost, or slow.

Name them on a command line as ``dying_backends:crashing`` with this folder on PYTHONPATH.
"""

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from poolproof.backends.base import BackendUnavailable, Call, Outcome, Status
from poolproof.suites.cases.memory import GUARD_BYTES
from scatter import Scatter, fault


def doing(what: Callable[[], object], where: Callable[[Call], bool], name: str, **attributes: Any) -> type[Scatter]:
    """A backend that does something before calls of a kind."""

    def run(self: Scatter, call: Call, mode: str = "") -> Outcome:
        if where(call):
            what()
        return Scatter.run(self, call, mode)

    return type(name, (Scatter,), {"run": run, "__module__": __name__, **attributes})


def _rounds_up(call: Call) -> bool:
    return call.attributes.rounds_up


def _has_50_cells(call: Call) -> bool:
    return call.tensors["self"].array.size == 50


def _crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _die_later() -> None:
    """Of SIGALRM, after the call and before long: a later call does not put it off."""
    if not any(signal.getitimer(signal.ITIMER_REAL)):
        signal.setitimer(signal.ITIMER_REAL, 0.4)  # a busy machine makes no call in 0.1 s


def _is_repetition(call: Call) -> bool:
    """Tell by its guard bands."""
    return bool(call.tensors["self"].guard % GUARD_BYTES)


def _be_killed_once() -> None:
    """From outside, on the first call with ceil_mode of all: a file tells that it was."""
    flag = Path(os.environ["KILLED_ONCE"])
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _kill_judge() -> None:
    """Kill the judge of a fleet whose host this is."""
    pid = os.getpid()
    while pid > 1 and not Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::Judge."):
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    if pid > 1:
        os.kill(pid, signal.SIGKILL)


def _raise() -> None:
    raise ValueError("no stream")


def _find_nothing(self: Scatter) -> None:
    raise BackendUnavailable("there is no device")


def never_loaded() -> None:
    """What never comes to an end of its import."""
    time.sleep(1e6)


kills_its_judge = doing(_kill_judge, _has_50_cells, "kills_its_judge")
crashing = doing(_crash, _rounds_up, "crashing")
dying_later = doing(_die_later, _rounds_up, "dying_later")
unforkable = doing(_crash, _rounds_up, "unforkable", survives_fork=False)
crashing_in_repetition = doing(_crash, _is_repetition, "crashing_in_repetition")
crashing_on_one_cell = doing(_crash, lambda call: call.tensors["self"].array.size == 1, "crashing_on_one_cell")
hanging = doing(lambda: time.sleep(1e6), _rounds_up, "hanging")
unforkable_hanging = doing(lambda: time.sleep(1e6), _rounds_up, "unforkable_hanging", survives_fork=False)
exiting = doing(lambda: os._exit(7), _rounds_up, "exiting")
raising = doing(_raise, _rounds_up, "raising")
killed_every_time = doing(lambda: os.kill(os.getpid(), signal.SIGKILL), _rounds_up, "killed_every_time")
killed_once = doing(_be_killed_once, _rounds_up, "killed_once")
unforkable_killed_once = doing(_be_killed_once, _rounds_up, "unforkable_killed_once", survives_fork=False)
crashes_always = doing(os.abort, lambda call: True, "crashes_always")
raises_always = doing(_raise, lambda call: True, "raises_always")


@fault("route_terms", base=killed_once)
def killed_once_and_losing(self, call, cells, terms):
    """It loses a gradient of every call with ceil_mode besides."""
    return (cells[:-1], terms[:-1]) if call.attributes.rounds_up else (cells, terms)


@fault("run", survives_fork=False, lost=False, ends_as=Status.REFUSED, is_usable=lambda self: not self.lost)
def loses_context(self, call, mode=""):
    """Reports a device exception for ceil_mode, after which nothing works any more; cannot be forked."""
    self.lost |= call.attributes.rounds_up
    return (
        Outcome(self.ends_as, code=507015, message="AI Core exception") if self.lost else Scatter.run(self, call, mode)
    )


class LosesContextUnproved(loses_context):  # type: ignore[valid-type, misc]
    """Its exception proves nothing, but the context is lost all the same."""

    ends_as = Status.UNAVAILABLE


@fault("run", survives_fork=False, lost=False, told=False, is_usable=lambda self: not self.told)
def loses_context_late(self, call, mode=""):
    """A call with ceil_mode succeeds, and those after it find no device."""
    self.told, self.lost = self.lost, self.lost or call.attributes.rounds_up
    return Outcome(Status.UNAVAILABLE, code=507053, message="lost") if self.told else Scatter.run(self, call, mode)


def _hang_in_repetition(self: Scatter, call: Call, mode: str = "") -> Outcome:
    if _is_repetition(call) and _has_50_cells(call):
        time.sleep(1e6)
    return slow.run(self, call, mode)


slow = doing(lambda: time.sleep(0.35), _has_50_cells, "slow", actions=("prepare", "run", "synchronise"))
slow_and_hanging = type("slow_and_hanging", (slow,), {"run": _hang_in_repetition})


@fault("route_terms", base=slow)
def slow_and_losing(self, call, cells, terms):
    return (cells[:-1], terms[:-1]) if _has_50_cells(call) else (cells, terms)


@fault("run")
def environment(self, call, mode=""):
    """Kernel binaries are not installed."""
    return Outcome(Status.UNAVAILABLE, code=561112, message="the kernel package is not installed")


class stubborn(Scatter):  # noqa: N801  (named as the others are)
    """A call with ceil_mode never returns: a child, in a session of its own, and the caller block every signal."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        folder = os.environ.get("STUBBORN")
        if folder is None or not call.attributes.rounds_up:
            return super().run(call, mode)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        if os.fork() == 0:
            os.setsid()
        Path(folder, str(os.getpid())).touch()
        while True:
            self.stay()

    def stay(self) -> None:
        time.sleep(60)


class late(crashing):  # type: ignore[valid-type, misc]  # noqa: N801
    """Opens a device, which takes as long as its first call in each process; a file tells of both."""

    opens_late = True

    def __init__(self) -> None:
        super().__init__()
        self._note("loaded")

    def open(self) -> None:
        self._note("opened")
        self.tags = ("NHWC",)

    def _note(self, what: str) -> None:
        with Path(os.environ["LATE"]).open("a") as file:
            file.write(f"{what} {os.getpid()}\n")


late_and_missing = doing(_crash, _rounds_up, "late_and_missing", opens_late=True, open=_find_nothing)
late_and_dead = doing(_crash, _rounds_up, "late_and_dead", opens_late=True, open=lambda self: _crash())
stubborn_in_c = type("stubborn_in_c", (stubborn,), {"stay": lambda self: re.match("(a+)+$", "a" * 64 + "b")})
"""In a loop in C that never lets go of the interpreter's lock."""
stubborn_unforkable = type("stubborn_unforkable", (stubborn,), {"survives_fork": False})
