"""Arguments with which `poolproof replay` repeats a case under the settings of its run.

Environment variables come first, as ``NAME=value``; options follow. Paths are absolute, so that the arguments hold in
any folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from poolproof.backends.aclnn.backend import DEVICE_VARIABLE
from poolproof.backends.aclnn.libraries import LIBRARY_VARIABLE
from poolproof.backends.registry import is_python_variable
from poolproof.reports.rows.text import visible

USUAL_TIMEOUT = 60.0
"""Seconds that a case may take by default."""

_EMULATOR = "POOLPROOF_EMULATOR_"
"""Prefix of the variables that the emulator reads."""


def replay_arguments(backend: str, environment: Mapping[str, str], import_folders: Iterable[str]) -> tuple[str, ...]:
    """Return the arguments for a backend that was created in an environment, with its own import folders."""
    names = sorted(filter(_is_backend_setting, environment))
    variables = (f"{name}={environment[name]}" for name in names)
    libraries = _options("--aclnn-library", _entries(environment, LIBRARY_VARIABLE))
    folders = _options("--pythonpath", import_folders if ":" in backend else ())
    return tuple(map(visible, (*variables, *libraries, *folders)))


def _is_backend_setting(variable: str) -> bool:
    return variable == DEVICE_VARIABLE or variable.startswith(_EMULATOR) or is_python_variable(variable)


def timeout_arguments(seconds: float) -> tuple[str, ...]:
    """Return the option for a time limit other than the default."""
    return () if seconds == USUAL_TIMEOUT else ("--timeout", f"{seconds:g}")


def set_libraries(paths: Iterable[object]) -> None:
    """Name libraries to all backends that this process and its children create from here on."""
    if named := os.pathsep.join(map(str, paths)):
        os.environ[LIBRARY_VARIABLE] = named


def set_import_folders(folders: Iterable[object]) -> None:
    """Put folders first in the import path of backend processes."""
    if named := [_absolute(str(folder)) for folder in folders]:
        os.environ["PYTHONPATH"] = os.pathsep.join([*named, *_entries(os.environ, "PYTHONPATH")])


def _options(name: str, values: Iterable[str]) -> Iterator[str]:
    for value in values:
        yield from (name, value)


def _entries(environment: Mapping[str, str], variable: str) -> list[str]:
    """Split a variable into absolute paths."""
    return [_absolute(path) for path in environment.get(variable, "").split(os.pathsep) if path]


def _absolute(path: str) -> str:
    return str(Path(path).absolute())
