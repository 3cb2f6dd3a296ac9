"""Sessions one after another in surroundings that fail, each a fork of this process, which has imported everything.

    python -m limited_sessions STEPS ARGUMENTS...

STEPS is a JSON list of objects: ``before`` (a command of a shell), ``limit`` (bytes that a file may have; none
without), ``environment`` and ``more`` arguments. What a session says stands behind a line ``=== NUMBER``; behind it
stands a line ``=== STATUS``, and a copy of the folder ``run`` is left as ``after-NUMBER``. The limit is the system's,
for every file that a process of a session writes; what it says comes through a pipe.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def main() -> None:
    steps, arguments = json.loads(sys.argv[1]), sys.argv[2:]
    for number, step in enumerate(steps):
        subprocess.run(["sh", "-c", step.get("before", "")], check=True)
        _say(f"=== {number}\n")
        _say(f"=== {_status(step, arguments)}\n")
        shutil.copytree("run", f"after-{number}", symlinks=True)


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
