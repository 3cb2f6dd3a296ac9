"""Identity of the machine, of poolproof and of the judged libraries, which distinguish runs.

The environment of a backend has the SHA-256 of each shared library and the version of each wheel. Their paths do not
count.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@cache
def suite_content_hash() -> str:
    """Return the SHA-256 of the names and contents of all files of the installed poolproof, without build results.

    Installations with the same hash judge alike, whatever their version.
    """
    content = hashlib.sha256()
    for room in ("references", "backends", "suites", "reports", "score"):
        spec = find_spec(f"poolproof.{room}")
        for root in (spec.submodule_search_locations if spec else None) or ():
            for path in sorted(Path(root).rglob("*")):
                if path.is_file() and path.suffix not in (".pyc", ".so", ".o") and not path.name.startswith("."):
                    name = f"{room}/{path.relative_to(root).as_posix()}"
                    content.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return content.hexdigest()


def suite_identity() -> dict[str, str]:
    return {"version": _version("poolproof"), "content_hash": suite_content_hash()}


def host_environment() -> dict[str, str]:
    """Return operating system, CPU, Python and the versions of the packages that can change a result."""
    return {
        "system": platform.platform(),
        "cpu": cpu_model(),
        "cores": str(os.cpu_count()),
        "python": sys.version.split()[0],
        **{name: _version(name) for name in ("numpy", "ml_dtypes", "hypothesis", "pytest", "pandas", "pyarrow")},
    }


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's name, or the numbers of its maker and model if there is none, as on aarch64."""
    named: dict[str, str] = {}
    with suppress(OSError):
        named = dict(re.findall(r"^(\S.*?)\s*: (.+)$", cpuinfo.read_text(encoding="utf-8"), re.M))
    numbers = ", ".join(f"{name} {named[name]}" for name in ("CPU implementer", "CPU part") if name in named)
    return named.get("model name") or named.get("Hardware") or numbers or platform.processor() or platform.machine()


def library_of(environment: Mapping[str, str]) -> str:
    """Return twelve hexadecimal digits that identify the libraries of a backend; empty if it loaded none.

    For a single library they begin its own SHA-256.
    """
    contents = sorted(set(library_contents(environment).values()))
    # only a wheel's version: its RECORD also depends on how it was installed
    versions = [(name, text.partition(",")[0]) for name, text in environment.items() if name.startswith("wheel ")]
    together = "\n".join([*contents, *sorted(map(" ".join, versions))])
    if not together or (len(contents) == 1 and not versions):
        return together[:12]
    return hashlib.sha256(together.encode()).hexdigest()[:12]


def judged_text(backend: str, environment: Mapping[str, str], given: Iterable[str]) -> str:
    """Return a backend with product, chip, library, variables and options, as text."""
    library = library_of(environment)
    known = [
        environment.get("product"),
        environment.get("soc"),
        f"library {library}" if library else "no known library",
    ]
    return f"{backend} ({', '.join(filter(None, [*known, *(f'given {text}' for text in given)]))})"


def library_text(backend: str, environment: Mapping[str, str]) -> str:
    library, number = library_of(environment), len(set(library_contents(environment).values()))
    if not library:
        return backend
    return f"{backend} (library {library}{f', of {number} files' if number > 1 else ''})"


def library_contents(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the SHA-256 of every library that a backend loaded, by its entry."""
    hashed = re.compile(r"sha256:([0-9a-f]{64})")
    libraries = ((name, hashed.match(text)) for name, text in environment.items() if name.startswith("library "))
    return {name: found[1] for name, found in libraries if found}
