"""Short names of the libraries that a run judged, from the content of all that a backend loaded.

The environment of a backend holds the SHA-256 of each shared library and the version of each wheel. Where the files lie
is no part of what they are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

_CONTENT = re.compile(r"sha256:([0-9a-f]{64})")
_DIGITS = 12


def library_of(environment: Mapping[str, str]) -> str:
    """Return twelve hexadecimal digits that differ where a library differs; empty where the backend loaded none.

    Of a single library they are the first of its own SHA-256.
    """
    contents = sorted(set(library_contents(environment).values()))
    # of a wheel only the version: what its RECORD holds beyond the libraries depends on how it was installed
    wheels = sorted(
        f"{name} {text.partition(',')[0]}" for name, text in environment.items() if name.startswith("wheel ")
    )
    if len(contents) == 1 and not wheels:
        return contents[0][:_DIGITS]
    together = "\n".join([*contents, *wheels])
    return hashlib.sha256(together.encode()).hexdigest()[:_DIGITS] if together else ""


def library_text(backend: str, environment: Mapping[str, str]) -> str:
    """Name a backend and the library it judged."""
    library, number = library_of(environment), len(set(library_contents(environment).values()))
    if not library:
        return backend
    return f"{backend} (library {library}{f', of {number} files' if number > 1 else ''})"


def library_contents(environment: Mapping[str, str]) -> dict[str, str]:
    """Map the entry of every library that a backend loaded to its SHA-256."""
    libraries = ((name, _CONTENT.match(text)) for name, text in environment.items() if name.startswith("library "))
    return {name: found[1] for name, found in libraries if found}
