"""Libraries and installations of CANN that are none."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from bad_inputs import Given, Lay, small_session
from bad_inputs.materials import HARMFUL, copies, odd_things, texts, together
from poolproof.backends.host.server import mapped_libraries

_ELF = b"\x7fELF\x02\x01\x01" + b"\0" * 9
_HEADER = _ELF + b"\x03\x00\xb7\x00" + b"\x01\x00\x00\x00" + b"\0" * 40
"""Of a shared object for AArch64, without sections."""


def _mathematics(here: Path, made: Path) -> None:
    """A real library without any symbol that is wanted: one that this process has."""
    path = next(Path(path) for path in sorted(mapped_libraries()) if Path(path).name.startswith("libm"))
    (here / "lib.so").write_bytes(path.read_bytes())


def _patched(offset: int, value: bytes, size: int | None = None) -> Lay:
    """A library of which bytes are changed, or the end is missing."""

    def lay(here: Path, made: Path) -> None:
        content = bytearray((made / HARMFUL).read_bytes())
        content[offset : offset + len(value)] = value
        (here / "lib.so").write_bytes(content[:size])

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
    **{f"cut to {size} bytes": _patched(0, b"", size) for size in (64, 1000, 4096, 8192, 12288)},
    "of another machine": _patched(18, b"\xb7\x00"),
    "of 32 bits": _patched(4, b"\x01"),
    "of the other byte order": _patched(5, b"\x02"),
    "an object file": _patched(16, b"\x01\x00"),
    "a program": _patched(16, b"\x02\x00"),
    "segments somewhere else": _patched(32, b"\xff\xff\xff\xff\xff\xff\xff\x7f"),
    "too many segments": _patched(56, b"\xff\xff"),
    "no segments": _patched(56, b"\x00\x00"),
    "without the symbols": _patched(0, b""),
    "the mathematics library": _mathematics,
    "an empty folder": lambda here, made: (here / "lib.so").mkdir(),
    "a folder of text files": texts({f"lib.so/lib{name}.so": name for name in ("ascendcl", "opapi", "nnopbase")}),
    "a folder without operators": texts({"lib.so/libascendcl.so": "x"}),
    "a folder of folders": texts({"lib.so/libascendcl.so/x": "", "lib.so/libopapi.so/x": ""}),
    "a device": _link(os.devnull),
    "a link to nothing": _link("nowhere"),
    "a loop of links": _link("lib.so"),
    "a pipe": lambda here, made: os.mkfifo(here / "lib.so"),
}
"""What lies where ``--aclnn-library`` points."""

_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "ASCEND_HOME_PATH": ("missing", "a-file", "a-loop", "a-device", "", "x" * 300, "\udcff"),
    "ASCEND_OPP_PATH": ("missing", "a-file", "a-loop", "", "x" * 300),
    "ASCEND_CUSTOM_OPP_PATH": ("missing", "a-file:a-loop", ":::", "x" * 300),
    "POOLPROOF_ACLNN_LIBRARY": ("missing", ":", "a-loop", "a-folder"),
}
"""Variables by which libraries are found, and where they lead to none."""


def listed() -> Iterator[Given]:
    for what, lay in LISTED.items():
        yield _given(what, "lib.so", lay, ("lib.so", "aclnn"))
    yield _given("an empty name", "", texts({}), ("--aclnn-library",))
    for how in ("aborts", "exits", "faults", "hangs", "prints"):
        yield _given(f"{how} while it is loaded", HARMFUL, copies(HARMFUL), (HARMFUL, "aclnn"), HARMFUL=how)
    for name, values in _VARIABLES.items():
        for value in values:
            told = ("missing", "librar", name)
            yield _given(f"{name}={value!r:.40}", None, odd_things, told, **{name: value})
    lay = together(odd_things, texts({"opp/vendors/config.ini": b"load_priority=\xff\xfe\n", "opp/vendors/x": ""}))
    yield _given("vendors of no text", None, lay, ("missing", "config.ini"), ASCEND_OPP_PATH="opp")


def _given(what: str, library: str | None, lay: Lay, names: tuple[str, ...], **variables: str) -> Given:
    options, about = ((), "") if library is None else ((f"--aclnn-library={library}",), "pytest --aclnn-library")
    arguments = small_session(*options, backend="aclnn")
    environment = dict.fromkeys(_VARIABLES) | variables
    return Given(f"library: {what}", "pytest", arguments, names, about=about, lay=lay, environment=environment)
