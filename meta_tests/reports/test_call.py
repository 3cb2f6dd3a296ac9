"""The program that makes a failing call without this project, run as its readers would run it."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forked
from forked import fork
from poolproof.backends.emulator import library
from poolproof.backends.registry import create
from poolproof.reports.rows.evidence import call_lines, evidence_path, read_evidence
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.trial import Trial
from reports_made_up import write_lost_gradient
from sessions import replay_pasted

BACKWARD, FORWARD = "MaxPool2dWithIndicesBackward", "MaxPool2dWithIndices"


def evidence_of(case: Case, backend: str, folder: Path, made_by: str = "") -> Path:
    """The evidence that a run in ``folder`` would have of a case, as if it had deviated.

    Made by the backend ``made_by``, or ``backend``: an emulator is loaded by a process of its own, never by this one.
    """
    maker = made_by or backend

    def leave() -> int:
        EvidenceFolder(folder, backend).put(Trial(case, create(maker)), ())
        return 0

    status = leave() if maker.startswith("torch") else os.waitpid(fork(leave), 0)[1]
    assert status == 0
    return evidence_path(folder, case.id, backend)


def call(evidence: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program beside the evidence in a child that has torch, and can import no module of this project."""
    command = [str(evidence.with_name("call.py")), str(evidence), *arguments]
    variables = os.environ | {"PYTHONPATH": str(evidence.parent)} | environment
    return forked.run(forked.Command("without the project", command, evidence.parent, variables, seconds=120.0))


SLICED = (("grad_input", "sliced"), ("indices", "padded_rows+3"))
WIDE = (("grad_output", "expanded_n"), ("self", "channels_last+17"))
STRIDED = Case.of(
    "MaxPool3dWithArgmaxBackward", shape=(1, 1, 2, 2, 2), kernel_size=(1,), gradient="ones", layouts=SLICED
)
EXPANDED = Case.of(
    BACKWARD,
    shape=(2, 3, 4, 5),
    dtype="bfloat16",
    kernel_size=(2,),
    gradient="special",
    deterministic=True,
    layouts=WIDE,
)
ADAPTIVE = Case.of("AdaptiveMaxPool2d", shape=(2, 3, 4), dtype="float64", output_size=(2, 3), values="nan")


