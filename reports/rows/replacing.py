"""What a command may put a file of its own in the place of."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from poolproof.reports.rows.verdicts import BadInput


def check_replaceable(path: Path) -> None:
    """`BadInput` where something stands that is no regular file: a folder, a link, a pipe, a device."""
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        raise BadInput(f"{path} is there and is no regular file: name another file to write")
