"""The environment of a backend: how `poolproof replay` recreates it, and which libraries were judged.

Builds of one version may differ only in the content of their libraries. A library is identified by its SHA-256. A wheel
is identified by its version and the hash of its RECORD, which has the hash of every installed file.
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
"""Default time limit of a case, in seconds."""


def replay_arguments(backend: str, environment: Mapping[str, str], import_folders: Iterable[str]) -> tuple[str, ...]:
    """Return the arguments of `poolproof replay` for a backend created in an environment, with its import folders.

    Environment variables come first, as ``NAME=value``; options follow. Paths are absolute, so that any folder will do.
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
    """Set the libraries of all backends that this process and its children create from now on."""
    if named := os.pathsep.join(map(str, paths)):
        os.environ[LIBRARY_VARIABLE] = named


def set_kernels(sources: object = None, model: object = None) -> None:
    """Set the folder of kernel sources, and the model that runs them, if they are given."""
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
    identities = {}
    for path in paths:
        is_unique = sum(other.name == path.name for other in paths) == 1
        identities[f"library {path.name if is_unique else path}"] = f"{_content(path)}, {path}"
    for wheel in _wheels(paths):
        content = hashlib.sha256(_record(wheel).encode()).hexdigest()
        identities[f"wheel {wheel.name}"] = f"{wheel.version}, RECORD sha256:{content}"
    return identities


def _content(path: Path) -> str:
    """Return the SHA-256 of a library; some are deleted once they are loaded (JIT, JNI)."""
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
    """Return a wheel's RECORD; empty if there is none."""
    return distribution.read_text("RECORD") or ""
