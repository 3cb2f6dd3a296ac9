"""The environment of a backend: by which `poolproof replay` repeats a case, and which libraries were judged.

Two builds of one version differ by the content of their libraries and nowhere else. A library is identified by its
SHA-256; a wheel by its version and the hash of its RECORD, which holds the hash of every file that it installed.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, distributions
from itertools import chain
from pathlib import Path

from poolproof.backends.aclnn.backend import DEVICE_VARIABLE
from poolproof.backends.aclnn.libraries import LIBRARY_VARIABLE
from poolproof.backends.base import MODEL_VARIABLE, SOURCES_VARIABLE
from poolproof.backends.registry import KERNELS, is_python_variable
from poolproof.reports.rows.text import visible

USUAL_TIMEOUT = 60.0
"""Seconds that a case may take by default."""


def replay_arguments(backend: str, environment: Mapping[str, str], import_folders: Iterable[str]) -> tuple[str, ...]:
    """Return the arguments for a backend that was created in an environment, with its own import folders.

    Environment variables come first, as ``NAME=value``; options follow. Paths are absolute, so that the arguments hold
    in any folder.
    """
    variables = (
        f"{name}={environment[name]}"
        for name in sorted(environment)
        if name == DEVICE_VARIABLE or name.startswith("POOLPROOF_EMULATOR_") or is_python_variable(name)
    )
    options = [("--aclnn-library", path) for path in _entries(environment, LIBRARY_VARIABLE)]
    if backend.startswith(KERNELS):
        options.append(("--sources", str(Path(environment.get(SOURCES_VARIABLE, "")).absolute())))
        options += [("--model", "cann")] if MODEL_VARIABLE in environment else []
    elif ":" in backend:
        options += [("--pythonpath", folder) for folder in import_folders]
    return tuple(map(visible, (*variables, *chain.from_iterable(options))))


def set_libraries(paths: Iterable[object]) -> None:
    """Name libraries to all backends that this process and its children create from here on."""
    if named := os.pathsep.join(map(str, paths)):
        os.environ[LIBRARY_VARIABLE] = named


def set_kernels(sources: object = None, model: object = None) -> None:
    """Say where sources of kernels lie, and what these run on, where it is said."""
    if sources is not None:
        os.environ[SOURCES_VARIABLE] = str(Path(str(sources)).absolute())
    if model is not None:
        os.environ[MODEL_VARIABLE] = str(model)


def set_import_folders(folders: Iterable[object]) -> None:
    """Put folders first in the import path of backend processes."""
    if named := [str(Path(str(folder)).absolute()) for folder in folders]:
        os.environ["PYTHONPATH"] = os.pathsep.join([*named, *_entries(os.environ, "PYTHONPATH")])


def identify(libraries: Iterable[str]) -> dict[str, str]:
    """Return the version and hash of every library, and of every wheel that installed one, by name."""
    paths = sorted(map(Path, libraries))
    found = {}
    for path in paths:
        is_unique = sum(other.name == path.name for other in paths) == 1
        found[f"library {path.name if is_unique else path}"] = f"{_content(path)}, {path}"
    for wheel in _wheels(paths):
        content = hashlib.sha256(_record(wheel).encode()).hexdigest()
        found[f"wheel {wheel.name}"] = f"{wheel.version}, RECORD sha256:{content}"
    return found


def _content(path: Path) -> str:
    """Return the SHA-256 of a library, or that its file is gone: some are unlinked once they are loaded (JIT, JNI)."""
    try:
        with Path(str(path).replace("\\012", "\n")).open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError:
        return "mapped, and no longer there"


def _entries(environment: Mapping[str, str], variable: str) -> list[str]:
    """Split a variable into absolute paths."""
    return [str(Path(path).absolute()) for path in environment.get(variable, "").split(os.pathsep) if path]


def _wheels(paths: Iterable[Path]) -> Iterator[Distribution]:
    """Yield the installed distributions that own one of the files, each once."""
    wanted = {str(path) for path in paths}  # path objects take a second for a large wheel
    for distribution in distributions():
        root = f"{distribution.locate_file('')}/"
        inside = {path.removeprefix(root) for path in wanted if path.startswith(root)}
        if inside and not inside.isdisjoint(line[0] for line in csv.reader(_record(distribution).splitlines()) if line):
            yield distribution


def _record(distribution: Distribution) -> str:
    """Return a wheel's RECORD; empty for what was not installed from a wheel."""
    return distribution.read_text("RECORD") or ""
