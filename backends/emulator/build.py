"""The build of the emulator by the system's C++ compiler on first use, with a cache in the user's folder.

A build is keyed by the sources, the flags and the compiler's version. All layouts share object files. Only one process
at a time makes a build, and others wait; where files cannot be locked each makes its own, for nothing is changed in
place.
"""

from __future__ import annotations

import fcntl
import hashlib
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
from typing import Literal, cast, get_args

from poolproof.backends.base import BackendUnavailable

Layout = Literal["single", "split", "monolithic"]
Sanitizer = Literal["address", "thread"]

SINGLE_NAME = "libpoolproof_emulator.so"
LIBRARY_FOLDER = "lib64"

_SOURCES = Path(__file__).parent
_COMPONENTS = ("ascendcl", "nnopbase", "opapi")

_LAYOUTS: dict[Layout, dict[str, tuple[str, ...]]] = {
    "single": {SINGLE_NAME: _COMPONENTS},
    "split": {"libascendcl.so": ("ascendcl",), "libnnopbase.so": ("nnopbase",), "libopapi_nn.so": ("opapi",)},
    "monolithic": {"libascendcl.so": ("ascendcl",), "libopapi.so": ("nnopbase", "opapi")},
}
"""Libraries of each layout, in link order: each may need those before it; and their folders of sources."""

_FLAGS = (
    "-std=c++17",
    "-O2",
    "-g1",
    "-fPIC",
    "-fwrapv",  # sizes wrap as they do in the library's own checks
    "-fno-gnu-unique",  # two copies in one process stay apart
    "-Wall",
    "-Wextra",
)

_EXPORTS = "{ global: acl*; Acl*; poolproof_emulator_*; _Z*8emulator*; local: *; };"
"""Exports of one of several libraries: the ABI, and the emulator's own names for its sister libraries."""

_ABI_ONLY = "{ global: acl*; Acl*; poolproof_emulator_*; local: *; };"

_MAX_PER_UNIT = 16
"""Sources that are compiled as one, so that the standard library's headers are read once. Names, also those in unnamed
namespaces, are therefore unique in a component; the compiler rejects duplicates."""

_CPU_SECONDS = 20
"""Time of compiling on one idle core (measured: 18, by g++ on x86)."""

Tell = Callable[[str], object]
"""A function that takes a sentence about what takes long, for a person who waits."""


class CompilerMissing(BackendUnavailable):
    """There is no C++ compiler; the text says what to install."""


class BuildFailed(BackendUnavailable):
    """The compiler failed, with its own text, or an option is invalid, or there is no place for what it makes."""


def library(layout: Layout = "single", sanitizer: Sanitizer | None = None, tell: Tell = lambda _: None) -> Path:
    """Build the emulator if need be, and ``tell`` that this takes long.

    Returns the path of the one library for ``single``; for the other layouts the root of an installation, with the
    libraries in ``lib64``, as in ``ASCEND_HOME_PATH``. Without ``sanitizer`` the environment variable
    POOLPROOF_EMULATOR_SANITIZER chooses, see ``sanitized.py``.
    """
    if sanitizer is None and (name := os.environ.get("POOLPROOF_EMULATOR_SANITIZER")):
        if name not in get_args(Sanitizer):
            raise BuildFailed(f"POOLPROOF_EMULATOR_SANITIZER={name} is none of {', '.join(get_args(Sanitizer))}")
        sanitizer = cast(Sanitizer, name)
    try:
        root = _installation(layout, sanitizer, tell)
    except OSError as error:
        raise BuildFailed(f"the emulator cannot be kept in {error.filename}: {error.strerror}") from error
    return root / LIBRARY_FOLDER / SINGLE_NAME if layout == "single" else root


def sanitizer_runtime(sanitizer: Sanitizer) -> Path:
    """Find the sanitizer's own library, which a program that loads an instrumented emulator needs in ``LD_PRELOAD``."""
    name = {"address": "libasan.so", "thread": "libtsan.so"}[sanitizer]
    return Path(_run([_compiler(), f"-print-file-name={name}"]).strip()).resolve()


def _installation(layout: Layout, sanitizer: Sanitizer | None, tell: Tell) -> Path:
    flags = (*_FLAGS, *((f"-fsanitize={sanitizer}",) if sanitizer else ()))
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    build = Path(home) / "poolproof" / "emulator" / _fingerprint(flags)
    if not (build / layout).exists():
        with _alone(build, tell):
            objects = _once(build / "objects", lambda folder: _compile(folder, flags, tell))
            _once(build / layout, lambda folder: _link(folder, layout, objects, flags))
    return build / layout


@contextmanager
def _alone(build: Path, tell: Tell) -> Iterator[None]:
    """Lock a build against other processes, or wait until they are done; the lock ends with its process."""
    build.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(build, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("another process compiles the emulator: waiting for it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            pass
        yield
    finally:
        os.close(descriptor)


@lru_cache
def _fingerprint(flags: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for text in (_run([_compiler(), "--version"]), repr(flags), _EXPORTS, _ABI_ONLY, repr(_LAYOUTS)):
        digest.update(text.encode())
    for source in sorted(path for component in _COMPONENTS for path in (_SOURCES / component).iterdir()):
        digest.update(f"{source.parent.name}/{source.name}\0".encode() + source.read_bytes())
    return digest.hexdigest()[:24]


def _once(folder: Path, fill: Callable[[Path], None]) -> Path:
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


def _compile(folder: Path, flags: Sequence[str], tell: Tell) -> None:
    units = _units()
    cores = min(len(os.sched_getaffinity(0)), len(units))
    seconds = math.ceil(_CPU_SECONDS / cores)
    tell(f"compiling the emulator, once: about {seconds} s on {cores} core{'s' if cores > 1 else ''}")

    def compile_unit(name: str) -> None:
        together = "".join(f'#include "{path}"\n' for path in units[name])
        _run([_compiler(), *flags, "-x", "c++", "-c", "-", "-o", str(folder / f"{name}.o")], together)

    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(compile_unit, units))


def _units() -> dict[str, list[Path]]:
    """List sources of one component that are compiled together, by the name of their object file."""
    units: dict[str, list[Path]] = {}
    for component in _COMPONENTS:
        sources = sorted((_SOURCES / component).glob("*.cpp"))
        count = math.ceil(len(sources) / _MAX_PER_UNIT)
        units |= {f"{component}.{number}": sources[number::count] for number in range(count)}
    return units


def _link(folder: Path, layout: Layout, objects: Path, flags: Sequence[str]) -> None:
    libraries = folder / LIBRARY_FOLDER
    libraries.mkdir()
    exports = folder / "exports.map"
    exports.write_text(_ABI_ONLY if layout == "single" else _EXPORTS)
    earlier: list[str] = []
    for name, components in _LAYOUTS[layout].items():
        inputs = [str(path) for component in components for path in sorted(objects.glob(f"{component}.*.o"))]
        linking = ["-shared", "-pthread", f"-Wl,-soname,{name}", "-Wl,-rpath,$ORIGIN"]
        exported = f"-Wl,--version-script,{exports}"
        _run([_compiler(), *flags, *linking, exported, "-o", str(libraries / name), *inputs, *earlier])
        earlier.append(str(libraries / name))


@lru_cache
def _compiler() -> str:
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and (found := shutil.which(name)):
            return found
    raise CompilerMissing("the emulator needs a C++17 compiler: install g++ or clang++, or name one in CXX")


def _run(command: Sequence[str], text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildFailed(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout
