"""What was judged, beyond its name: the shared libraries that a backend brought into its processes, by their content.

Two builds of one version differ here and nowhere else. A library is identified by its SHA-256; a wheel by its version
and the hash of its RECORD, which holds the hash of every file that it installed.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from sysconfig import get_path

_PROCESSES = Path("/proc")
_PYTHONS = get_path("platstdlib")  # to ask for it takes longer than all else that is done for a library


def mapped_libraries() -> frozenset[str]:
    """The real paths of the shared libraries in this process; none where the system does not tell."""
    return _mapped_by("self")


def libraries_of_family() -> frozenset[str]:
    """Those of this process and its children, some of which may make a framework's calls."""
    return mapped_libraries().union(*map(_mapped_by, _children()))


def _children() -> list[str]:
    try:
        return [pid for told in _PROCESSES.glob("self/task/*/children") for pid in told.read_text().split()]
    except OSError:
        return []


def _mapped_by(process: str) -> frozenset[str]:
    try:
        lines = (_PROCESSES / process / "maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return frozenset()
    paths = {parts[5] for line in lines if len(parts := line.split(maxsplit=5)) == 6}
    return frozenset(path for path in paths if ".so" in Path(path).name and not _is_pythons(path))


def _is_pythons(path: str) -> bool:
    return path.startswith(_PYTHONS) and "site-packages" not in path


def identify(libraries: Iterable[str]) -> dict[str, str]:
    """Per library and per wheel that brought one, by name: what tells it from any other."""
    paths = sorted(map(Path, libraries))
    told = {_named(path, paths): _library(path) for path in paths}
    return told | {f"wheel {wheel.name}": _wheel(wheel) for wheel in _wheels(paths)}


def _named(path: Path, others: Iterable[Path]) -> str:
    """The library's file name, and its folder where that alone would not tell it from the others."""
    alone = sum(other.name == path.name for other in others) == 1
    return f"library {path.name if alone else path}"


def _library(path: Path) -> str:
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    return f"sha256:{content}, {path}"


def _wheels(paths: Iterable[Path]) -> Iterator[Distribution]:
    """The installed distributions that own one of the files, each once."""
    wanted = {str(path) for path in paths}
    for distribution in distributions():
        root = f"{distribution.locate_file('')}/"
        inside = {path.removeprefix(root) for path in wanted if path.startswith(root)}
        if inside and not inside.isdisjoint(_files(distribution)):
            yield distribution


def _files(distribution: Distribution) -> Iterator[str]:
    """What a wheel installed, relative to where it is. A path object for each takes a second for a large wheel."""
    return (line[0] for line in csv.reader(_record(distribution).splitlines()) if line)


def _wheel(distribution: Distribution) -> str:
    return f"{distribution.version}, RECORD sha256:{hashlib.sha256(_record(distribution).encode()).hexdigest()}"


def _record(distribution: Distribution) -> str:
    """Empty for what was installed otherwise than from a wheel."""
    return distribution.read_text("RECORD") or ""
