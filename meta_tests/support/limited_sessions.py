"""Sessions one after another in surroundings that fail, each a fork of this process, which has imported everything.

    python -m limited_sessions STEPS ARGUMENTS...

STEPS is a JSON list of objects: ``before`` (a command of a shell), ``limit`` (bytes that a file may have; none
without), ``environment`` and ``more`` arguments. What a session says stands behind a line ``=== NUMBER``; behind it
stands a line ``=== STATUS``, and a copy of the folder ``run`` is left as ``after-NUMBER``. The limit is the system's,
for every file that a process of a session writes; what it says comes through a pipe. With the environment variable
that `MOUNTS` names, commands may mount file systems, which these sessions see and nobody else.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MOUNTS = "POOLPROOF_TEST_MOUNTS"

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
"""From linux/sched.h; `os.unshare` came with Python 3.12."""


def main() -> None:
    steps, arguments = json.loads(sys.argv[1]), sys.argv[2:]
    if MOUNTS in os.environ:
        _mount_for_ourselves()
    for number, step in enumerate(steps):
        subprocess.run(["sh", "-c", step.get("before", "")], check=True)
        _say(f"=== {number}\n")
        _say(f"=== {_status(step, arguments)}\n")
        shutil.copytree("run", f"after-{number}", symlinks=True)


def _mount_for_ourselves() -> None:
    """Be root of a user namespace and a mount namespace of this process's own, as ``unshare --map-root-user`` makes."""
    user, group = os.geteuid(), os.getegid()
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER | _CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "no namespaces of our own")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _status(step: dict[str, Any], arguments: list[str]) -> int:
    """How a session ends; what it said is said."""
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(there, 1)
        os.dup2(there, 2)
        os._exit(_session(step, arguments))
    os.close(there)
    with os.fdopen(here, encoding="utf-8", errors="replace") as said:
        _say(said.read())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _session(step: dict[str, Any], arguments: list[str]) -> int:
    os.environ.update(step.get("environment", {}))
    if "limit" in step:
        sys.dont_write_bytecode = True  # Python would keep the part of a compiled module that there is room for
        resource.setrlimit(resource.RLIMIT_FSIZE, (step["limit"], resource.RLIM_INFINITY))
    if "full" in step:
        page = Path("run", step["full"])
        page.unlink(missing_ok=True)
        page.symlink_to("/dev/full")
    try:
        status = pytest.main([*arguments, *step.get("more", [])])
    finally:
        if "full" in step:
            page.unlink()
        sys.stdout.flush()
        sys.stderr.flush()
    return int(status)


if __name__ == "__main__":
    from forked import prepare

    prepare()
    main()
