"""The build of the emulator on first use.

A build is keyed by the sources, the flags and the compiler's version. All layouts share object files.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal, cast, get_args

from poolproof.backends import building
from poolproof.backends.building import BuildFailed, Tell

Layout = Literal["single", "split", "monolithic", "cann"]
Sanitizer = Literal["address", "thread"]

SINGLE_NAME = "libpoolproof_emulator.so"
LIBRARY_FOLDER = "lib64"

_SOURCES = Path(__file__).parent
_COMPONENTS = ("ascendcl", "nnopbase", "opapi")

_CLIENT_COMPONENTS = ("opapi_math", "op_compiler")
"""Components for torch_npu only, compiled for the layout ``cann``."""

_SPLIT: dict[str, tuple[str, ...]] = {
    "libascendcl.so": ("ascendcl",),
    "libnnopbase.so": ("nnopbase",),
    "libopapi_nn.so": ("opapi",),
}

_LAYOUTS: dict[Layout, dict[str, tuple[str, ...]]] = {
    "single": {SINGLE_NAME: _COMPONENTS},
    "split": _SPLIT,
    "monolithic": {"libascendcl.so": ("ascendcl",), "libopapi.so": ("nnopbase", "opapi")},
    "cann": {
        **_SPLIT,
        "libopapi_math.so": ("opapi_math",),
        "libacl_op_compiler.so": ("op_compiler",),
        **{f"lib{name}.so": () for name in ("hccl", "ge_runner", "graph", "acl_tdt_channel")},
    },
}
"""Layout -> library -> its folders of sources, in link order: each library may need earlier ones."""

_FOLDERS = ("runtime", "opp", "compiler")
"""Empty folders of the layout ``cann``, because torch_npu checks that they exist."""

_FLAGS = (
    "-std=c++17",
    "-O2",
    "-g1",
    "-fPIC",
    "-ffp-contract=off",  # round products before adding, even if the compiler contracts by default
    "-fwrapv",  # sizes wrap as in the library's own checks
    "-Wall",
    "-Wextra",
)

_EXPORTS = "{ global: acl*; Acl*; rt*; Msprof*; poolproof_emulator_*; _Z*8emulator*; local: *; };"
"""Exports of each of several libraries: the ABI, and the emulator's own names for its other libraries."""

_ABI_ONLY = "{ global: acl*; Acl*; poolproof_emulator_*; local: *; };"

_MAX_PER_UNIT = 16
"""Most sources per compiled unit. A unit reads the standard library's headers once. Names must be unique in a
component, even in unnamed namespaces; the compiler rejects duplicates."""

_CPU_SECONDS = {_COMPONENTS: 20, _CLIENT_COMPONENTS: 5}
"""Seconds to compile on one idle core (measured: 18 and 4, by g++ on x86)."""


def library(layout: Layout = "single", sanitizer: Sanitizer | None = None, tell: Tell = lambda _: None) -> Path:
    """Build the emulator if necessary; call ``tell`` before slow work.

    Args:
        layout: ``single`` is one library. Other layouts are installations, as in ``ASCEND_HOME_PATH``.
        sanitizer: Overrides the environment variable POOLPROOF_EMULATOR_SANITIZER, see ``sanitized.py``.
        tell: Takes a sentence about slow work.

    Returns:
        The path of the library for ``single``, else the root of the installation, with its libraries in ``lib64``.
    """
    if sanitizer is None and (name := os.environ.get("POOLPROOF_EMULATOR_SANITIZER")):
        if name not in get_args(Sanitizer):
            raise BuildFailed(f"POOLPROOF_EMULATOR_SANITIZER={name} is none of {', '.join(get_args(Sanitizer))}")
        sanitizer = cast(Sanitizer, name)
    try:
        root = _installation(layout, sanitizer, tell)
    except OSError as error:
        raise building.cannot_keep("the emulator", error) from error
    return root / LIBRARY_FOLDER / SINGLE_NAME if layout == "single" else root


