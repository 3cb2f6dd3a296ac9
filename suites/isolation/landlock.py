"""The sandbox around a host: it can read what its user can, and write almost nothing outside.

Landlock (landlock(7), Linux 5.13) forbids a process and its descendants to write outside of named folders, and to trace
or read other processes. From Linux 6.12 it also forbids to signal them. Root also loses capabilities: those that reach
the kernel, disks or other processes.

Run as a program, ``landlock.py FOLDERS COMMAND...``, it needs only the standard library. It becomes the command, which
can write in FOLDERS (separated by ``os.pathsep``), in TMPDIR and to devices.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every machine (landlock_create_ruleset(2))
_ASK_VERSION, _PATH_BENEATH = 1, 1
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 4, 24, 38

_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_MAKE_DEVICES = 1 << 6 | 1 << 11
_CHANGE_FOLDERS = 1 << 4 | 1 << 5 | 0b11111 << 6 | 1 << 11 | 1 << 12
"""LANDLOCK_ACCESS_FS_REMOVE_DIR, REMOVE_FILE and MAKE_*."""

_REFER = 1 << 13
_SCOPE_SIGNAL = 1 << 1

_KEPT_CAPABILITIES = {1, 2, 3, 14, 23, 24}
"""CAP_DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, IPC_LOCK, SYS_NICE, SYS_RESOURCE: for root's files and drivers."""

_MEMORY_DEVICES = {"mem", "kmem", "port", "kmsg"}


class _Rights(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("descriptor", ctypes.c_int32))


def version() -> int:
    """Return the kernel's version of Landlock, 0 without it."""
    return max(0, _LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION))


WRITABLE_VARIABLE = "POOLPROOF_WRITABLE"
"""Further folders in which backends may write, separated by ``os.pathsep``."""


def describe() -> str:
    """Describe the sandbox of hosts on this machine."""
    abi = version()
    if not abi:
        return "none: this kernel has no Landlock"
    writable = os.environ.get(WRITABLE_VARIABLE, "")
    return f"Landlock {abi}" + (f", writable: {writable}" if writable else "")


def hide_memory() -> None:
    """Keep processes of the same user from tracing this one, and from reading or writing its memory."""
    _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def confine(folders: Iterable[Path]) -> None:
    """Restrict writing by this process and its children to these folders and to devices; raise OSError on failure."""
    _check(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    for capability in set(range(64)) - _KEPT_CAPABILITIES if os.geteuid() == 0 else ():
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # takes effect when the command is executed
    abi = version()
    if not abi:
        return
    of_file = _WRITE_FILE | (_TRUNCATE if abi >= 3 else 0)
    handled = of_file | _CHANGE_FOLDERS | (_REFER if abi >= 2 else 0)
    rights = _Rights(handled, 0, _SCOPE_SIGNAL if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = _check(_LIBC.syscall(_CREATE_RULESET, ctypes.byref(rights), ctypes.c_size_t(size), 0))
    for folder in folders:
        _allow(ruleset, folder, handled & ~_MAKE_DEVICES)
    for path in Path("/dev").iterdir():
        with suppress(OSError):  # it was removed meanwhile, or cannot be opened
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                _allow(ruleset, path, handled & ~_MAKE_DEVICES)
            elif stat.S_ISCHR(mode) and path.name not in _MEMORY_DEVICES:
                _allow(ruleset, path, of_file)
    _check(_LIBC.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def main() -> None:
    folders = [Path(folder) for folder in (*sys.argv[1].split(os.pathsep), os.environ["TMPDIR"]) if folder]
    confine(filter(Path.is_dir, folders))
    os.execv(sys.argv[2], sys.argv[2:])


def _allow(ruleset: int, path: Path, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        beneath = _Beneath(rights, descriptor)
        _check(_LIBC.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(beneath), 0))
    finally:
        os.close(descriptor)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return int(result)


if __name__ == "__main__":
    main()
