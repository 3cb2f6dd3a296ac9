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

from poolproof.backends.base import Call, Outcome
from scatter import Scatter
from untidy_backends import LEFT, Untidy

MISDEEDS: dict[str, Callable[[], object]] = {}
"""By name: what a call does besides."""

LEFT_OUT: dict[str, str] = {}
"""By name: why a misdeed cannot be done on this machine."""

RUN_BY_A_PICKLE = Path(tempfile.gettempdir(), "poolproof-pickle-was-run")
"""The file that is there once somebody has loaded the pickle of `pickle_on_all_descriptors`."""

_TOWARD_ZERO = {"x86_64": 0xC00, "aarch64": 0xC00000}


def misdeed(do: Callable[[], object]) -> Callable[[], object]:
    """Make a backend of that name."""
    MISDEEDS[do.__name__] = do
    globals()[f"backend_{do.__name__}"] = type(do.__name__, (Untidy,), {"leave": lambda self: do()})
    return do


def descriptors() -> list[int]:
    return [int(path.name) for path in Path("/proc/self/fd").iterdir() if int(path.name) > 2]


def write_to_all(data: bytes) -> None:
    for number in descriptors():
        try:
            os.write(number, data)
        except OSError:
            continue


@misdeed
def exit_0() -> None:
    sys.exit(0)


@misdeed
def exit_1() -> None:
    os._exit(1)


@misdeed
def exit_90() -> None:
    os._exit(90)


@misdeed
def exit_91() -> None:
    os._exit(91)


@misdeed
def abort() -> None:
    os.abort()


@misdeed
def segfault_in_a_thread() -> None:
    thread = threading.Thread(target=ctypes.string_at, args=(8,))
    thread.start()
    thread.join()


@misdeed
def thread_that_dies_late() -> None:
    def die() -> None:
        time.sleep(0.3)
        ctypes.string_at(8)

    threading.Thread(target=die).start()


@misdeed
def all_descriptors_closed() -> None:
    os.closerange(0, 4096)


@misdeed
def garbage_on_all_descriptors() -> None:
    write_to_all(bytes(range(256)) * 64)


class _Evil:
    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (RUN_BY_A_PICKLE,)


@misdeed
def pickle_on_all_descriptors() -> None:
    data = pickle.dumps(_Evil())
    write_to_all(len(data).to_bytes(4, "big") + data)


@misdeed
def chdir() -> None:
    os.chdir("/")


@misdeed
def file_size_limited() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@misdeed
def address_space_limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))


@misdeed
def sigterm_to_the_parent() -> None:
    os.kill(os.getppid(), signal.SIGTERM)


@misdeed
def sigkill_to_the_parent() -> None:
    os.kill(os.getppid(), signal.SIGKILL)


@misdeed
def sigstop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@misdeed
def endless_sleep() -> None:
    time.sleep(3600.0)


@misdeed
def twenty_gigabytes() -> None:
    memory = mmap.mmap(-1, 20 << 30)
    for place in range(0, len(memory), mmap.PAGESIZE):
        memory[place] = 1


@misdeed
def forks_150() -> None:
    for _ in range(150):
        if os.fork() == 0:
            time.sleep(3600.0)
            os._exit(0)


@misdeed
def double_fork() -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(3600.0)
        os._exit(0)


def _spin() -> None:
    while True:
        pass


@misdeed
def spinning_threads() -> None:
    for _ in range(4):
        threading.Thread(target=_spin, daemon=True).start()


@misdeed
def umask_777() -> None:
    os.umask(0o777)


@misdeed
def output_of_131_megabytes() -> None:
    for _ in range(2000):
        os.write(1, b"x" * 65536)


@misdeed
def numpy_monkeypatched() -> None:
    np.isnan = np.ndarray = np.frombuffer = None  # type: ignore[assignment, misc]


@misdeed
def rounds_toward_zero() -> None:
    ctypes.CDLL("libm.so.6").fesetround(_TOWARD_ZERO[platform.machine()])


@misdeed
def denormals_are_zero() -> None:
    """Set bit 6 of MXCSR in the state that fesetenv takes."""
    libm, state = ctypes.CDLL("libm.so.6"), ctypes.create_string_buffer(64)
    libm.fegetenv(state)
    state[28:32] = (int.from_bytes(state.raw[28:32], "little") | 1 << 6).to_bytes(4, "little")
    libm.fesetenv(state)


if platform.machine() != "x86_64":
    LEFT_OUT["denormals_are_zero"] = f"{platform.machine()} has no such switch apart from that of left_flushing"

_JUDGING = ("judge", "check", "accept", "verdict", "compar", "equal", "close", "admissible", "interval", "violat")


def patch_the_judge() -> None:
    """Have whatever may judge in this process, of this project and of numpy, find everything right."""
    for name in ("suites.judging.judge", "suites.judging.checks", "suites.isolation.sandbox", "reports.recorder"):
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


class lying(Scatter):  # noqa: N801  (named as the others are)
    """Gives every gradient of a call with ceil_mode twice, and patches whatever it finds in its process."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        outcome = super().run(call, mode)
        if call.attributes.rounds_up:
            call.tensors["grad_input"].array[...] *= 2
            patch_the_judge()
        return outcome


for _name in ("rounding", "flushing", "handler", "mask", "thread", "child"):
    MISDEEDS[f"left_{_name}"] = lambda: None
    globals()[f"backend_left_{_name}"] = LEFT[_name][0]
MISDEEDS["lying"] = patch_the_judge
backend_lying = lying
