"""A fence around a command that is given bad input: who runs the test may be somebody who may do all.

A bug would write to a device, or put a file in its place. The command is ended before it does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

LEFT = 97
"""The exit status of a command that went beyond the fence."""

_PLACES: dict[str, tuple[int, ...]] = {
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.mkdir": (0,),
    "os.rename": (0, 1),
    "os.link": (1,),
    "os.symlink": (1,),
}
"""What happens to a name in a folder, a link or not: which of the event's arguments are such names."""

_CONTENTS = frozenset({"os.truncate", "os.chmod", "os.chown", "os.utime"})
"""What happens to what a name leads to."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_IMPOSSIBLE = f"{os.devnull}/"
"""What begins so is no place: the system refuses it."""


def keep_inside(*folders: Path) -> None:
    """From now on, let this process and its forks change nothing but what lies in these folders; /dev/null is written.

    Libraries of C and programs that are started are not held.
    """
    inside = tuple(f"{os.path.realpath(folder)}/" for folder in folders)

    def look(event: str, arguments: tuple[object, ...]) -> None:
        for path in targets(event, arguments):
            if not f"{path}/".startswith(inside) and not path.startswith(_IMPOSSIBLE):
                os.write(2, f"{event} of {path}, beyond the fence\n".encode(errors="replace"))
                os._exit(LEFT)

    sys.addaudithook(look)


def targets(event: str, arguments: tuple[object, ...]) -> list[str]:
    """The real paths of what an audit event is about to change."""
    if event == "open":
        path, _, flags = arguments
        written = isinstance(flags, int) and flags & _WRITES and isinstance(path, str | bytes)
        return [real for real in (_leads_to(path) if written else "",) if real not in ("", os.devnull)]
    if event in _CONTENTS:
        return [_leads_to(arguments[0])] if isinstance(arguments[0], str | bytes) else []
    return [_name(arguments[place]) for place in _PLACES.get(event, ())]


def _leads_to(path: object) -> str:
    return os.path.realpath(os.fsdecode(path))  # type: ignore[call-overload,no-any-return]


def _name(path: object) -> str:
    folder, name = os.path.split(os.fsdecode(path).rstrip("/"))  # type: ignore[call-overload]
    return f"{os.path.realpath(folder)}/{name}"
