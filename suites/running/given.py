"""What a backend was given besides its cases, as the words with which `poolproof replay` is given the same.

Variables of the environment come first, as ``NAME=value``; options follow. Paths are absolute, so that the words mean
the same in another folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

from poolproof.backends.aclnn.backend import DEVICE_VARIABLE
from poolproof.backends.aclnn.libraries import LIBRARY_VARIABLE
from poolproof.backends.registry import is_python_variable
from poolproof.reports.rows.text import visible

USUAL_TIMEOUT = 60.0
"""Seconds that a case may take where nothing else is asked for."""

_EMULATOR = "POOLPROOF_EMULATOR_"
"""How the variables begin that the emulator reads."""


def given_words(backend: str, environment: Mapping[str, str], modules: Iterable[ModuleType]) -> tuple[str, ...]:
    """What the process was given in which ``backend`` was created; ``modules`` are those that it then had."""
    names = sorted(filter(_tells_backends, environment))
    variables = (f"{name}={environment[name]}" for name in names)
    libraries = _options("--aclnn-library", _entries(environment, LIBRARY_VARIABLE))
    folders = _options("--pythonpath", _import_folders(environment, modules) if ":" in backend else ())
    return tuple(map(visible, (*variables, *libraries, *folders)))


def _tells_backends(variable: str) -> bool:
    return variable == DEVICE_VARIABLE or variable.startswith(_EMULATOR) or is_python_variable(variable)


def timeout_words(seconds: float) -> tuple[str, ...]:
    """The option for a time limit that is not the usual one."""
    return () if seconds == USUAL_TIMEOUT else ("--timeout", f"{seconds:g}")


def give_libraries(paths: Iterable[object]) -> None:
    """Name libraries to every backend that is created from here on, those of this process and of its children."""
    if named := os.pathsep.join(map(str, paths)):
        os.environ[LIBRARY_VARIABLE] = named


def give_import_folders(folders: Iterable[object]) -> None:
    """Let the processes of backends import from some folders before all others."""
    if named := [_absolute(str(folder)) for folder in folders]:
        os.environ["PYTHONPATH"] = os.pathsep.join([*named, *_entries(os.environ, "PYTHONPATH")])


def _options(name: str, values: Iterable[str]) -> Iterator[str]:
    for value in values:
        yield from (name, value)


def _entries(environment: Mapping[str, str], variable: str) -> list[str]:
    """The paths that a variable lists."""
    return [_absolute(path) for path in environment.get(variable, "").split(os.pathsep) if path]


def _absolute(path: str) -> str:
    return str(Path(path).absolute())


def _import_folders(environment: Mapping[str, str], modules: Iterable[ModuleType]) -> list[str]:
    """The folders that only this session imports from, its own and those of PYTHONPATH, as far as a module is there.

    This project's own modules are wherever it is installed, and whoever replays has it.
    """
    ours = list(dict.fromkeys([str(Path.cwd()), *_entries(environment, "PYTHONPATH")]))
    places = sorted({_absolute(entry) for entry in sys.path} | set(ours), key=len, reverse=True)
    files = [module.__file__ for module in modules if getattr(module, "__file__", None) and _is_foreign(module)]
    used = {next((place for place in places if str(file).startswith(place + os.sep)), "") for file in files}
    return [folder for folder in ours if folder in used]


def _is_foreign(module: ModuleType) -> bool:
    return module.__name__.partition(".")[0] != "poolproof"
