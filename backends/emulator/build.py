"""Builds the emulator with the system's C++ compiler on first use, and finds it in the user's cache afterwards.

A build is keyed by everything that can change it: the sources, the flags and the compiler's own version. Object
files are shared by all layouts. Of several processes that want the same build one makes it, and the others wait; where
files cannot be locked each makes its own, for nothing is ever changed in place.
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

Layout = Literal["single", "split", "monolithic"]
Sanitizer = Literal["address", "thread"]

SINGLE_NAME = "libpoolproof_emulator.so"
LIBRARY_FOLDER = "lib64"

_SOURCES = Path(__file__).parent
_PARTS = ("ascendcl", "nnopbase", "opapi")

_LAYOUTS: dict[Layout, dict[str, tuple[str, ...]]] = {
    "single": {SINGLE_NAME: _PARTS},
    "split": {"libascendcl.so": ("ascendcl",), "libnnopbase.so": ("nnopbase",), "libopapi_nn.so": ("opapi",)},
    "monolithic": {"libascendcl.so": ("ascendcl",), "libopapi.so": ("nnopbase", "opapi")},
}
"""Libraries of each layout, in link order: each may need those before it. Folders of sources are parts of it."""

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
"""What a library of several shows: the ABI, and the emulator's own names for its sister libraries."""

_ABI_ONLY = "{ global: acl*; Acl*; poolproof_emulator_*; local: *; };"


_MOST_IN_A_UNIT = 16
"""Sources that are compiled as one: reading the standard library's headers is most of what each costs by itself. So
names of a part are used once in it, those of unnamed namespaces as well; the compiler says where one is not."""

_CPU_SECONDS = 20
"""What compiling takes on one core that has nothing else to do (measured: 18, by g++ on x86)."""

Tell = Callable[[str], object]
"""Takes a sentence about what takes long, for a person who waits."""


class CompilerMissing(Exception):
    """There is no C++ compiler; the text says what to install."""


class BuildFailed(Exception):
    """The compiler refused, which is told in its words, or was to be told what it cannot."""


def library(layout: Layout = "single", sanitizer: Sanitizer | None = None, tell: Tell = lambda _: None) -> Path:
    """Build the emulator if need be, and ``tell`` that this is what takes long.

    For ``single`` the path of the one library. For the other layouts the root of an installation, with the
    libraries in ``lib64``, as ``ASCEND_HOME_PATH`` names one. Without ``sanitizer`` the environment variable
    POOLPROOF_EMULATOR_SANITIZER chooses, see ``sanitized.py``.
    """
    root = _installation(layout, sanitizer or _environment_sanitizer(), tell)
    return root / LIBRARY_FOLDER / SINGLE_NAME if layout == "single" else root


def sanitizer_runtime(sanitizer: Sanitizer) -> Path:
    """The sanitizer's own library: a program that loads an instrumented emulator needs it in ``LD_PRELOAD``."""
    name = {"address": "libasan.so", "thread": "libtsan.so"}[sanitizer]
    found = _run([_compiler(), f"-print-file-name={name}"]).strip()
    return Path(found).resolve()


def _environment_sanitizer() -> Sanitizer | None:
    name = os.environ.get("POOLPROOF_EMULATOR_SANITIZER", "")
    if name not in ("", *get_args(Sanitizer)):
        raise BuildFailed(f"POOLPROOF_EMULATOR_SANITIZER={name} is none of {', '.join(get_args(Sanitizer))}")
    return cast(Sanitizer, name) if name else None


def _installation(layout: Layout, sanitizer: Sanitizer | None, tell: Tell) -> Path:
    flags = (*_FLAGS, *((f"-fsanitize={sanitizer}",) if sanitizer else ()))
    build = _cache() / _fingerprint(flags)
    if not (build / layout).exists():
        with _alone(build, tell):
            objects = _once(build / "objects", lambda folder: _compile(folder, flags, tell))
            _once(build / layout, lambda folder: _link(folder, layout, objects, flags))
    return build / layout


@contextmanager
def _alone(build: Path, tell: Tell) -> Iterator[None]:
    """Keep other processes out of a build, or wait until they are done; the system's lock ends with its process."""
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


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "poolproof" / "emulator"


@lru_cache
def _fingerprint(flags: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for part in (_run([_compiler(), "--version"]), repr(flags), _EXPORTS, _ABI_ONLY, repr(_LAYOUTS)):
        digest.update(part.encode())
    for source in sorted(path for part in _PARTS for path in (_SOURCES / part).iterdir()):
        digest.update(f"{source.parent.name}/{source.name}\0".encode() + source.read_bytes())
    return digest.hexdigest()[:24]


def _once(folder: Path, fill: Callable[[Path], None]) -> Path:
    """``folder``, filled elsewhere and moved into place; where another process was faster, its result stands."""
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
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(lambda unit: _compile_unit(folder / f"{unit}.o", flags, units[unit]), units))


def _compile_unit(target: Path, flags: Sequence[str], sources: Sequence[Path]) -> None:
    together = "".join(f'#include "{path}"\n' for path in sources)
    _run([_compiler(), *flags, "-x", "c++", "-c", "-", "-o", str(target)], together)


def _units() -> dict[str, list[Path]]:
    """Sources that are compiled together, of one part each, by the name of their object file."""
    units: dict[str, list[Path]] = {}
    for part in _PARTS:
        sources = sorted((_SOURCES / part).glob("*.cpp"))
        count = math.ceil(len(sources) / _MOST_IN_A_UNIT)
        units |= {f"{part}.{number}": sources[number::count] for number in range(count)}
    return units


def _link(folder: Path, layout: Layout, objects: Path, flags: Sequence[str]) -> None:
    libraries = folder / LIBRARY_FOLDER
    libraries.mkdir()
    exports = folder / "exports.map"
    exports.write_text(_ABI_ONLY if layout == "single" else _EXPORTS)
    earlier: list[str] = []
    for name, parts in _LAYOUTS[layout].items():
        inputs = [str(path) for part in parts for path in sorted(objects.glob(f"{part}.*.o"))]
        options = [
            "-shared",
            "-pthread",
            f"-Wl,-soname,{name}",
            "-Wl,-rpath,$ORIGIN",
            f"-Wl,--version-script,{exports}",
        ]
        _run([_compiler(), *flags, *options, "-o", str(libraries / name), *inputs, *earlier])
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
