"""Libraries of a kernel: a launcher compiled with the kernel's source and the model, each built once.

The key of an object file is its text, its flags, and the content of all included files, as the compiler lists them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from poolproof.backends import building
from poolproof.backends.ascendc import cann
from poolproof.backends.ascendc.manifest import Kernel
from poolproof.backends.ascendc.structs import TilingStructs
from poolproof.backends.base import MODEL_VARIABLE, BackendUnavailable
from poolproof.backends.building import BuildFailed, Tell

HOST_STUB = Path(__file__).with_name("host_stub")
_MODEL = Path(__file__).with_name("model")
_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-w")
_WATCHES_THREADS = ("-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0")
"""For kernels that may have threads: the functions that they call belong to the model."""

_SECONDS = 12
"""Seconds to compile one unit on one idle core."""

DTYPES = {
    "float32": ("float", "DT_FLOAT", 0),
    "float16": ("half", "DT_FLOAT16", 1),
    "bfloat16": ("bfloat16_t", "DT_BF16", 27),
    "int32": ("int32_t", "DT_INT32", 3),
    "int64": ("int64_t", "DT_INT64", 9),
}
"""dtype -> its names in kernels and in the framework, and its number there."""

_TILING, _CANN_TILING = "kernel_tiling/kernel_tiling.h", "poolproof_tiling.h"
"""Header of the tiling structs: as kernels include it; and on CANN, where another header has the first name."""

Unit = tuple[Sequence[str], str]
"""The flags and the text of one object file."""


def kernel_library(kernel: Kernel, dtypes: tuple[str, str], tell: Tell = lambda _: None) -> Path:
    """Build the library of a kernel for a pair of dtypes; `BuildFailed` has the compiler's first error."""
    if MODEL_VARIABLE in os.environ:
        return _cann_program(kernel, dtypes, tell)
    usual = (*_FLAGS, f"-D__CCE_AICORE__={kernel.architecture}", f"-I{_MODEL}")
    headers = dict.fromkeys(_cann_headers(), '#include "kernel_operator.h"\n')
    flags = (*usual, *_defines(kernel, dtypes), *_includes(kernel, headers))
    flags += _WATCHES_THREADS if kernel.architecture == 310 else ()
    units = {f"part {number}": (flags, text) for number, text in enumerate(_launchers(kernel))}
    units |= {path.stem: (usual, path.read_text()) for path in sorted(_MODEL.glob("*.cpp"))}
    return build(kernel, f"{kernel.manifest.entry} for {' and '.join(dtypes)}", units, tell)


def _cann_program(kernel: Kernel, dtypes: tuple[str, str], tell: Tell) -> Path:
    if not (home := os.environ.get("ASCEND_HOME_PATH")):
        raise BackendUnavailable("--model cann needs the toolkit of CANN: source its set_env.sh")
    defines = [flag for flag in _defines(kernel, dtypes) if not flag.startswith("-DDT_")]  # CANN's headers define these
    includes = _includes(kernel, {_CANN_TILING: cann.TILING_MACROS}, _CANN_TILING)
    flags = [*defines, *includes, "-include", _CANN_TILING, f"-DARGUMENT_COUNT={len(kernel.arguments)}"]
    units, product = _launchers(kernel), kernel.manifest.product
    tell(f"{kernel.manifest.entry} for {' and '.join(dtypes)} is compiled with CANN's CPU library, unless cached")
    program = building.cache_folder("ascendc") / "cann" / _digest([home, kernel.digest(), *flags, *units])
    return building.once(program, lambda folder: cann.build(folder, home, product, flags, units)) / "launch"


def host_library(kernel: Kernel, tell: Tell = lambda _: None) -> Path:
    """Build the library of an operator's own host code, against poolproof's stub of the host framework."""
    tiling = kernel.manifest.tiling
    headers = dict.fromkeys(_cann_headers(), '#include "host.h"\n')
    folders = [HOST_STUB, _header_folder(headers, {}), *kernel.files(*tiling.include)]
    flags = (*_FLAGS, *(f"-I{path}" for path in folders))
    units = {str(path): (flags, f'#include "{path}"\n') for path in kernel.files(*tiling.host)}
    units["stub"] = flags, (HOST_STUB / "host.cpp").read_text()
    return build(kernel, f"the host code of {tiling.operator}", units, tell)


def build(kernel: Kernel, what: str, units: Mapping[str, Unit], tell: Tell) -> Path:
    """Build a library from units, each of which is compiled once."""
    folder = building.cache_folder("ascendc")
    try:
        objects = [folder / "objects" / _key(unit) for unit in units.values()]
        target = folder / _digest(path.name for path in objects)
        if not (target / "library").exists():
            with building.alone(target, what, tell):
                parts = [part for part in zip(objects, units.values()) if not part[0].exists()]
                jobs = [partial(building.once, path, partial(_compile, unit)) for path, unit in parts]
                if jobs:
                    building.side_by_side(jobs, what, _SECONDS * len(jobs), tell)
                building.once(target / "library", partial(_link, objects))
    except BuildFailed as error:
        errors = re.findall(r".*(?:error: |undefined reference).*", str(error)) or ["the compiler gives no reason"]
        lacking = re.search(r"(\w+). (?:that depend on a template|was not declared|is not a member)", errors[0])
        hint = f" (the model of the API may lack {lacking[1]})" if lacking else ""
        raise BuildFailed(f"{kernel.path}: {what} does not compile: {errors[0]}{hint}") from None
    except OSError as error:
        raise building.cannot_keep("kernels", error) from error
    return target / "library" / "kernel.so"


