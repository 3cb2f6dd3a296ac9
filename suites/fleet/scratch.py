"""The scratch folder of a judge, kept while the judge lives; other judges remove it if that was killed."""

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
"""Age in seconds below which a folder may not be locked yet."""


def scratch_folder() -> Path:
    """Make a folder, locked until this process ends, and remove those of judges that were killed.

    On a file system without locks, folders of killed judges stay.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # removed by another judge, or another user's
            _remove_if_unlocked(folder)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    with suppress(OSError):
        fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX)
    return folder


def _remove_if_unlocked(folder: Path) -> None:
    """Remove a folder; OSError if its judge lives, or if the file system has no locks."""
    if time.time() - folder.stat().st_mtime < _YOUNG:
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    finally:
        os.close(descriptor)
