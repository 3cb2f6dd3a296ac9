"""The model of Ascend C by worked examples: what its functions compute, and what the watch says and does not say."""

import ctypes
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest

from places import ROOT
from poolproof.backends.ascendc.manifest import Assumption
from shared_runs import made_once

MODEL = ROOT / "backends" / "ascendc" / "model"
KERNELS = Path(__file__).with_name("ascendc_model.cpp")
FLAGS = ("-std=c++17", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-Wall", "-Wextra", "-Werror")
DEFINES = ("-D__CCE_AICORE__=310", "-DASCENDC_TILING_STRUCT=struct { uint64_t words[4]; }", f"-I{MODEL}")
NAMES = re.findall(r'(?:VALUES|cast<\w+>|compares|atomics<\w+>)\("([^"]+)"', KERNELS.read_text())
FAULTS = re.findall(r'FAULT\w*\("(\w+): ([^"]+)", "([^"]*)"', KERNELS.read_text())


def build(folder: Path) -> None:
    """Only kernels are watched by what the compiler puts before their accesses; the runtime answers its calls."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("the model is compiled by g++, which is not installed")
    runtime = [(path, ()) for path in sorted(MODEL.glob("*.cpp"))]
    for source, options in (*runtime, (KERNELS, ("-fsanitize=thread",))):
        subprocess.run(
            [compiler, *FLAGS, *DEFINES, *options, "-c", source, "-o", folder / f"{source.stem}.o"], check=True
        )
    objects = sorted(folder.glob("*.o"))
    subprocess.run([compiler, "-shared", *objects, "-o", folder / "kernels.so"], check=True)


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = ctypes.CDLL(str(made_once(tmp_path_factory, "ascendc-kernels", build) / "kernels.so"))
    for function in (library.run, library.ascendc_findings):
        function.restype = ctypes.c_char_p
    return library


def run(kernels: ctypes.CDLL, name: str, bad: bool = False) -> tuple[str, list[dict[str, Any]]]:
    """How the output differs from what is owed, and the findings."""
    wrong = kernels.run(name.encode(), int(bad)).decode()
    return wrong, json.loads(kernels.ascendc_findings().decode())


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_worked_by_hand(kernels: ctypes.CDLL, name: str) -> None:
    assert run(kernels, name) == ("", [])


@pytest.mark.parametrize(("kind", "text", "call"), FAULTS, ids=[f"{kind}: {text}" for kind, text, _ in FAULTS])
def test_a_fault_is_found_where_it_is_and_only_there(kernels: ctypes.CDLL, kind: str, text: str, call: str) -> None:
    name = f"{kind}: {text}"
    _, found = run(kernels, name, bad=True)
    assert {(it["kind"], it["call"].split(" (")[0]) for it in found} == {(kind, call)}
    assert all(it["text"].startswith(text.removesuffix(": a queue")) for it in found)
    assert run(kernels, name)[1] == []


def test_a_finding_names_element_core_and_both_calls(kernels: ctypes.CDLL) -> None:
    _, (found,) = run(kernels, "racecheck: load and store of two cores, no SyncAll between", bad=True)
    line = found.pop("call").removeprefix("GetValue (ascendc_model.cpp:").removesuffix(")")
    text = "load and store of two cores, no SyncAll between: SetValue (ascendc_model.cpp:"
    assert found.pop("text").removeprefix(text).removesuffix(") before it").isdecimal() and line.isdecimal()
    assert found == {"kind": "racecheck", "tensor": "workspace", "byte": 0, "core": 1, "count": 1}


ASSUMED = [
    ("registers_keep_order", True, "racecheck: a vector function loads what it stored before, no LocalMemBar between"),
    ("integers_saturate", False, "int32 by RINT"),
    ("infinities_saturate", True, "half by RINT"),
    ("maximum_is_ieee", False, "Max: NaN, and +0.0 above -0.0"),
    ("maximum_is_ieee", False, "ReduceMax: the first NaN"),
    ("vector_pipe_in_order", False, "all lanes are loaded before the first is stored"),
]


def test_a_manifest_can_name_every_assumption(kernels: ctypes.CDLL) -> None:
    known = re.findall(r'^    \{"(\w+)", (?:true|false)\},$', (MODEL / "watch.cpp").read_text(), re.MULTILINE)
    assert [*get_args(Assumption)] == known
    assert all(kernels.ascendc_assume(name.encode(), kernels.ascendc_assume(name.encode(), 1)) == 1 for name in known)


@pytest.mark.parametrize(("assumption", "switched", "name"), ASSUMED, ids=[row[0] for row in ASSUMED])
def test_an_assumption_can_be_switched(kernels: ctypes.CDLL, assumption: str, switched: bool, name: str) -> None:
    before = run(kernels, name, bad=True)
    assert kernels.ascendc_assume(assumption.encode(), switched) == (not switched)
    try:
        assert run(kernels, name, bad=True) != before
    finally:
        assert kernels.ascendc_assume(assumption.encode(), not switched) == switched
    assert run(kernels, name, bad=True) == before and kernels.ascendc_assume(b"none", 1) == -1
