"""Programs that make a failing call without this project, run as their readers would run them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from poolproof.backends.emulator import library
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.standalone import MOST_VALUES, program

BACKWARD, FORWARD = "MaxPool2dWithIndicesBackward", "MaxPool2dWithIndices"


def run_program(text: str, folder: Path, *arguments: str, **environment: str) -> str:
    path = folder / "call.py"
    path.write_text(text)
    command = [sys.executable, "-I", str(path), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


STRIDED = Case.of(
    operator="MaxPool3dWithArgmaxBackward",
    shape=(1, 1, 2, 2, 2),
    kernel_size=(1,),
    gradient="ones",
    layouts=(("grad_input", "sliced"), ("indices", "padded_rows+3")),
)
EXPANDED = Case.of(
    operator=BACKWARD,
    shape=(2, 3, 4, 5),
    dtype="bfloat16",
    kernel_size=(2,),
    gradient="special",
    deterministic=True,
    layouts=(("grad_output", "expanded"), ("self", "channels_last+17")),
)
ADAPTIVE = Case.of(operator="AdaptiveMaxPool2d", shape=(2, 3, 4), dtype="float64", output_size=(2, 3), values="nan")


def test_a_program_shows_what_torch_does_to_strides(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    output = run_program(program(STRIDED, "torch-cpu"), tmp_path)
    assert "grad_input: 4 of 8 elements differ from what is owed" in output
    assert "bytes of its storage that belong to no element were written" in output


@pytest.mark.parametrize("case", [EXPANDED, ADAPTIVE])
def test_a_program_finds_nothing_where_nothing_is_wrong(tmp_path: Path, case: Case) -> None:
    pytest.importorskip("torch")
    text = program(case, "torch-cpu")
    lines = run_program(text, tmp_path).splitlines()
    assert [line.partition(" of ")[0] for line in lines] == [f"{name}: 0" for name in case.api.outputs]
    assert "poolproof" not in text


THROUGH_ACLNN = {
    "strided, deterministic": ("A2", replace(STRIDED, index_dtype="int32", deterministic=True)),
    "half precision": ("950", replace(EXPANDED, index_dtype="int32")),
    "adaptive": ("A3", replace(ADAPTIVE, dtype="float32", index_dtype="int64")),
    "a mask": (
        "A2",
        Case.of(operator="MaxPool2dWithMaskBackward", index_dtype="int8", shape=(1, 2, 6, 8), kernel_size=(3,)),
    ),
    "a mask to be made": (
        "A2",
        Case.of(operator="MaxPool2dWithMask", index_dtype="int8", shape=(1, 2, 6, 8), kernel_size=(3,)),
    ),
    "channels last": (
        "950",
        Case.of(
            operator=BACKWARD,
            index_dtype="int32",
            shape=(2, 3, 6, 8),
            kernel_size=(2,),
            layouts=tuple((name, "nhwc") for name in ("grad_input", "grad_output", "indices", "self")),
        ),
    ),
    "an empty batch": ("A2", Case.of(operator=BACKWARD, index_dtype="int32", shape=(0, 3, 6, 8), kernel_size=(2,))),
}


@pytest.mark.parametrize("name", THROUGH_ACLNN)
def test_a_program_makes_the_call_through_aclnn(tmp_path: Path, name: str) -> None:
    product, case = THROUGH_ACLNN[name]
    text = program(case, "aclnn")
    output = run_program(text, tmp_path, str(library()), POOLPROOF_EMULATOR_PRODUCT=product)
    assert [line.partition(" of ")[0] for line in output.splitlines()] == [f"{name}: 0" for name in case.api.outputs]
    assert "poolproof" not in text
    assert "numpy" not in text


def test_a_program_shows_what_a_kernel_behind_aclnn_does(tmp_path: Path) -> None:
    case = Case.of(operator=BACKWARD, index_dtype="int32", shape=(1, 3, 4, 6), kernel_size=(2,))
    defect = {"POOLPROOF_EMULATOR_DEFECTS": "gradient_of_first_plane"}
    output = run_program(program(case, "emulator-a2"), tmp_path, str(library()), **defect)
    first, *rest = output.splitlines()
    assert first.startswith("grad_input: ") and not first.startswith("grad_input: 0 ")
    assert all(re.match(r"  grad_input\[0, [12], \d, \d\] is -?\d+.0, owed -?\d+.0", line) for line in rest)


def test_a_program_says_what_a_library_refused(tmp_path: Path) -> None:
    case = Case.of(
        operator="MaxPool2dWithIndices", index_dtype="int32", shape=(1, 1, 6, 8), kernel_size=(2,), dilation=(2,)
    )
    path = tmp_path / "call.py"
    path.write_text(program(case, "aclnn"))
    ended = subprocess.run([sys.executable, str(path), str(library())], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    assert "aclnnMaxPool2dWithIndicesGetWorkspaceSize returned 161002" in ended.stderr


def test_a_program_says_which_library_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "call.py"
    path.write_text(program(THROUGH_ACLNN["a mask"][1], "aclnn"))
    ended = subprocess.run([sys.executable, str(path), "libnone.so"], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    assert ended.stderr.startswith("libnone.so: cannot open shared object file")
    assert "set_env.sh" in ended.stderr


def test_replay_leaves_a_program_of_a_call_that_crashes(tmp_path: Path) -> None:
    environment = os.environ | {"POOLPROOF_EMULATOR_DEFECTS": "crash_on_uneven_cores"}
    line = Case.of(operator=BACKWARD, index_dtype="int32", shape=(1, 49, 6, 8), kernel_size=(2,)).to_json()
    replay = [sys.executable, "-c", "from poolproof.suites.cli import main; main()", "replay", line]
    options = ["--backend", "emulator-a2", "--evidence", "left"]
    judged = subprocess.run([*replay, *options], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert judged.returncode == 1, judged.stderr
    assert "this kind of failure leaves none" in judged.stdout
    (path,) = tmp_path.rglob("*.py")
    assert path.name in judged.stdout
    assert subprocess.run([sys.executable, str(path), str(library())], env=environment).returncode == -signal.SIGSEGV
    assert subprocess.run([sys.executable, str(path), str(library())]).returncode == 0


def test_there_is_no_program_for_other_backends_and_large_calls() -> None:
    assert program(STRIDED, "scatter_backends:honest") == ""
    one_cell = Case.of(operator="MaxPool2dWithMaskBackward", index_dtype="int8", shape=(1, 1, 4, 4), kernel_size=(1,))
    assert program(one_cell, "aclnn") == ""
    side = int(MOST_VALUES**0.5) + 1
    assert program(Case.of(operator=FORWARD, shape=(1, side, side), kernel_size=(2,)), "torch-cpu") == ""
