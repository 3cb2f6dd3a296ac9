"""Identity of what was judged: the shared libraries that a backend loaded, by content.

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
_STANDARD_LIBRARY = get_path("platstdlib")  # slow to look up


def mapped_libraries() -> frozenset[str]:
    """Return the real paths of the shared libraries in this process; none if the system does not say."""
    return _mapped_by("self")


def libraries_of_family() -> frozenset[str]:
    """Return the real paths of the shared libraries in this process and its children."""
    return mapped_libraries().union(*map(_mapped_by, _children()))


def _children() -> list[str]:
    try:
        return [pid for listing in _PROCESSES.glob("self/task/*/children") for pid in listing.read_text().split()]
    except OSError:
        return []


def _mapped_by(process: str) -> frozenset[str]:
    try:
        lines = (_PROCESSES / process / "maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return frozenset()
    paths = {parts[5] for line in lines if len(parts := line.split(maxsplit=5)) == 6}
    return frozenset(path for path in paths if ".so" in Path(path).name and not _is_standard(path))


def _is_standard(path: str) -> bool:
    return path.startswith(_STANDARD_LIBRARY) and "site-packages" not in path


def identify(libraries: Iterable[str]) -> dict[str, str]:
    """Return the version and hash of every library, and of every wheel that installed one, by name."""
    paths = sorted(map(Path, libraries))
    named = {_label(path, paths): _library(path) for path in paths}
    return named | {f"wheel {wheel.name}": _wheel(wheel) for wheel in _wheels(paths)}


def _label(path: Path, paths: Iterable[Path]) -> str:
    """Name a library by its file name, or by its path if another has that name."""
    is_unique = sum(other.name == path.name for other in paths) == 1
    return f"library {path.name if is_unique else path}"


def _library(path: Path) -> str:
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    return f"sha256:{content}, {path}"


def _wheels(paths: Iterable[Path]) -> Iterator[Distribution]:
    """Yield the installed distributions that own one of the files, each once."""
    wanted = {str(path) for path in paths}
    for distribution in distributions():
        root = f"{distribution.locate_file('')}/"
        inside = {path.removeprefix(root) for path in wanted if path.startswith(root)}
        if inside and not inside.isdisjoint(_files(distribution)):
            yield distribution


def _files(distribution: Distribution) -> Iterator[str]:
    """Yield the relative paths of a wheel's files, as text: path objects take a second for a large wheel."""
    return (line[0] for line in csv.reader(_record(distribution).splitlines()) if line)


def _wheel(distribution: Distribution) -> str:
    return f"{distribution.version}, RECORD sha256:{hashlib.sha256(_record(distribution).encode()).hexdigest()}"


def _record(distribution: Distribution) -> str:
    """Return a wheel's RECORD; empty for what was not installed from a wheel."""
    return distribution.read_text("RECORD") or ""
