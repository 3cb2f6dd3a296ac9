"""Backends whose processes do all they can to stay: they block signals, leave their session, and have children."""

import os
import re
import signal
import time
from pathlib import Path

from poolproof.backends.base import Call, Outcome
from scatter import Scatter


class stubborn(Scatter):  # noqa: N801  (named as it is on a command line)
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


busy = type("busy", (stubborn,), {"stay": lambda self: re.match("(a+)+$", "a" * 64 + "b")})
"""In a loop in C that never lets go of the interpreter's lock."""
unforkable = type("unforkable", (stubborn,), {"survives_fork": False})
