"""A kernel on CANN's own CPU library (tikicpulib): a program that CMake builds and that launches it once, on files.

Written to public documents, and tried on a stand-in alone: the API reference of asc-devkit on ICPU_RUN_KF,
ICPU_SET_TILING_KEY, SetKernelMode and GmAlloc (basic API, debugging, CPU twin debugging), and how the operator library
builds its kernels' unit tests (ops-nn, cmake/dependencies.cmake; cmake/ut.cmake, AddOpTestCase).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import BackendUnavailable
from poolproof.backends.building import BuildFailed

_PRODUCTS = {"A2": "Ascend910B1", "A3": "Ascend910_9391", "950": "Ascend950PR_9599"}
"""Targets of the library (asc-tools, cpudebug/cmake/tikicpulib-config.cmake.in)."""

TILING_MACROS = """#include <cstring>
#define GET_TILING_DATA_WITH_STRUCT(Type, name, address) Type name; std::memcpy(&name, address, sizeof name)
#define GET_TILING_DATA(name, address) GET_TILING_DATA_WITH_STRUCT(ASCENDC_TILING_STRUCT, name, address)
"""
"""What the toolkit's build defines of tiling data."""

_PROJECT = """cmake_minimum_required(VERSION 3.16)
project(kernel CXX)
list(APPEND CMAKE_PREFIX_PATH "{home}/tools/tikicpulib/lib/cmake")
find_package(tikicpulib REQUIRED)
add_executable(launch {sources})
target_compile_options(launch PRIVATE {flags})
target_link_libraries(launch PRIVATE tikicpulib::{product})
"""
_LAUNCH = """// Launches the kernel once: a folder with a file for each argument, how many blocks, the tiling key.
#include <fstream>
#include "tikicpulib.h"
extern "C" void ascendc_entry(uint8_t** arguments);
void kernel({parameters}) {{ uint8_t* all[] = {{{names}}}; ascendc_entry(all); }}
int main(int, char** words)
{{
    std::fstream files[{count}];
    std::streamsize sizes[{count}];
    char* memory[{count}];
    for (int i = 0; i < {count}; ++i) {{
        files[i].open(words[1] + std::to_string(i), std::ios::binary | std::ios::ate | std::ios::in | std::ios::out);
        memory[i] = static_cast<char*>(AscendC::GmAlloc(sizes[i] = files[i].tellg()));
        files[i].seekg(0).read(memory[i], sizes[i]);
    }}
    AscendC::SetKernelMode(KernelMode::AIV_MODE);
    ICPU_SET_TILING_KEY(std::stoull(words[3]));
    ICPU_RUN_KF(kernel, std::stoul(words[2]), {memories});
    for (int i = 0; i < {count}; ++i) files[i].seekp(0).write(memory[i], sizes[i]), AscendC::GmFree(memory[i]);
}}
"""


def build(folder: Path, product: str, count: int, flags: Sequence[str], units: Sequence[str]) -> None:
    """Build the program of a kernel with ``count`` arguments, which ``units`` call."""
    memories = ", ".join(f"(uint8_t*)memory[{number}]" for number in range(count))
    names = [f"a{number}" for number in range(count)]
    parameters = ", ".join(f"GM_ADDR {name}" for name in names)
    files = {f"part{number}.cpp": text for number, text in enumerate(units)}
    files["launch.cpp"] = _LAUNCH.format(count=count, parameters=parameters, names=", ".join(names), memories=memories)
    given = {"home": os.environ["ASCEND_HOME_PATH"], "product": _PRODUCTS[product], "sources": " ".join(files)}
    files["CMakeLists.txt"] = _PROJECT.format(**given, flags=" ".join(f'"{flag}"' for flag in flags))
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    _run("cmake", "-S", str(folder), "-B", str(folder))
    _run("cmake", "--build", str(folder))


def launch(program: Path, memory: Sequence[NDArray], blocks: int, key: int) -> None:
    """Launch a kernel on its arguments, which hold afterwards what is in memory then."""
    with TemporaryDirectory() as folder:
        for number, array in enumerate(memory):
            array.tofile(f"{folder}/{number}")
        _run(str(program), f"{folder}/", str(blocks), str(key))
        for number, array in enumerate(memory):
            array[...] = np.fromfile(f"{folder}/{number}", array.dtype).reshape(array.shape)


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise BackendUnavailable(f"--model cann needs CMake: there is no {error.filename}") from None
    except subprocess.CalledProcessError as error:
        raise BuildFailed(f"{' '.join(command)}: {error.stdout}{error.stderr}") from None
