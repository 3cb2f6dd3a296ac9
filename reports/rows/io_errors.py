"""Errors of the system, which are nobody's fault: a full disk, a folder that cannot be written.

Code that writes a file of a run does so inside `writing`. Code that ends a session or a command prints the sentence.
"""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from poolproof.reports.rows.verdicts import BadInput

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_LOCKED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class CannotGoOn(BadInput):
    """A fault that ends a session and is nobody's verdict; the text says what to do."""


class CannotWrite(CannotGoOn):
    """A file cannot be written, or the system denies something else; the text says what, why, and what to do."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise `CannotWrite` if the system does not let a file be written."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"cannot write {path}: {error.strerror or error}; {_remedy(error)}") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a name beside ``path`` for a file that replaces it when it is complete; otherwise nothing changes."""
    aside = path.with_name(f"{path.stem}.{os.getpid()}.tmp")
    with writing(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield aside
            aside.replace(path)
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)


@contextmanager
def environment_errors() -> Iterator[None]:
    """Raise `CannotWrite` for any error of the system, around poolproof's own code only."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(describe(error)) from error


def describe(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}; {_remedy(error)}"


def _remedy(error: OSError) -> str:
    if error.errno in _FULL:
        return "make room for it"
    if error.errno in _LOCKED:
        return "make it writable"
    if error.errno == errno.EMFILE:
        return f"raise the limit of open files (ulimit -n), which is {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}"
    return (error.errno in (errno.ENOMEM, None) and memory_remedy()) or "see to that"


def memory_remedy() -> str:
    """Advise to raise the limit of this process's memory; empty if it has none."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return f"raise the limit of memory (ulimit -v), which is {limit >> 10:,} KiB" if limit >= 0 else ""


def check_replaceable(path: Path) -> None:
    """Raise `BadInput` if the path is not a regular file: a folder, a link, a pipe, a device."""
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        raise BadInput(f"{path} is there and is no regular file: name another file to write")