def _compile(unit: Unit, folder: Path) -> None:
    building.compile_unit(folder / "unit.o", *unit)


def _link(objects: Iterable[Path], folder: Path) -> None:
    """Link units; several may contain the same function of a header."""
    inputs = [str(path / "unit.o") for path in objects]
    building.run_compiler(["-shared", "-Wl,--allow-multiple-definition", "-o", str(folder / "kernel.so"), *inputs])


def _key(unit: Unit) -> str:
    """Return the key of an object; ask the compiler for its files only if the last listing does not match."""
    flags, text = unit
    request, folder = _digest([*building.compiler_identity(), *flags, text]), building.cache_folder("ascendc")
    listing = folder / "files" / request
    if listing.exists() and (folder / "objects" / (key := _digest_files(request, listing))).exists():
        return key
    dependencies = building.run_compiler([*flags, "-MM", "-x", "c++", "-"], text).partition(":")[2]
    listing.parent.mkdir(parents=True, exist_ok=True)
    listing.write_text("\n".join(sorted({*shlex.split(dependencies.replace("\\\n", " "))} - {"-"})))
    return _digest_files(request, listing)


def _digest_files(request: str, listing: Path) -> str:
    paths = filter(Path.exists, map(Path, listing.read_text().splitlines()))
    return _digest([request, *(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths)])


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]


def _defines(kernel: Kernel, dtypes: tuple[str, str]) -> list[str]:
    defines: dict[str, object] = {name: number for _, name, number in DTYPES.values()}
    for argument, tensor in kernel.manifest.arguments.items():
        kind, name, _ = DTYPES[dtypes[tensor == "indices"]]
        defines |= {f"DTYPE_{argument.upper()}": kind, f"ORIG_DTYPE_{argument.upper()}": name}
    if struct := kernel.manifest.tiling.struct.partition(":")[2]:
        defines["ASCENDC_TILING_STRUCT"] = struct
    return [f"-D{name}={value}" for name, value in defines.items()]


def _includes(kernel: Kernel, headers: dict[str, str], tiling: str = _TILING) -> list[str]:
    """Return the folders of headers: generated ones, the manifest's, and those of its sources.

    ``tiling`` names the header that declares the kernel's tiling structs.
    """
    manifest, structs = kernel.manifest, tiling_structs(kernel)
    headers[tiling] += structs.declarations() if structs else ""
    generated = _header_folder(headers, {name: kernel.files(path)[0] for name, path in manifest.links.items()})
    given = [*kernel.files(*manifest.include), *(path.parent for path in kernel.files(*manifest.sources))]
    return [f"-I{path}" for path in (generated / "links", generated, *given)]


def _cann_headers() -> list[str]:
    """List the headers of CANN that sources include. poolproof replaces them by one header for kernels or host code."""
    return (HOST_STUB / "headers.txt").read_text().split()


def _header_folder(headers: Mapping[str, str], links: Mapping[str, Path]) -> Path:
    """Make a folder of headers, with a subfolder from which linked folders are ``../NAME``."""

    def fill(folder: Path) -> None:
        (folder / "links").mkdir()
        for name, path in links.items():
            (folder / name).symlink_to(path)
        for name, text in headers.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"#pragma once\n{text}")

    key = _digest([*headers, *headers.values(), *links, *map(str, links.values())])
    return building.once(building.cache_folder("ascendc") / "headers" / key, fill)


def tiling_structs(kernel: Kernel) -> TilingStructs | None:
    """Read the structs that the manifest names; return None if it names none."""
    pattern, _, name = kernel.manifest.tiling.struct.partition(":")
    structs = TilingStructs(kernel.files(pattern)) if pattern else None
    if structs and name and name not in structs.fields:
        raise kernel.unavailable(f"there is no struct {name} in {pattern}")
    return structs


def _launchers(kernel: Kernel) -> list[str]:
    """Write the units that call a kernel: one, or one for each branch of a template and one that chooses."""
    entry, branches = kernel.manifest.entry, kernel.manifest.branches
    sources = "".join(f'#include "{path}"\n' for path in kernel.files(*kernel.manifest.sources))
    head = f'#include "kernel_operator.h"\n#include "{_TILING}"\n{sources}'
    given = ", ".join(f"arguments[{number}]" for number in range(len(kernel.arguments)))
    if not branches:
        return [f'{head}extern "C" void ascendc_entry(uint8_t** arguments) {{ {entry}({given}); }}\n']
    functions = [f"void ascendc_branch_{key}(uint8_t** arguments)" for key in branches]
    parts = [
        f"{head}{function} {{ {entry}<{template}>({given}); }}\n"
        for function, template in zip(functions, branches.values())
    ]
    choices = "".join(f"if (TILING_KEY_IS({key})) return ascendc_branch_{key}(arguments);\n" for key in branches)
    declared = "".join(f"{function};\n" for function in functions)
    chooser = f'extern "C" void ascendc_entry(uint8_t** arguments) {{\n{choices}}}\n'
    return [*parts, f'#include "kernel_operator.h"\n{declared}{chooser}']
