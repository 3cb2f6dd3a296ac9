"""The program of a host: ``program.py CONTROL ARENA ARENA_SIZE PACKAGE_DIRS``, a script for Python 3.9 or newer.

CONTROL and ARENA are inherited descriptors. PACKAGE_DIRS is a JSON object: package -> its folder. A host imports them
from there, so its Python needs only numpy, ml_dtypes and the framework.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any


class PackageFinder:
    """Finds packages in given folders, even if others are installed under their names."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        self._folders = folders

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        folder = self._folders.get(name)
        if folder is None:
            return None
        return spec_from_file_location(name, f"{folder}/__init__.py", submodule_search_locations=[folder])


def find_packages(folders: Mapping[str, str]) -> None:
    for parent in {name.partition(".")[0] for name in folders}:
        if find_spec(parent) is None:
            sys.modules[parent] = ModuleType(parent)
            sys.modules[parent].__path__ = []
    sys.meta_path.insert(0, PackageFinder(folders))


def main() -> None:
    control, arena, size, folders = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.path[0] == str(Path(__file__).resolve().parent):
        sys.path[0] = ""
    find_packages(json.loads(folders))
    from poolproof.backends.host.server import serve

    serve(int(control), int(arena), int(size))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # unloading a framework takes half a second; the system does it at once


if __name__ == "__main__":
    main()
