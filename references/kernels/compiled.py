"""Compilation of loops over arrays, with a cache on disk.

The first call imports numba and compiles the function, so that importing the references costs neither. If `VARIABLE` is
set, the source runs in Python. ``py_func`` always holds it.

The cache has a folder for each state of the sources, numba, Python and processor, under NUMBA_CACHE_DIR, XDG_CACHE_HOME
or ~/.cache. numba itself checks only the file of a function, not those of the functions that it calls. Each function
has one signature, and only one process at a time compiles it. If the folder is not writable, or one of its files not
readable, code is compiled in memory.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryFile
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

VARIABLE = "POOLPROOF_UNCOMPILED"
"""Environment variable that disables compilation, unless empty."""

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
SmallInts = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
"""Array arguments of compiled functions: float64, int64, int32, uint8 and bool; one axis, contiguous, writable."""


def argument(array: NDArray, dtype: type[np.generic]) -> NDArray[Any]:
    """Convert to an argument of compiled functions: flat, contiguous, writable, of ``dtype``; copy if necessary."""
    flat: NDArray[Any] = np.ascontiguousarray(array, dtype).reshape(-1)
    return flat if flat.flags.writeable else flat.copy()


P = ParamSpec("P")
R = TypeVar("R")


class Compiled(Generic[P, R]):
    """A function that is compiled at its first call, from Python or from a compiled function.

    If it ``is_entry``, Python calls it with arguments of its annotated types: `Floats`, `Ints`, `SmallInts`, `Bytes`,
    `Flags`, float, int, bool, and named tuples of these. Other types raise TypeError.
    """

    def __init__(self, py_func: Callable[P, R], is_entry: bool) -> None:
        self.py_func = py_func
        self.is_entry = is_entry
        self.__doc__ = py_func.__doc__
        self.__name__ = py_func.__name__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._run(*args, **kwargs)

    @cached_property
    def _run(self) -> Callable[P, R]:
        return in_numpy(self.py_func) if os.environ.get(VARIABLE) else self.dispatcher

    @cached_property
    def dispatcher(self) -> Any:
        with _COMPILING:  # of two threads, the second loads what the first compiled
            return _cached(self.py_func) if self.is_entry else _in_memory(self.py_func, ())

    @property
    def _numba_type_(self) -> Any:
        """The type by which numba knows the function when a compiled one calls it."""
        import numba

        return numba.typeof(self.dispatcher)


_COMPILING = RLock()

_RETURNED = (type(None), bool, int, float, tuple[float, ...])

_ENTRIES: list[Compiled[..., Any]] = []


def compiled(function: Callable[P, R]) -> Compiled[P, R]:
    """Mark a function that Python calls: compiled for its annotated types, cached on disk.

    It must return numbers, else TypeError. It fills arrays in place, and returns a slice of a named tuple. numba would
    make both in Python, where the handler of a pending signal may raise. numba does not check for that: the exception
    would end in a crash (SIGSEGV) or a SystemError.
    """
    if typing.get_type_hints(function)["return"] not in _RETURNED:
        raise TypeError(f"{function.__name__} returns what numba makes in Python")
    entry = Compiled(function, is_entry=True)
    _ENTRIES.append(entry)
    return entry


def helper(function: Callable[P, R]) -> Compiled[P, R]:
    """Mark a function that only compiled functions call: compiled into them, for any types."""
    return Compiled(function, is_entry=False)


def compile_all() -> None:
    """Compile every entry function now, for all processes that are forked from this one."""
    if not os.environ.get(VARIABLE):
        for entry in _ENTRIES:
            _ = entry.dispatcher


def in_numpy(function: Callable[P, R]) -> Callable[P, R]:
    """Give the function the arithmetic of compiled code, where overflow gives infinity without a warning."""

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return run


def _cached(function: Callable[..., Any]) -> Any:
    """Load the compiled function from disk or compile it; compile in memory if the disk fails."""
    import numba

    hints = typing.get_type_hints(function)
    del hints["return"]
    signature = tuple(map(_numba_type, hints.values()))
    folder = cache_folder()
    if folder is None:
        return _in_memory(function, signature)
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
    try:
        with _alone(folder):
            return numba.njit(signature, nogil=True, cache=True, error_model="numpy")(function)
    except Exception:  # a full disk, a damaged file, no place to write; a fault of the function is raised below
        return _in_memory(function, signature)
    finally:
        numba.config.CACHE_DIR = before


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process compile at a time; waiting ones then load its code from disk."""
    with (folder / "lock").open("w") as lock:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _in_memory(function: Callable[..., Any], signature: tuple[Any, ...]) -> Any:
    import numba

    return numba.njit(*([signature] if signature else []), nogil=True, error_model="numpy")(function)


def _numba_type(hint: Any) -> Any:
    """Translate an annotation; raise KeyError if numba has no such type."""
    from numba import types

    if hasattr(hint, "_fields"):
        fields = [_numba_type(field) for field in typing.get_type_hints(hint).values()]
        return types.BaseTuple.from_types(fields, hint)
    plain = {
        Floats: types.float64[::1],
        Ints: types.int64[::1],
        SmallInts: types.int32[::1],
        Bytes: types.uint8[::1],
        Flags: types.boolean[::1],
        float: types.float64,
        int: types.int64,
        bool: types.boolean,
    }
    return plain[hint]


@cache
def cache_folder() -> Path | None:
    """Create the folder of this state's compiled code; return None if it is not writable.

    numba would then choose another folder, with code of other states.
    """
    import numba

    try:
        home = numba.config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(home) / "poolproof" / "kernels" / _fingerprint()
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except (OSError, RuntimeError):
        return None
    return folder


def _fingerprint() -> str:
    """Hash the state of the sources, numba, Python and processor."""
    import llvmlite.binding
    import numba

    processor = llvmlite.binding.get_host_cpu_name(), sorted(llvmlite.binding.get_host_cpu_features().items())
    digest = hashlib.sha256(repr((sys.version, np.__version__, numba.__version__, processor)).encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(f"{source.name}\0".encode() + source.read_bytes())
    return digest.hexdigest()[:24]
