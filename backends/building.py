"""Builds by the system's C++ compiler, made on first use and kept in the user's cache.

The name of a build's folder is a hash of everything that the build depends on. Only one process at a time makes a
build, and others wait. If files cannot be locked, each process makes its own; this is safe, because nothing is changed
in place.
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
"""Takes a sentence about slow work, for a person who waits."""


class BuildFailed(BackendUnavailable):
    """The compiler failed (the text is its own), an option is invalid, or the result cannot be stored."""


def cache_folder(kind: str) -> Path:
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError as error:  # the system has no entry of this user id
        raise BuildFailed("there is no home directory to build in: set XDG_CACHE_HOME to a folder") from error
    return Path(home) / "poolproof" / kind


def cannot_keep(what: str, error: OSError) -> BuildFailed:
    reason = f"{what} cannot be kept in {error.filename}: {error.strerror}"
    return BuildFailed(f"{reason}; set XDG_CACHE_HOME to a folder that has room and can be written")


@contextmanager
def alone(build: Path, what: str, tell: Tell) -> Iterator[None]:
    """Lock a build against other processes, or wait for them; the lock ends with its process."""
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
    """Fill ``folder`` elsewhere and move it into place; if another process was faster, keep its result."""
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
    """Run jobs that compile ``what`` in parallel; in total they take ``cpu_seconds`` on one idle core."""
    cores = max(1, min(len(os.sched_getaffinity(0)), len(jobs)))
    seconds = math.ceil(cpu_seconds / cores)
    tell(f"compiling {what}, once: about {seconds} s on {cores} core{'s' if cores > 1 else ''}")
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(lambda job: job(), jobs))


def compile_unit(path: Path, flags: Sequence[str], text: str) -> None:
    """Compile a text to an object file; `BuildFailed` has the compiler's messages."""
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
    """Return the compiler's version and target machine: machines may share a home folder."""
    return run_compiler(["--version"]), run_compiler(["-dumpmachine"])


def run_compiler(arguments: Sequence[str], text: str = "") -> str:
    """Return the compiler's output for the input ``text``; `BuildFailed` has its error messages."""
    command = [compiler(), *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildFailed(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout
