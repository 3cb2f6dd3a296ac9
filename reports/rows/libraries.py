"""Which library a run judged: a short name for the content of all that a backend brought into its process.

The environment of a backend tells each shared library by its SHA-256 and each wheel by its version. Where the files
lie is no part of what they are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping

_CONTENT = re.compile(r"sha256:([0-9a-f]{64})")
_DIGITS = 12


def library_of(environment: Mapping[str, str]) -> str:
    """Twelve hexadecimal digits that differ where a library differs; empty where the backend brought none.

    Of a single library they are the first of its own SHA-256.
    """
    contents, wheels = sorted({*_contents(environment)}), sorted(_wheels(environment))
    if len(contents) == 1 and not wheels:
        return contents[0][:_DIGITS]
    together = "\n".join([*contents, *wheels])
    return hashlib.sha256(together.encode()).hexdigest()[:_DIGITS] if together else ""


def library_text(backend: str, environment: Mapping[str, str]) -> str:
    """A backend and which library it judged, for people."""
    library, number = library_of(environment), len({*_contents(environment)})
    if not library:
        return backend
    return f"{backend} (library {library}{f', of {number} files' if number > 1 else ''})"


def _contents(environment: Mapping[str, str]) -> Iterator[str]:
    for name, told in environment.items():
        if name.startswith("library ") and (found := _CONTENT.match(told)):
            yield found[1]


def _wheels(environment: Mapping[str, str]) -> Iterator[str]:
    """Names with versions: what a RECORD holds beyond the libraries depends on how the wheel was installed."""
    for name, told in environment.items():
        if name.startswith("wheel "):
            yield f"{name} {told.partition(',')[0]}"
