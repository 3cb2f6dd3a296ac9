"""Copies of a correct backend whose calls with ceil_mode do what a broken or hostile library might do to its process.

Each is right in what it returns, but for `lying`, whose wrong sums come with all it can do to the judge.
"""

import ctypes
import gc
import mmap
import os
import pickle
import platform
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np

from host_backends import LEAVES, ON_X86
from poolproof.backends.base import Call, Outcome
from scatter import Scatter

RUN_BY_A_PICKLE = Path(tempfile.gettempdir(), "poolproof-pickle-was-run")
"""The file that is there once somebody has loaded the pickle of `pickle_on_all_descriptors`."""


def write_to_all(data: bytes) -> None:
    for number in [int(path.name) for path in Path("/proc/self/fd").iterdir() if int(path.name) > 2]:
        with suppress(OSError):
            os.write(number, data)


def segfault_in_a_thread() -> None:
    thread = threading.Thread(target=ctypes.string_at, args=(8,))
    thread.start()
    thread.join()


class _Evil:
    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (RUN_BY_A_PICKLE,)


def pickle_on_all_descriptors() -> None:
    data = pickle.dumps(_Evil())
    write_to_all(len(data).to_bytes(4, "big") + data)


def twenty_gigabytes() -> None:
    memory = mmap.mmap(-1, 20 << 30)
    for place in range(0, len(memory), mmap.PAGESIZE):
        memory[place] = 1


def forks_150() -> None:
    for _ in range(150):
        if os.fork() == 0:
            time.sleep(3600.0)
            os._exit(0)


def double_fork() -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(3600.0)
        os._exit(0)


def _spin() -> None:
    while True:
        pass


def output_of_131_megabytes() -> None:
    for _ in range(2000):
        os.write(1, b"x" * 65536)


def numpy_monkeypatched() -> None:
    np.isnan = np.ndarray = np.frombuffer = None  # type: ignore[assignment, misc]


_JUDGING = ("judge", "check", "accept", "verdict", "compar", "equal", "close", "admissible", "interval", "violat")


def patch_the_judge() -> None:
    """Have whatever may judge in this process, of this project and of numpy, find everything right."""
    for name in ("suites.judging.judge", "suites.judging.checks", "suites.run.sandbox", "reports.recorder"):
        with suppress(ImportError):
            import_module(f"poolproof.{name}")
    for name, module in list(sys.modules.items()):
        if name.startswith(("poolproof", "numpy")) and not name.startswith("poolproof.backends"):
            for key, value in list(vars(module).items()):
                if callable(value) and not isinstance(value, type) and any(word in key for word in _JUDGING):
                    setattr(module, key, lambda *_, **__: True)
    for found in gc.get_objects():
        if isinstance(found, dict) and "verdict" in found:
            found["verdict"] = "conforms"


def doing(misdeed: Callable[[], object]) -> type[Scatter]:
    """A backend that is right in what it returns, and does a misdeed after calls with ceil_mode."""

    def run(self: Scatter, call: Call, mode: str = "") -> Outcome:
        outcome = Scatter.run(self, call, mode)
        if call.attributes.rounds_up:
            misdeed()
        return outcome

    return type("doing", (Scatter,), {"run": run, "__module__": __name__})


class lying(Scatter):  # noqa: N801  (named as the others are)
    """Gives every gradient of a call with ceil_mode twice, and patches whatever it finds in its process."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        outcome = super().run(call, mode)
        if call.attributes.rounds_up:
            call.tensors["grad_input"].array[...] *= 2
            patch_the_judge()
        return outcome


MISDEEDS: dict[str, Callable[[], object]] = {
    "exit_0": lambda: sys.exit(0),
    "exit_1": lambda: os._exit(1),
    "exit_90": lambda: os._exit(90),
    "exit_91": lambda: os._exit(91),
    "abort": os.abort,
    "segfault_in_a_thread": segfault_in_a_thread,
    "thread_that_dies_late": lambda: threading.Timer(0.3, ctypes.string_at, [8]).start(),
    "all_descriptors_closed": lambda: os.closerange(0, 4096),
    "garbage_on_all_descriptors": lambda: write_to_all(bytes(range(256)) * 64),
    "pickle_on_all_descriptors": pickle_on_all_descriptors,
    "chdir": LEAVES["folder"],
    "file_size_limited": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    "address_space_limited": lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20)),
    "sigterm_to_the_parent": lambda: os.kill(os.getppid(), signal.SIGTERM),
    "sigkill_to_the_parent": lambda: os.kill(os.getppid(), signal.SIGKILL),
    "sigstop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "endless_sleep": lambda: time.sleep(3600.0),
    "twenty_gigabytes": twenty_gigabytes,
    "forks_150": forks_150,
    "double_fork": double_fork,
    "spinning_threads": lambda: [threading.Thread(target=_spin, daemon=True).start() for _ in range(4)],
    "umask_777": LEAVES["umask"],
    "output_of_131_megabytes": output_of_131_megabytes,
    "numpy_monkeypatched": numpy_monkeypatched,
    "rounds_toward_zero": LEAVES["rounding to zero"],
    "denormals_are_zero": LEAVES["denormals-are-zero"],
    "lying": patch_the_judge,
    "left_rounding": LEAVES["rounding up"],
    "left_flushing": LEAVES["flush-to-zero"],
    "left_handler": LEAVES["python handler"],
    "left_mask": LEAVES["mask"],
    "left_thread": LEAVES["thread"],
    "left_child": LEAVES["child"],
}
"""By name: what a call does besides."""

LEAVE_SOMETHING = {"left_rounding": "rounding mode", "left_thread": "threads", "chdir": "working folder"}
"""Misdeeds that change the process, and what each changes: one of each kind that `test_host` names."""

LEFT_OUT = {} if ON_X86 else {"denormals_are_zero": f"{platform.machine()} has no such switch apart from left_flushing"}
"""By name: why a misdeed cannot be done on this machine."""

globals().update({f"backend_{name}": doing(what) for name, what in MISDEEDS.items()})
backend_lying = lying