def prepare(product: str, tell: Tell, dtype: str) -> None:  # noqa: ARG001  (one build serves all)
    """Build the emulator."""
    library(tell=tell)


def sanitizer_runtime(sanitizer: Sanitizer) -> Path:
    """Return the sanitizer's own library. A program that loads an instrumented emulator needs it in ``LD_PRELOAD``."""
    name = {"address": "libasan.so", "thread": "libtsan.so"}[sanitizer]
    return Path(building.run_compiler([f"-print-file-name={name}"]).strip()).resolve()


def _installation(layout: Layout, sanitizer: Sanitizer | None, tell: Tell) -> Path:
    flags = (*_FLAGS, *((f"-fsanitize={sanitizer}",) if sanitizer else ()))
    if "clang" not in building.compiler_identity()[0]:  # clang makes none in any case
        flags += ("-fno-gnu-unique",)  # keep two copies in one process apart
    build = building.cache_folder("emulator") / _fingerprint(flags)
    if not (build / layout).exists():
        with building.alone(build, "the emulator", tell):
            parts = {"objects": _COMPONENTS, **({"client": _CLIENT_COMPONENTS} if layout == "cann" else {})}
            objects = [
                building.once(build / name, partial(_compile, flags=flags, tell=tell, components=components))
                for name, components in parts.items()
            ]
            building.once(build / layout, lambda folder: _link(folder, layout, objects, flags))
    return build / layout


@lru_cache
def _fingerprint(flags: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for text in (*building.compiler_identity(), repr(flags), _EXPORTS, _ABI_ONLY, repr(_LAYOUTS)):
        digest.update(text.encode())
    for source in sorted(
        path for component in (*_COMPONENTS, *_CLIENT_COMPONENTS) for path in (_SOURCES / component).iterdir()
    ):
        digest.update(f"{source.parent.name}/{source.name}\0".encode() + source.read_bytes())
    return digest.hexdigest()[:24]


def _compile(folder: Path, flags: Sequence[str], tell: Tell, components: tuple[str, ...]) -> None:
    units = _units(components)
    texts = {name: "".join(f'#include "{path}"\n' for path in sources) for name, sources in units.items()}
    jobs = [partial(building.compile_unit, folder / f"{name}.o", flags, text) for name, text in texts.items()]
    building.side_by_side(jobs, "the emulator", _CPU_SECONDS[components], tell)


def _units(components: tuple[str, ...] = _COMPONENTS) -> dict[str, list[Path]]:
    """Return the name of each object file -> the sources of one component that are compiled together."""
    units: dict[str, list[Path]] = {}
    for component in components:
        sources = sorted((_SOURCES / component).glob("*.cpp"))
        count = math.ceil(len(sources) / _MAX_PER_UNIT)
        units |= {f"{component}.{number}": sources[number::count] for number in range(count)}
    return units


def _link(folder: Path, layout: Layout, objects: Sequence[Path], flags: Sequence[str]) -> None:
    libraries = folder / LIBRARY_FOLDER
    libraries.mkdir()
    for name in _FOLDERS if layout == "cann" else ():
        (folder / name).mkdir()
    exports = folder / "exports.map"
    exports.write_text(_ABI_ONLY if layout == "single" else _EXPORTS)
    earlier: list[str] = []
    for name, components in _LAYOUTS[layout].items():
        found = (path for component in components for made in objects for path in made.glob(f"{component}.*.o"))
        inputs = sorted(map(str, found))
        linking = ["-shared", "-pthread", f"-Wl,-soname,{name}", "-Wl,-rpath,$ORIGIN"]
        if layout == "cann":
            linking.append("-Wl,--no-as-needed")  # clients look up functions of one library through another
        exported = f"-Wl,--version-script,{exports}"
        building.run_compiler([*flags, *linking, exported, "-o", str(libraries / name), *inputs, *earlier])
        earlier.append(str(libraries / name))
