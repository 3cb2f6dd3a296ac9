"""A command with the emulator built under a sanitizer.

usage: python -m poolproof.backends.emulator.sanitized {address,thread} COMMAND...

Example: python -m poolproof.backends.emulator.sanitized address python -m pytest meta_tests/backends/test_emulator.py

The sanitizer's library goes into LD_PRELOAD, because python itself is not instrumented. Leak checking is off, because
the interpreter keeps much until it exits, and the emulator counts its own objects. The thread sanitizer needs a
predictable address space, so its command runs under ``setarch -R``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import cast, get_args

from poolproof.backends.emulator.build import Sanitizer, library, sanitizer_runtime

_SUPPRESSIONS = Path(__file__).with_name("thread_sanitizer.supp")

_OPTIONS = {
    "address": {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1"},
    "thread": {
        "TSAN_OPTIONS": f"halt_on_error=1:report_thread_leaks=0:suppressions={_SUPPRESSIONS}",
        "OPENBLAS_NUM_THREADS": "1",
    },
}


def main(arguments: list[str]) -> None:
    if len(arguments) < 2 or arguments[0] not in get_args(Sanitizer):
        sys.exit(__doc__)
    sanitizer = cast(Sanitizer, arguments[0])
    library(sanitizer=sanitizer)
    settings = {"LD_PRELOAD": str(sanitizer_runtime(sanitizer)), "POOLPROOF_EMULATOR_SANITIZER": sanitizer}
    command = arguments[1:] if sanitizer == "address" else ["setarch", "-R", *arguments[1:]]
    os.execvpe(command[0], command, {**os.environ, **_OPTIONS[sanitizer], **settings})


if __name__ == "__main__":
    main(sys.argv[1:])
