"""Kernel sources as backends: from manifest, source and tiling to a verdict, and what is said where one is wrong."""

import json
import re
import shutil
import struct
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sessions
from holding import holding
from places import GOLDEN, ROOT
from poolproof.backends.ascendc.manifest import Kernel
from poolproof.backends.ascendc.structs import TilingStructs
from poolproof.backends.ascendc.tilings import KernelCall, KernelTiling, NoTiling, tilings_of
from poolproof.backends.base import SOURCES_VARIABLE, Backend, BackendUnavailable, UnknownBackend
from poolproof.backends.registry import create, prepare
from poolproof.references.operators import find_operator
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import Overall, Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion

EXAMPLES = ROOT / "examples" / "kernels"
BACKWARD = "MaxPool2dWithIndicesBackward"
ASKED = ("--operator", BACKWARD, "--dtype", "float32", "--no-shrink", "--cases")


def made_ready(name: str) -> Backend:
    prepare(name, lambda _: None, "float32")
    return create(name)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a copy of the scattering kernel, in which names of kernels begin."""
    for path in EXAMPLES.glob("scatter*"):
        shutil.copy(path, tmp_path)
    monkeypatch.setenv(SOURCES_VARIABLE, str(tmp_path))
    return tmp_path


def changed(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")


def judged(backend: Backend, *checks: str, **fields: Any) -> Row:
    case = Case.of(BACKWARD, **{"index_dtype": "int32", "shape": (2, 3, 4, 4), "kernel_size": (2,)} | fields)
    return CaseQuestion(case, holding("results", "interval", "sanitizer", *checks)).judge(backend)


# The whole way


def test_a_kernel_is_judged_by_its_source(tmp_path: Path) -> None:
    asked = (*ASKED, "4", "--aspect", "values")
    ended = sessions.run_session(tmp_path / "run", "ascendc:scatter.toml", "--sources", str(EXAMPLES), asked=asked)
    assert ended.status == Overall.CONFORMS, ended.output
    rows = read_rows(ended.folder, ["route", "checks_judged"]).to_pylist()
    assert [row["route"] for row in rows] == ["tiling key 0"] * 4 + [None]
    assert all("sanitizer" in row["checks_judged"] for row in rows[:4])
    environment = json.loads((ended.folder / "run.json").read_text(encoding="utf-8"))["backends"]
    assert environment["ascendc:scatter.toml"]["sources"].startswith("sha256:")


def test_what_is_seen_from_inside_is_held_against_a_kernel_and_its_replay_line_holds(kernel: Path) -> None:
    """Values are right: what is copied too much is not used."""
    changed(kernel / "scatter.cpp", ("windows * sizeof(DTYPE_GRAD)", "(windows + 8) * sizeof(DTYPE_GRAD)"))
    asked = (*ASKED, "1", "--aspect", "values")
    ended = sessions.run_session(kernel / "run", "ascendc:scatter.toml", "--sources", str(kernel), asked=asked)
    assert ended.status == Overall.VIOLATES, ended.output
    (reason, *_) = read_rows(ended.folder, ["reason"])["reason"].to_pylist()
    said = (
        "memcheck: load outside of every tensor, at byte 4 of grad_output, on core 0, in DataCopyPad (scatter.cpp:76)"
    )
    assert said in reason
    line = next(line.strip() for line in ended.output.splitlines() if "poolproof replay" in line)
    assert f"--backend ascendc:scatter.toml --sources {kernel} " in line
    (kernel / "away").mkdir()
    again = sessions.replay(line, kernel / "away")
    assert (again.returncode, said in again.stdout) == (1, True), again.stdout + again.stderr


def test_cores_may_share_a_workspace_element_by_element(kernel: Path) -> None:
    store = """if (AscendC::GetBlockIdx() < 16) {
        AscendC::GlobalTensor<DTYPE_Y> shared;
        shared.SetGlobalBuffer(reinterpret_cast<DTYPE_Y*>(workspace));
        shared.SetValue(AscendC::GetBlockIdx(), 1);
    }
    Scatter kernel;"""
    changed(kernel / "scatter.cpp", ("Scatter kernel;", store))
    changed(kernel / "scatter.toml", ('["float32"]', '["float16"]'))
    row = judged(create("ascendc:scatter.toml"), dtype="float16")
    assert "sanitizer" in row["checks_judged"] and not row["checks_violated"], row["findings"]


def test_a_call_that_the_model_has_no_memory_for_is_not_run(kernel: Path) -> None:
    """A launch of hundreds of millions of operations ends so; what was begun on other cores does not touch the next."""
    exhausting = "static int calls = 0;\n    if (calls++ == 3) std::vector<char>(size_t{1} << 62);\n    Scatter kernel;"
    changed(kernel / "scatter.cpp", ("Scatter kernel;", exhausting), ("#include", "#include <vector>\n#include"))
    backend = create("ascendc:scatter.toml")
    row = judged(backend)
    assert row["verdict"] == Verdict.NOT_RUN
    assert row["reason"] == "the model has too little memory for its records of all operations"
    assert judged(backend)["verdict"] == Verdict.CONFORMS


CLEAR = "AscendC::Duplicate(y, static_cast<DTYPE_Y>(0), cells);"
UNORDERED = {
    "auto_sync = false": (("Await<AscendC::HardEvent::V_S>();", ""), "the compiler adds no flags (auto_sync is off)"),
    "assume = { vector_pipe_in_order = false }": (
        (CLEAR, f"{CLEAR} AscendC::Adds(y, y, 0.0f, cells);"),
        "no PipeBarrier between (assumption vector_pipe_in_order is off)",
    ),
}


@pytest.mark.parametrize("said", UNORDERED)
def test_a_manifest_says_what_is_ordered_without_the_kernel(said: str, kernel: Path) -> None:
    """A kernel with all flags conforms either way; one without conforms until its manifest says that it needs them."""
    change, found = UNORDERED[said]
    changed(kernel / "scatter.toml", ("[tiling]", f"{said}\n[tiling]"))
    assert not judged(create("ascendc:scatter.toml"))["checks_violated"]
    changed(kernel / "scatter.cpp", change)
    row = judged(create("ascendc:scatter.toml"))
    assert row["checks_violated"] == ["sanitizer"] and found in row["reason"], row["reason"]
    changed(kernel / "scatter.toml", (f"{said}\n", ""))
    assert not judged(create("ascendc:scatter.toml"))["checks_violated"]


def test_repeated_calls_and_modes_run_cores_in_other_orders(kernel: Path) -> None:
    """A sum that hangs on the order of cores is told apart by repetitions, unless the manifest says that it may be."""
    changed(
        kernel / "scatter.cpp",
        ("plane * tiling_.cells + first", "uint64_t{first}"),
        ("DataCopyPad(y_[first], y, row)", "SetAtomicAdd<float>(); AscendC::DataCopyPad(y_[first], y, row)"),
    )
    asked = {"shape": (1, 6, 2, 2), "gradient": "wide", "indices": "crowded", "deterministic": True}
    assert "repeat" in judged(create("ascendc:scatter.toml"), "repeat", **asked)["checks_violated"]
    changed(kernel / "scatter.toml", ('deterministic = "always"', 'deterministic = "never"'))
    assert "repeat" not in judged(create("ascendc:scatter.toml"), "repeat", **asked)["checks_judged"]


def test_a_backend_says_what_it_has(kernel: Path) -> None:
    backend = create("ascendc:scatter.toml")
    windowed, adaptive = find_operator(BACKWARD), find_operator("AdaptiveMaxPool2dBackward")
    entry = "max_pool_backward_scatter is not a kernel of this operator"
    assert backend.unsupported(windowed, "float32", "int32") is None
    assert backend.unsupported(windowed, "float16", "int32") == f"{entry} in these dtypes"
    assert backend.unsupported(adaptive, "float32", "int32") == entry
    before = backend.environment()["sources"]
    (kernel / "helper.h").write_text("// another\n", encoding="utf-8")
    assert backend.environment()["sources"] != before


# Tilings

CALL = KernelCall(
    operator=BACKWARD,
    shapes={"grad": (2, 3, 2, 2), "argmax": (2, 3, 2, 2), "y": (2, 3, 4, 4)},
    dtypes={"grad": "float32", "argmax": "int32", "y": "float32"},
    inputs=2,
    format="NCHW",
    deterministic=True,
    blocks=48,
    ub_bytes=196_608,
    kernel_size=(2, 2),
    stride=(2, 2),
)
FIELDS = {"planes": 6, "cells": 16, "windows": 4, "tile": 16, "chunk": 4}
DATA = np.array([*FIELDS.values()], np.uint32).tobytes()


def tiling_from(kernel: Path, source: str) -> Any:
    """The function that a manifest with another source of tilings leads to."""
    changed(kernel / "scatter.toml", ('python = "scatter_tiling.py:tiling"', source))
    return tilings_of(Kernel("scatter.toml"))


def test_tilings_of_a_python_function_and_of_recorded_cases_are_the_same(kernel: Path) -> None:
    by_function = tilings_of(Kernel("scatter.toml"))(CALL)
    assert by_function == KernelTiling(key=0, blocks=6, workspace=0, data=DATA)
    case = {"call": {"operator": BACKWARD, "kernel_size": [2, 2]}, "key": 3, "blocks": 6, "fields": FIELDS}
    (kernel / "cases.json").write_text(json.dumps([case]), encoding="utf-8")
    recorded = tiling_from(kernel, 'cases = "cases.json"')
    assert recorded(CALL) == replace(by_function, key=3)
    with pytest.raises(NoTiling, match=r'no tiling of this call is recorded: .*"kernel_size": \[3, 3\]'):
        recorded(replace(CALL, kernel_size=(3, 3)))


def test_an_operators_own_host_code_makes_its_tilings_or_says_why_not(kernel: Path) -> None:
    shutil.copy(GOLDEN / "ascendc" / "host.cpp", kernel)
    tiling_of = tiling_from(kernel, 'host = ["host.cpp"]\noperator = "Scatter"\nattributes = ["ksize", "strides"]')
    assert tiling_of(CALL) == KernelTiling(key=7, blocks=6, workspace=64, data=DATA)
    assert tiling_of(replace(CALL, deterministic=False, blocks=4)) == KernelTiling(8, 4, 64, DATA)
    with pytest.raises(NoTiling, match=r"a stride of 3 \(host.cpp:15\)") as told:
        tiling_of(replace(CALL, stride=(3, 2)))
    assert told.value.is_refused


def test_tilings_of_a_toolkit_are_asked_as_it_documents(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiling_of = tiling_from(kernel, 'cann = "Scatter"\nattributes = ["ksize", "data_format"]')
    with pytest.raises(BackendUnavailable, match=r"tilings of CANN need its toolkit: source its set_env\.sh"):
        tiling_of(CALL)
    asked: list[Any] = []

    def do_op_tiling(*given: Any, **attrs: Any) -> dict[str, Any]:
        asked.append((given, attrs))
        return {"tiling_key": 7, "block_dim": 6, "workspaces": [32, 32], "tiling_data": DATA}

    monkeypatch.setitem(sys.modules, "tbe.common.utils.op_tiling", SimpleNamespace(do_op_tiling=do_op_tiling))
    for name in ("tbe", "tbe.common", "tbe.common.utils"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    assert tiling_of(CALL) == KernelTiling(7, 6, 64, DATA)
    ((operator, _, inputs, outputs), attributes) = asked[0]
    assert (operator, [tensor["dtype"] for tensor in inputs], outputs[0]["shape"]) == (
        "Scatter",
        ["float32", "int32"],
        (2, 3, 4, 4),
    )
    assert attributes["attrs"][0] == {"name": "ksize", "dtype": "list_int", "value": (2, 2)}


STRUCTS = """
constexpr uint32_t MOST = 3;
struct Part { uint8_t flag = 0; int64_t offset; /* bytes */ };
struct Whole {
    float scale{1.0f};  // of all
    Part parts[2];
    uint16_t sizes[MOST];
};
"""


def test_structs_have_the_layout_of_the_compiler(tmp_path: Path) -> None:
    header = tmp_path / "tiling.h"
    header.write_text(STRUCTS, encoding="utf-8")
    structs = TilingStructs([header])
    given = {"scale": 0.5, "parts": [(1, 2), (3, 4)], "sizes": [5, 6, 7]}
    packed = structs.pack("Whole", given)
    assert struct.unpack("<f4xB7xqB7xqHHH2x", packed) == (0.5, 1, 2, 3, 4, 5, 6, 7)
    for wrong, said in (
        ({"scale": 1}, "parts is missing from the tiling of Whole"),
        ({**given, "x": 1}, "x is no field"),
    ):
        with pytest.raises(ValueError, match=said):
            structs.pack("Whole", wrong)


# Manifests, sources and compilers that are wrong

SAID: Mapping[str, tuple[tuple[str, str], str]] = {
    "no TOML": (("product =", "product"), "no manifest of a kernel"),
    "an unknown field": (("product =", "size = 5\nproduct ="), "unknown field `size`"),
    "a missing field": (('entry = "max_pool_backward_scatter"\n', ""), "missing required field `entry`"),
    "another product": (('"A2"', '"A5"'), "product is 'A5', not one of A2, A3, 950"),
    "an unknown operator": (("MaxPool3d", "MinPool3d"), "MinPool3dWithArgmaxBackward"),
    "an unknown tensor": (('"grad_input"', '"dx"'), "Invalid enum value 'dx'"),
    "an unknown ability": (("[tiling]", 'without = ["wings"]\n[tiling]'), "wings"),
    "an unknown assumption": (("[tiling]", "assume = { x = true }\n[tiling]"), "Invalid enum value 'x'"),
    "no accumulation": (("[tiling]", 'accumulation = "acc7"\n[tiling]'), "acc7"),
    "two tilings": (("[tiling]", '[tiling]\ncases = "x"'), "needs exactly one of python, cases, host and cann"),
    "a missing source": (("scatter.cpp", "gather.cpp"), "there is no gather.cpp in "),
    "a missing tiling": (("scatter_tiling.py", "other.py"), "there is no other.py in "),
    "a missing function": ((":tiling", ":cut"), "there is no function 'cut' in "),
    "a missing struct": (("ScatterTiling", "GatherTiling"), "there is no struct GatherTiling in "),
}


@pytest.mark.parametrize("what", SAID)
def test_a_wrong_manifest_is_told_in_a_sentence(what: str, kernel: Path) -> None:
    change, said = SAID[what]
    changed(kernel / "scatter.toml", change)
    with pytest.raises(BackendUnavailable) as told:
        made_ready("ascendc:scatter.toml")
    (text,) = told.value.args
    assert text.startswith(f"{kernel / 'scatter.toml'}: ")
    assert said in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("ascendc:none.toml", BackendUnavailable, "there is no manifest .*none.toml: name one"),
        ("ascendc:ops-nn/none", UnknownBackend, "choose from ops-nn/adaptive_max_pool2d-950, "),
        ("ascendc:ops-nn/max_pool3d_grad_with_argmax-a2", BackendUnavailable, "has to be a checkout of the library"),
    ],
)
def test_what_is_not_there_is_named(name: str, error: type[Exception], said: str, kernel: Path) -> None:
    with pytest.raises(error, match=said):
        made_ready(name)


def test_sources_of_the_library_have_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SOURCES_VARIABLE, raising=False)
    with pytest.raises(BackendUnavailable, match="needs a checkout of ops-nn: name its folder by --sources"):
        create("ascendc:ops-nn/max_pool3d_grad_with_argmax-a2")


def test_every_manifest_of_the_library_is_read_and_in_its_sample_of_ci(kernel: Path) -> None:
    names = {path.stem for path in (ROOT / "backends" / "ascendc" / "ops_nn").glob("*.toml")}
    assert all(Kernel(f"ops-nn/{name}").operators for name in names)
    page = (ROOT / "docs" / "ci" / "kernels-github.yml").read_text(encoding="utf-8")
    assert {*re.findall(r"^ {10}- (\w+-\w+)$", page, re.MULTILINE)} == {it for it in names if "experimental" not in it}


@pytest.mark.parametrize("wrong", ["source", "compiler", "manifest"])
def test_a_session_that_cannot_begin_says_why(wrong: str, kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if wrong == "source":
        changed(kernel / "scatter.cpp", ("kernel.Process();", "kernel.Proceed();"))
        said = (
            f"scatter.toml: max_pool_backward_scatter for float32 and int32 does not compile: {kernel}/scatter.cpp:123:"
        )
    elif wrong == "compiler":
        monkeypatch.setenv("PATH", str(kernel))
        said = "the emulator and kernels need a C++17 compiler: install g++ or clang++, or name one in CXX"
    else:
        (kernel / "scatter.toml").write_text("product = 5", encoding="utf-8")
        said = "scatter.toml: no manifest of a kernel: Expected `str`, got `int` - at `$.product`"
    given = ("--backend", "ascendc:scatter.toml", "--sources", kernel, *ASKED, "1", "--report", "out")
    ended = sessions.run(*given, cwd=kernel)
    text = ended.stdout + ended.stderr
    assert ended.returncode == 3, text
    assert "Traceback" not in text
    assert len([line for line in text.splitlines() if said in line]) == 1, text


# The CPU library of CANN, in place of which here stands what its documents say of it


@pytest.mark.skipif(not shutil.which("cmake"), reason="CMake is not installed")
def test_a_kernel_is_judged_on_cann(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the page; its replay line says on what it runs, and what the model sees is not claimed to be seen."""
    page = (ROOT / "docs" / "tutorial" / "first-kernel.md").read_text(encoding="utf-8")
    for name in ("naive.cpp", "naive_tiling.py", "naive.toml"):
        text = page.partition(f"`{name}`:\n")[2].split("```")[1].partition("\n")[2]
        (kernel / name).write_text(dedent(text), encoding="utf-8")
    home = kernel / "tools" / "tikicpulib" / "lib" / "cmake"
    home.mkdir(parents=True)
    for name in ("kernel_operator.h", "tikicpulib-config.cmake"):
        shutil.copy(GOLDEN / "ascendc" / name, home)
    (home / "tikicpulib.h").write_text('#include "kernel_operator.h"\n', encoding="utf-8")
    toolkit = kernel / "asc" / "include" / "kernel_tiling"  # its header has structs that its other headers need
    toolkit.mkdir(parents=True)
    (toolkit / "kernel_tiling.h").write_text("#pragma once\nstruct SoftMaxTiling {};\n", encoding="utf-8")
    line = json.dumps(
        {"operator": BACKWARD, "shape": [2, 3, 9, 9], "index_dtype": "int32", "kernel_size": [3], "stride": [2]}
    )
    asked = f"poolproof replay --backend ascendc:naive.toml --sources {kernel} --model cann '{line}'"
    lacking = sessions.replay(asked, kernel)
    assert "--model cann needs the toolkit of CANN: source its set_env.sh" in lacking.stderr
    environment = sessions.bare() | {"ASCEND_HOME_PATH": str(kernel)}
    monkeypatch.setattr(sessions, "bare", lambda: environment)
    right = sessions.replay(asked, kernel)
    assert "conforms (ascendc:naive.toml" in right.stdout, right.stdout + right.stderr
    assert "sanitizer" not in right.stdout
    changed(kernel / "naive.cpp", ("yGm.GetValue(at) + ", ""))
    wrong = sessions.replay(asked, kernel)
    assert "violates: interval" in wrong.stdout, wrong.stdout + wrong.stderr
    assert asked.partition(" '")[0] in wrong.stdout
    begin = "GET_TILING_DATA(data, tiling);"
    changed(kernel / "naive.cpp", (begin, f"{begin} if (AscendC::GetBlockIdx() == 1) __builtin_trap();"))
    died = sessions.replay(asked, kernel)
    assert "crashed (ascendc:naive.toml" in died.stdout, died.stdout + died.stderr
    assert ": 1 of 48 blocks died [ERROR][AIV_1]" in died.stdout
