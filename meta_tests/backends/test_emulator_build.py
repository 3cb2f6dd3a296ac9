"""The emulator is compiled once, its sources side by side, and who waits is told why: with a compiler that is none."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path

import pytest

from poolproof.backends import building
from poolproof.backends.base import BackendUnavailable
from poolproof.backends.emulator import build, library
from poolproof.references.kernels.compiled import VARIABLE
from sessions import surroundings, words

COMPILER = """#!/bin/bash
[ "$1" = --version ] && exec echo "${VERSION:-a compiler}"
[ "$1" = -dumpmachine ] && exec echo "$MACHINE"
[[ "$VERSION $*" == *clang*-fno-gnu-unique* ]] && exit 1
for word; do [ "$before" = -o ] && made=$word; before=$word; done
echo "+$made" >> "$LOG"; sleep 0.03; echo made > "$made"; echo "-$made" >> "$LOG"
"""

BUILD = """
from poolproof.backends.emulator.build import library
library(tell=lambda sentence: print(sentence, flush=True))
"""

COMPILES = "compiling the emulator, once: about "


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An empty cache, a compiler, and the file in which it tells when it begins and ends; loops are not compiled."""
    compiler = tmp_path / "c++"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    (tmp_path / "log").touch()
    changed = {"XDG_CACHE_HOME": str(tmp_path), "CXX": str(compiler), "LOG": str(tmp_path / "log"), VARIABLE: "1"}
    return surroundings() | changed


def test_of_several_processes_one_compiles_side_by_side_and_the_others_wait(environment: dict[str, str]) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", BUILD], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = sorted(process.communicate(timeout=120)[0] for process in processes)
    assert [process.returncode for process in processes] == [0, 0, 0]
    waiting = "another process compiles the emulator: waiting for it\n"
    assert [text for text in said if COMPILES in text] == [said[-1]]
    assert set(said[:-1]) <= {waiting, ""}
    log = Path(environment["LOG"]).read_text().split()
    assert len(log) == len(set(log)) == 2 * (len(build._units()) + 1)
    running = list(accumulate(1 if line.startswith("+") else -1 for line in log))
    assert max(running) == min(len(os.sched_getaffinity(0)), len(build._units()))


def test_machines_and_compilers_that_share_a_home_have_builds_of_their_own(environment: dict[str, str]) -> None:
    for changed in ({"MACHINE": "aarch64"}, {"MACHINE": "x86_64"}, {"MACHINE": "x86_64", "VERSION": "clang 14"}):
        subprocess.run([sys.executable, "-c", BUILD], env=environment | changed, check=True)
    assert len(list(Path(environment["XDG_CACHE_HOME"], "poolproof", "emulator").iterdir())) == 3


def test_every_source_is_compiled_once_and_a_missing_compiler_named(monkeypatch: pytest.MonkeyPatch) -> None:
    units = build._units((*build._COMPONENTS, *build._CLIENT_COMPONENTS)).values()
    assert sorted(path for unit in units for path in unit) == sorted(build._SOURCES.glob("*/*.cpp"))
    assert all(len({path.parent for path in unit}) == 1 for unit in units)
    assert library() == library() and library().is_file()
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    building.compiler.cache_clear()
    try:
        with pytest.raises(BackendUnavailable, match="install g"):
            building.compiler()
    finally:
        building.compiler.cache_clear()


def test_who_waits_for_another_says_so_once_and_goes_on_after_it(tmp_path: Path) -> None:
    said: list[str] = []

    def enter() -> None:
        with building.alone(tmp_path / "build", "the emulator", said.append):
            said.append("entered")

    with ThreadPoolExecutor(1) as pool:
        with building.alone(tmp_path / "build", "the emulator", said.append):
            waiting = pool.submit(enter)
            while not said and not waiting.done():
                time.sleep(0.01)
            assert said == ["another process compiles the emulator: waiting for it"]
        waiting.result(timeout=60)
    assert said[1:] == ["entered"]


def test_a_first_use_says_that_it_compiles(environment: dict[str, str], tmp_path: Path) -> None:
    """Before all else that it says; what comes of this compiler is no library."""
    ended = subprocess.run(
        words("--backend", "emulator-a2", "--aspect", "examples", "--report", "out"),
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ended.returncode == 3, ended.stdout
    first, *rest = ended.stdout.splitlines()
    assert first.startswith(f"poolproof: {COMPILES}")
    assert "cannot be loaded" in "".join(rest)
