"""What is built by the system's C++ compiler on first use, and kept in a folder of the user's cache.

A build lies in a folder named for all that it is made of. Only one process at a time makes one, and others wait; where
files cannot be locked each makes its own, for nothing is changed in place.
"""

from __future__ import annotations

import fcntl
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from poolproof.backends.base import BackendUnavailable

Tell = Callable[[str], object]
"""A function that takes a sentence about what takes long, for a person who waits."""


class BuildFailed(BackendUnavailable):
    """The compiler failed, with its own text, or an option is invalid, or there is no place for what it makes."""


def cache_folder(kind: str) -> Path:
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError as error:  # a user id that the system has no entry of
        raise BuildFailed("there is no home directory to build in: set XDG_CACHE_HOME to a folder") from error
    return Path(home) / "poolproof" / kind


def cannot_keep(what: str, error: OSError) -> BuildFailed:
    reason = f"{what} cannot be kept in {error.filename}: {error.strerror}"
    return BuildFailed(f"{reason}; set XDG_CACHE_HOME to a folder that has room and can be written")


@contextmanager
def alone(build: Path, what: str, tell: Tell) -> Iterator[None]:
    """Lock a build against other processes, or wait until they are done; the lock ends with its process."""
    build.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(build, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"another process compiles {what}: waiting for it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            pass
        yield
    finally:
        os.close(descriptor)


def once(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Fill ``folder`` elsewhere and move it into place; where another process was faster, its result stands."""
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    workplace = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    try:
        fill(workplace)
        workplace.chmod(0o755)
        workplace.rename(folder)
    except OSError:
        if not folder.exists():
            raise
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
    return folder


def side_by_side(jobs: Sequence[Callable[[], object]], what: str, cpu_seconds: float, tell: Tell) -> None:
    """Do jobs that compile ``what``; all of them take ``cpu_seconds`` on one idle core."""
    cores = max(1, min(len(os.sched_getaffinity(0)), len(jobs)))
    seconds = math.ceil(cpu_seconds / cores)
    tell(f"compiling {what}, once: about {seconds} s on {cores} core{'s' if cores > 1 else ''}")
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(lambda job: job(), jobs))


def compile_unit(path: Path, flags: Sequence[str], text: str) -> None:
    """Compile a text to an object file; `BuildFailed` with what the compiler says."""
    run_compiler([*flags, "-x", "c++", "-c", "-", "-o", str(path)], text)


@lru_cache
def compiler() -> str:
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and (found := shutil.which(name)):
            return found
    raise BackendUnavailable(
        "the emulator and kernels need a C++17 compiler: install g++ or clang++, or name one in CXX"
    )


@lru_cache
def compiler_identity() -> tuple[str, str]:
    """Return the compiler's version and the machine that it compiles for, on which homes may be shared."""
    return run_compiler(["--version"]), run_compiler(["-dumpmachine"])


def run_compiler(arguments: Sequence[str], text: str = "") -> str:
    """Return what the compiler prints, of its input ``text``; `BuildFailed` with what it says is wrong."""
    command = [compiler(), *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildFailed(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout
