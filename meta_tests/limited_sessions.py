"""Sessions one after another in surroundings that fail, each a fork of this process, which has imported everything.

    python -m limited_sessions STEPS ARGUMENTS...

STEPS is a JSON list of objects: ``limit`` (bytes that a file may have; none without), ``environment`` and ``more``
arguments. What a session says stands behind a line ``=== NUMBER``; behind it stands a line ``=== STATUS``, and a copy
of the folder ``run`` is left as ``after-NUMBER``. The limit is the system's, for every process of a session.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from forked import prepare


def main() -> None:
    steps, arguments = json.loads(sys.argv[1]), sys.argv[2:]
    prepare()
    for number, step in enumerate(steps):
        _say(f"=== {number}")
        pid = os.fork()
        if pid == 0:
            os._exit(_session(step, arguments))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        _say(f"=== {status}")
        shutil.copytree("run", f"after-{number}", symlinks=True)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _session(step: dict[str, Any], arguments: list[str]) -> int:
    os.environ.update(step.get("environment", {}))
    if "limit" in step:
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
    main()
