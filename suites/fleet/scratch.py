"""The folder of a judge: nobody removes it while the judge lives, and another judge does once that was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_PREFIX = "poolproof-judge-"

_YOUNG = 5.0
"""Seconds in which a folder may be made and not locked yet."""


def scratch_folder() -> Path:
    """A new folder of this process, locked until it ends, however it ends; those of judges that were killed go.

    Where the file system knows no locks, none is taken, and none of these folders is removed by another.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another judge removes it, too, or it is another user's
            _remove_if_left(folder)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    with suppress(OSError):
        fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX)
    return folder


def _remove_if_left(folder: Path) -> None:
    """OSError where its judge lives, or where the file system knows no locks."""
    if time.time() - folder.stat().st_mtime < _YOUNG:
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    finally:
        os.close(descriptor)