def test_it_reads_a_result_through_the_tensor_that_torch_gave_other_strides(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    ended = call(evidence_of(STRIDED, "torch-cpu", tmp_path))
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout.splitlines()[1:] == [
        "0 of 8 elements are not admissible",
        "grad_input came back with strides [8, 8, 4, 2, 1], and was handed in with [16, 16, 8, 4, 2]",
        "16 bytes of grad_input that the call may not write were written",
    ]
    sliced = {"gradient": "ones", "layouts": (("grad_input", "sliced"),)}
    case = Case.of("AdaptiveMaxPool3dBackward", shape=(1, 1, 2, 2, 2), output_size=(2, 2, 2), **sliced)
    ended = call(evidence_of(case, "torch-cpu", tmp_path))
    assert ended.returncode == 1, ended.stderr
    assert "4 of 8 elements are not admissible\n" in ended.stdout
    assert "[0, 0, 1, 0, 0]: got 0, expected 1\n" in ended.stdout
    assert "strides" not in ended.stdout


MASKED = Case.of("MaxPool2dWithMask", index_dtype="int8", shape=(1, 2, 6, 8), kernel_size=(3,))
PLAIN = Case.of(BACKWARD, index_dtype="int32", shape=(2, 3, 6, 8), kernel_size=(2,))
NHWC = tuple((name, "nhwc") for name in ("grad_input", "grad_output", "indices", "self"))
RIGHT = {
    "strided, deterministic": ("A2", replace(STRIDED, index_dtype="int32", deterministic=True)),
    "half precision": ("950", replace(EXPANDED, index_dtype="int32")),
    "adaptive": ("A3", replace(ADAPTIVE, dtype="float32", index_dtype="int64")),
    "a mask": ("A2", replace(MASKED, operator="MaxPool2dWithMaskBackward")),
    "a mask to be made": ("A2", MASKED),
    "channels last": ("950", replace(PLAIN, layouts=NHWC)),
    "an empty batch": ("A2", replace(PLAIN, shape=(0, 3, 6, 8))),
    "half precision, torch": ("", EXPANDED),
    "an empty batch, torch": ("", replace(EXPANDED, shape=(0, 3, 4, 5), layouts=())),
    "adaptive, torch": ("", ADAPTIVE),
}


@pytest.mark.parametrize("plain", [(), ("--plain",)], ids=["guarded", "plain"])
@pytest.mark.parametrize(("product", "case"), RIGHT.values(), ids=RIGHT)
def test_it_finds_nothing_where_nothing_is_wrong(
    tmp_path: Path, product: str, case: Case, plain: tuple[str, ...]
) -> None:
    if product:
        evidence = evidence_of(case, "aclnn", tmp_path, f"emulator-{product.lower()}")
        ended = call(evidence, "--library", str(library()), *plain, POOLPROOF_EMULATOR_PRODUCT=product)
    else:
        pytest.importorskip("torch")
        ended = call(evidence_of(case, "torch-cpu", tmp_path), *plain)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[1].startswith("0 of ")


def test_it_makes_the_call_of_one_implementation_with_another(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    case = replace(PLAIN, index_dtype="int64")
    assert call(evidence_of(case, "emulator-950", tmp_path), "--torch", "cpu").returncode == 0
    ended = call(evidence_of(case, "their.module:Backend", tmp_path, "torch-cpu"))
    assert ended.returncode == 1
    assert ended.stderr.startswith("backend 'their.module:Backend' made the call: name another, by --torch DEVICE")
    for backend, status in (("torch:cpu", 0), ("torch-autograd", 1)):
        ended = call(evidence_of(case, backend, tmp_path, "torch-cpu"))
        assert (ended.returncode, "Traceback" in ended.stderr) == (status, False), ended.stderr
    ended = call(evidence_of(case, "torch-cpu", tmp_path), "--torch", "nowhere")
    assert ended.stderr.startswith("torch finds no device nowhere here: ")


@pytest.mark.parametrize("program", ["call.py", "rejudge.py"])
def test_a_file_that_is_no_evidence_is_said_to_be_none(tmp_path: Path, program: str) -> None:
    own = evidence_of(PLAIN, "torch-cpu", tmp_path)
    (tmp_path / "text.npz").write_text("text")
    np.savez(tmp_path / "other.npz", got=np.zeros(1))
    for name in ("text.npz", "other.npz", "none.npz"):
        ended = subprocess.run(
            [sys.executable, own.with_name(program), tmp_path / name], capture_output=True, text=True
        )
        assert (ended.returncode, ended.stderr.count("\n")) == (3, 1), ended.stderr
        assert f"{name} is no file of evidence: " in ended.stderr


def test_a_call_is_offered_where_it_is_made_as_the_backend_makes_it() -> None:
    offered = ("aclnn", "emulator-a2", "torch-cpu", "torch-npu", "torch:xpu")
    for backend in (*offered, "torch-autograd", "torch-mkldnn", "ascendc:naive.toml", "paddle", "aclnn_of:Mine"):
        row: dict[str, Any] = {"backend": backend, "product": "A2", "verdict": "violates"}
        assert bool(call_lines("call.py", "case.npz", row, ())) == (backend in offered)


def test_it_shows_what_a_kernel_behind_aclnn_does(tmp_path: Path) -> None:
    evidence = evidence_of(replace(PLAIN, shape=(1, 3, 4, 6)), "emulator-a2", tmp_path)
    defect = {"POOLPROOF_EMULATOR_DEFECTS": "gradient_of_first_plane"}
    ended = call(evidence, "--library", str(library()), **defect)
    assert ended.returncode == 1
    what, count, *rest = ended.stdout.splitlines()
    assert what.startswith(f'{BACKWARD}: ["grad_output", "self", "indices", [2], ')
    assert re.fullmatch(r"[1-9]\d* of 72 elements are not admissible", count)
    assert all(re.match(r"  \[0, [12], \d, \d\]: got -?\d+, expected -?\d+", line) for line in rest)


@pytest.mark.parametrize(
    "case", [replace(PLAIN, shape=(1, 1, 3, 3)), replace(MASKED, shape=(1, 1, 3, 3))], ids=["a gradient", "a mask"]
)
def test_it_sees_what_a_kernel_writes_past_a_tensor(tmp_path: Path, case: Case) -> None:
    evidence = evidence_of(case, "emulator-a2", tmp_path)
    for defect, status in (("", 0), ("write_past_output", 1)):
        ended = call(evidence, "--library", str(library()), POOLPROOF_EMULATOR_DEFECTS=defect)
        assert ended.returncode == status, ended.stdout
        assert ("of them beyond its storage" in ended.stdout) == bool(status)


def test_it_says_why_no_call_was_made(tmp_path: Path) -> None:
    dilated = Case.of(FORWARD, index_dtype="int32", shape=(1, 1, 6, 8), kernel_size=(2,), dilation=(2,))
    ended = call(evidence_of(dilated, "emulator-a2", tmp_path), "--library", str(library()))
    assert ended.returncode == 1
    assert "aclnnMaxPool2dWithIndicesGetWorkspaceSize returned 161002" in ended.stdout
    ended = call(evidence_of(MASKED, "emulator-a2", tmp_path), "--library", "libnone.so")
    assert ended.returncode == 1
    assert ended.stderr.startswith("libnone.so: cannot open shared object file")
    assert "set_env.sh" in ended.stderr
    ended = call(write_lost_gradient(tmp_path, "0" * 12, "torch-cpu"))
    assert ended.returncode == 1
    assert ended.stderr.startswith("the file holds no call: let `poolproof replay --evidence` make it anew")


def test_replay_leaves_the_call_of_a_crash(tmp_path: Path) -> None:
    environment = os.environ | {"POOLPROOF_EMULATOR_DEFECTS": "crash_on_uneven_cores"}
    case = replace(PLAIN, shape=(1, 49, 6, 8))
    replay = ["replay", case.to_json(), "--backend", "emulator-a2", "--evidence", "left"]
    judged = forked.run(forked.Command("poolproof", replay, tmp_path, environment))
    assert judged.returncode == 1, judged.stderr
    evidence = evidence_path(tmp_path / "left", case.id, "emulator-a2")
    (line,) = re.findall(r"the call, without poolproof: (.*)", judged.stdout)
    assert "crash_on_uneven_cores " in line and f" python left/evidence/call.py left/evidence/{evidence.name} " in line
    assert replay_pasted(line, tmp_path).returncode == -signal.SIGSEGV
    assert read_evidence(evidence).rejected.all()
    died = call(evidence, "--library", str(library()), POOLPROOF_EMULATOR_DEFECTS="crash_on_uneven_cores")
    assert died.returncode == -signal.SIGSEGV
    assert call(evidence, "--library", str(library())).returncode == 0
