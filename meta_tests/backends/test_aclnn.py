"""The aclnn binding on the emulator: which libraries it finds, how it shares NPUs out, and what faults cost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from holding import holding
from poolproof.backends.aclnn.backend import DEVICE_VARIABLE
from poolproof.backends.aclnn.libraries import LIBRARY_VARIABLE, discover
from poolproof.backends.base import WORKER_VARIABLE, BackendUnavailable
from poolproof.backends.emulator import library
from poolproof.references.products import PRODUCTS
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.isolation.sandbox import Sandbox
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import USUAL
from poolproof.suites.plan.plans import Survey
from sessions import run_session

CLEAN = ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH", LIBRARY_VARIABLE)


def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str], backend: str = "aclnn"
) -> Survey:
    """What the backend says in a process of its own with that environment; `BackendUnavailable` passes through."""
    for name in CLEAN:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    sandbox = Sandbox(backend, tmp_path, "aclnn", timeout=20.0)
    try:
        return sandbox.start()
    finally:
        sandbox.close()


pytestmark = pytest.mark.usefixtures("forked_sandboxes")


# Libraries


def test_one_file_with_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(tmp_path, monkeypatch, {LIBRARY_VARIABLE: str(library())})
    assert found.environment["libraries"] == "libpoolproof_emulator.so"
    assert found.product == PRODUCTS["A2"]


@pytest.mark.parametrize(
    ("layout", "names"),
    [("split", "libascendcl.so, libnnopbase.so, libopapi_nn.so"), ("monolithic", "libascendcl.so, libopapi.so")],
)
@pytest.mark.parametrize("by", ["option", "installation"])
def test_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, names: str, by: str) -> None:
    root = library(layout)  # type: ignore[arg-type]
    environment = {LIBRARY_VARIABLE: str(root / "lib64")} if by == "option" else {"ASCEND_HOME_PATH": str(root)}
    assert run(tmp_path, monkeypatch, environment).environment["libraries"] == names


def test_what_the_user_names_wins_over_the_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"ASCEND_HOME_PATH": str(library("split")), LIBRARY_VARIABLE: str(library("monolithic") / "lib64")}
    found = run(tmp_path, monkeypatch, environment).environment["libraries"]
    assert found == "libascendcl.so, libopapi.so", "never two generations in one process"


def test_custom_operators_come_before_the_installation(tmp_path: Path) -> None:
    home, custom, opp = library("split"), tmp_path / "custom", tmp_path / "opp"
    for folder in (custom / "op_api" / "lib", *(opp / "vendors" / name / "op_api" / "lib" for name in ("a", "b"))):
        folder.mkdir(parents=True)
        (folder / "libcust_opapi.so").touch()
    (opp / "vendors" / "config.ini").write_text("load_priority=b,a\n")
    environment = {"ASCEND_HOME_PATH": str(home), "ASCEND_CUSTOM_OPP_PATH": str(custom), "ASCEND_OPP_PATH": str(opp)}
    found = [str(path) for path in discover(environment)]
    assert [path.rpartition("/")[2] for path in found[:2]] == ["libascendcl.so", "libnnopbase.so"]
    assert [path.removeprefix(str(tmp_path)).split("/op_api")[0] for path in found[2:5]] == [
        "/custom",
        "/opp/vendors/b",
        "/opp/vendors/a",
    ]
    assert found[5].endswith("libopapi_nn.so")


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ("libascendcl.so", "library libascendcl.so is missing"),
        ("libopapi_nn.so", "libraries libopapi_nn.so and libopapi.so are missing"),
    ],
)
def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_out: str, said: str) -> None:
    folder = tmp_path / "lib64"
    shutil.copytree(library("split") / "lib64", folder)
    (folder / left_out).unlink()
    with pytest.raises(BackendUnavailable, match=said):
        run(tmp_path, monkeypatch, {LIBRARY_VARIABLE: str(folder)})


def test_a_named_path_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendUnavailable, match="--aclnn-library /nowhere: there is no such file"):
        run(tmp_path, monkeypatch, {LIBRARY_VARIABLE: "/nowhere"})


def test_nothing_installed_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendUnavailable, match=r"set_env\.sh.*--aclnn-library"):
        run(tmp_path, monkeypatch, {})


def compiled(folder: Path, source: str) -> Path:
    """A shared library of a few lines of C."""
    path = folder / "libpart.so"
    (folder / "part.c").write_text(source)
    subprocess.run(["g++", "-shared", "-fPIC", "-o", path, "-xc", folder / "part.c"], check=True)
    return path


def test_a_missing_symbol_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = compiled(tmp_path, "int aclInit(const char* path) { return 0; }")
    with pytest.raises(BackendUnavailable, match=r"symbol \w+ is missing: none of .*libpart\.so exports it"):
        run(tmp_path, monkeypatch, {LIBRARY_VARIABLE: str(part)})


def test_a_stub_of_the_runtime_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = compiled(tmp_path, "int aclInit(const char* path) { return 100039; }")
    named = os.pathsep.join([str(stub), str(library())])
    with pytest.raises(BackendUnavailable, match="a compile-time stub of the runtime was loaded"):
        run(tmp_path, monkeypatch, {LIBRARY_VARIABLE: named})


# NPUs


@pytest.mark.parametrize(
    ("environment", "number"),
    [({}, "0"), ({WORKER_VARIABLE: "1"}, "1"), ({WORKER_VARIABLE: "5"}, "2"), ({DEVICE_VARIABLE: "2"}, "2")],
)
def test_workers_share_the_npus_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], number: str
) -> None:
    three = {"POOLPROOF_EMULATOR_DEVICES": "3", LIBRARY_VARIABLE: str(library())}
    assert run(tmp_path, monkeypatch, environment | three).environment["npu"] == number


@pytest.mark.parametrize(
    ("number", "said"), [("7", "there is no NPU 7 here"), ("first", "POOLPROOF_NPU must be the number of an NPU")]
)
def test_an_npu_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str, said: str) -> None:
    with pytest.raises(BackendUnavailable, match=said):
        run(tmp_path, monkeypatch, {DEVICE_VARIABLE: number, LIBRARY_VARIABLE: str(library())})


# Faults in phase two: one case each, everything else is judged


def questions(*shapes: tuple[int, ...]) -> list[CaseQuestion]:
    return [
        CaseQuestion(
            Case.of(operator="MaxPool2dWithIndicesBackward", shape=shape, kernel_size=(2, 2), index_dtype="int32"),
            holding(*USUAL),
        )
        for shape in shapes
    ]


def verdicts(tmp_path: Path, asked: list[CaseQuestion], timeout: float = 20.0) -> list[tuple[str, str]]:
    sandbox = Sandbox("emulator-a2", tmp_path, "faults", timeout)
    try:
        return [(row["verdict"], row["reason"]) for row in sandbox.judge(asked)]
    finally:
        sandbox.close()


def test_a_segmentation_fault_costs_one_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLPROOF_EMULATOR_DEFECTS", "crash_on_uneven_cores")
    one_plane_more_than_cores = (1, 49, 4, 4)
    found = verdicts(tmp_path, questions((1, 2, 4, 4), one_plane_more_than_cores, (1, 3, 4, 4)))
    assert [verdict for verdict, _ in found] == [Verdict.CONFORMS, Verdict.CRASHED, Verdict.CONFORMS]
    assert "signal SIGSEGV" in found[1][1]


def test_a_hang_costs_one_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLPROOF_EMULATOR_DEFECTS", "hang_on_idle_core")
    adds_in_a_scratch_area = Case.of(
        operator="MaxPool3dWithArgmaxBackward",
        dtype="float16",
        index_dtype="int32",
        shape=(1, 1, 4, 4),
        kernel_size=(1, 2, 2),
        stride=(1,),
        dilation=(2,),
    )
    before, after = questions((1, 2, 4, 4), (1, 3, 4, 4))
    found = verdicts(tmp_path, [before, CaseQuestion(adds_in_a_scratch_area, holding(*USUAL)), after], timeout=3.0)
    assert [verdict for verdict, _ in found] == [Verdict.CONFORMS, Verdict.TIMED_OUT, Verdict.CONFORMS]


@pytest.mark.parametrize(
    ("memory", "shape", "status"), [(200_000, (1, 1, 300, 300), "207001"), (100_000, (1, 1, 120, 120), "207018")]
)
def test_too_little_device_memory_is_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: int, shape: tuple[int, ...], status: str
) -> None:
    monkeypatch.setenv("POOLPROOF_EMULATOR_MEMORY", str(memory))
    found = verdicts(tmp_path, questions((1, 2, 4, 4), shape, (1, 3, 4, 4)))
    assert [verdict for verdict, _ in found] == [Verdict.CONFORMS, Verdict.NOT_RUN, Verdict.CONFORMS]
    assert status in found[1][1]


# A run


def test_a_run_names_its_library_by_an_option_and_records_what_it_ran_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in CLEAN:
        monkeypatch.delenv(name, raising=False)
    chosen = ["--operator", "MaxPool3dWithArgmaxBackward", "--dtype", "float32", "--aspect", "values", "--cases", "1"]
    named = ["--aclnn-library", str(library()), "-n", "2"]
    devices = {"POOLPROOF_EMULATOR_DEVICES": "2"}
    ended = run_session(tmp_path / "out", "aclnn", *named, asked=chosen, variables=devices)
    assert ended.status == 0, ended.output
    recorded = json.loads((ended.folder / "run.json").read_text())["backends"]["aclnn"]
    assert recorded["product"] == "A2"
    assert recorded["soc"] == "Ascend910B1"
    assert {"runtime", "driver", "acl"} & set(recorded), "versions of what was judged"
