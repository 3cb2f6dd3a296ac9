"""Libraries and installations of CANN that are none."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from bad_inputs import Given, Lay, small_session
from bad_inputs.materials import HARMFUL, copies, odd_things, texts, together
from poolproof.backends.host.server import mapped_libraries

_ELF = b"\x7fELF\x02\x01\x01" + b"\0" * 9
_HEADER = _ELF + b"\x03\x00\xb7\x00" + b"\x01\x00\x00\x00" + b"\0" * 40
"""Of a shared object for AArch64, without sections."""


def _mathematics() -> bytes:
    """A real library without any symbol that is wanted: one that this process has."""
    return next(Path(path).read_bytes() for path in sorted(mapped_libraries()) if Path(path).name.startswith("libm"))


def _cut(size: int) -> Lay:
    def lay(here: Path, made: Path) -> None:
        (here / "lib.so").write_bytes((made / HARMFUL).read_bytes()[:size])

    return lay


def _patched(offset: int, value: bytes) -> Lay:
    def lay(here: Path, made: Path) -> None:
        content = bytearray((made / HARMFUL).read_bytes())
        content[offset : offset + len(value)] = value
        (here / "lib.so").write_bytes(content)

    return lay


def _link(target: str) -> Lay:
    return lambda here, made: (here / "lib.so").symlink_to(target)


LISTED: Mapping[str, Lay] = {
    "missing": texts({}),
    "empty": texts({"lib.so": ""}),
    "a text": texts({"lib.so": "#!/bin/sh\nexit 0\n"}),
    "a linker script": texts({"lib.so": "INPUT(-lascendcl)\n"}),
    "a static library": texts({"lib.so": "!<arch>\n"}),
    "random bytes": texts({"lib.so": bytes(range(256)) * 16}),
    "the beginning of ELF": texts({"lib.so": _ELF}),
    "a header of another machine": texts({"lib.so": _HEADER}),
    "cut to a header": _cut(64),
    "cut to some bytes": _cut(1000),
    "cut to a page": _cut(4096),
    "cut to two pages": _cut(8192),
    "cut to three pages": _cut(12288),
    "of another machine": _patched(18, b"\xb7\x00"),
    "of 32 bits": _patched(4, b"\x01"),
    "of the other byte order": _patched(5, b"\x02"),
    "an object file": _patched(16, b"\x01\x00"),
    "a program": _patched(16, b"\x02\x00"),
    "a core": _patched(16, b"\x04\x00"),
    "segments somewhere else": _patched(32, b"\xff\xff\xff\xff\xff\xff\xff\x7f"),
    "too many segments": _patched(56, b"\xff\xff"),
    "no segments": _patched(56, b"\x00\x00"),
    "without the symbols": lambda here, made: (here / "lib.so").write_bytes((made / HARMFUL).read_bytes()),
    "the mathematics library": lambda here, made: (here / "lib.so").write_bytes(_mathematics()),
    "an empty folder": lambda here, made: (here / "lib.so").mkdir(),
    "a folder of text files": texts(
        {"lib.so/libascendcl.so": "x", "lib.so/libopapi.so": "y", "lib.so/libnnopbase.so": "z"}
    ),
    "a folder without operators": texts({"lib.so/libascendcl.so": "x"}),
    "a folder of folders": texts({"lib.so/libascendcl.so/x": "", "lib.so/libopapi.so/x": ""}),
    "a device": _link(os.devnull),
    "a link to nothing": _link("nowhere"),
    "a loop of links": _link("lib.so"),
    "a pipe": lambda here, made: os.mkfifo(here / "lib.so"),
}
"""What lies where ``--aclnn-library`` points."""


def listed() -> Iterator[Given]:
    for what, lay in LISTED.items():
        yield _given(f"library: {what}", ("--aclnn-library=lib.so",), lay)
    yield _given("library: an empty name", ("--aclnn-library=",), texts({}), names=("--aclnn-library",))
    for how in ("aborts", "exits", "faults", "hangs", "prints"):
        given = _given(f"library: {how} while it is loaded", (f"--aclnn-library={HARMFUL}",), copies(HARMFUL))
        yield Given(
            given.name, given.program, given.arguments, (HARMFUL, "aclnn"), lay=given.lay, environment={"HARMFUL": how}
        )
    for name, values in _VARIABLES.items():
        for value in values:
            yield _given(f"library: {name}={value!r:.40}", (), odd_things, {name: value}, ("missing", "librar", name))
    lay = together(odd_things, texts({"opp/vendors/config.ini": b"load_priority=\xff\xfe\n", "opp/vendors/x": ""}))
    yield _given("library: vendors of no text", (), lay, {"ASCEND_OPP_PATH": "opp"}, ("missing", "config.ini"))


_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "ASCEND_HOME_PATH": ("missing", "a-file", "a-loop", "a-device", "", "x" * 300, "\udcff"),
    "ASCEND_OPP_PATH": ("missing", "a-file", "a-loop", "", "x" * 300),
    "ASCEND_CUSTOM_OPP_PATH": ("missing", "a-file:a-loop", ":::", "x" * 300),
    "POOLPROOF_ACLNN_LIBRARY": ("missing", ":", "a-loop", "a-folder"),
}
"""Variables by which libraries are found, and where they lead to none."""


def _given(
    name: str,
    options: tuple[str, ...],
    lay: Lay,
    variables: Mapping[str, str] | None = None,
    names: tuple[str, ...] = ("lib.so", "aclnn"),
) -> Given:
    nothing_installed: dict[str, str | None] = dict.fromkeys(_VARIABLES)
    return Given(
        name,
        "pytest",
        small_session(*options, backend="aclnn"),
        names,
        about="pytest --aclnn-library" if options else "",
        lay=lay,
        environment=nothing_installed | dict(variables or {}),
    )
