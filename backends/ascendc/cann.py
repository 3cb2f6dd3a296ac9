"""A kernel on CANN's own CPU library (tikicpulib), as a program built by CMake that launches it once, on files.

It follows public documents, which ``cann_launch`` names, and was only tried on a stand-in for the library.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import BackendUnavailable
from poolproof.backends.building import BuildFailed

_PRODUCTS = {"A2": "Ascend910B1", "A3": "Ascend910_9391", "950": "Ascend950PR_9599"}
"""Product -> target of the library (asc-tools, cpudebug/cmake/tikicpulib-config.cmake.in)."""

TILING_MACROS = """#include <cstdint>
#include <cstring>
#define GET_TILING_DATA_WITH_STRUCT(Type, name, address) Type name; std::memcpy(&name, address, sizeof name)
#define GET_TILING_DATA(name, address) GET_TILING_DATA_WITH_STRUCT(ASCENDC_TILING_STRUCT, name, address)
"""
"""Macros of tiling data, as the toolkit's build defines them."""


def build(folder: Path, home: str, product: str, flags: Sequence[str], units: Sequence[str]) -> None:
    """Build the program ``launch`` from units; one of them has the entry."""
    paths = [folder / f"unit{number}.cpp" for number in range(len(units))]
    for path, text in zip(paths, units):
        path.write_text(text, encoding="utf-8")
    given = {"HOME": home, "PRODUCT": _PRODUCTS[product], "FLAGS": ";".join(flags), "UNITS": ";".join(map(str, paths))}
    source = str(Path(__file__).with_name("cann_launch"))
    _run("cmake", "-S", source, "-B", str(folder), *(f"-D{name}={value}" for name, value in given.items()))
    _run("cmake", "--build", str(folder))


def launch(program: Path, memory: Sequence[NDArray], blocks: int, key: int) -> None:
    """Launch a kernel on its arguments, in place.

    The library runs each block in a process and prints a line for each that succeeds; its exit status does not include
    them. If a block died, print the library's errors and abort this process.
    """
    with TemporaryDirectory() as folder:
        for number, array in enumerate(memory):
            array.tofile(f"{folder}/{number}")
        printed = _run(str(program), f"{folder}/", str(blocks), str(key)).splitlines()
        ended = sum(line.startswith("[SUCCESS]") for line in printed)
        if ended < blocks:
            errors = dict.fromkeys(line for line in printed if line.startswith("[ERROR]"))
            print(f"{blocks - ended} of {blocks} blocks died", *errors, file=sys.stderr, flush=True)  # noqa: T201
            os.abort()
        for number, array in enumerate(memory):
            array[...] = np.fromfile(f"{folder}/{number}", array.dtype).reshape(array.shape)


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except FileNotFoundError as error:
        raise BackendUnavailable(f"--model cann needs CMake: {error.filename} is missing") from None
    except subprocess.CalledProcessError as error:
        raise BuildFailed(f"{' '.join(command)}: {error.stdout}{error.stderr}") from None
