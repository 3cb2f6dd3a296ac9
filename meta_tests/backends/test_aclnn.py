"""The aclnn binding on the emulator: which libraries it finds, how it shares NPUs out, and what faults cost."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from holding import holding, judged_by
from poolproof.backends.aclnn.backend import DEVICE_VARIABLE
from poolproof.backends.aclnn.libraries import LIBRARY_VARIABLE, discover
from poolproof.backends.base import WORKER_VARIABLE, BackendUnavailable
from poolproof.backends.emulator import library
from poolproof.backends.emulator.defects import VARIABLE
from poolproof.references.products import PRODUCTS
from poolproof.reports.rows.evidence import program_lines
from poolproof.reports.rows.store import read_run
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import USUAL
from poolproof.suites.plan.plans import Survey
from poolproof.suites.run.sandbox import Sandbox
from sessions import replay_pasted, run_session

CLEAN = ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH", LIBRARY_VARIABLE)


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CLEAN:
        monkeypatch.delenv(name, raising=False)


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str]) -> Survey:
    """What the backend says in a process of its own with that environment; `BackendUnavailable` passes through."""
    with monkeypatch.context() as own, closing(Sandbox("aclnn", tmp_path, "aclnn", timeout=20.0)) as sandbox:
        for name, value in environment.items():
            own.setenv(name, value)
        return sandbox.start()


pytestmark = pytest.mark.usefixtures("forked_sandboxes")


def test_libraries_that_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file with everything, or a folder that the user names, or an installation: never two generations at once."""
    found = run(tmp_path, monkeypatch, {LIBRARY_VARIABLE: str(library())})
    assert (found.environment["libraries"], found.product) == ("libpoolproof_emulator.so", PRODUCTS["A2"])
    assert found.environment["soc"] == "Ascend910B1"
    assert {"runtime", "driver", "acl"} & found.environment.keys(), "versions of what is judged"
    split, monolithic = library("split"), library("monolithic")
    pieces, whole = "libascendcl.so, libnnopbase.so, libopapi_nn.so", "libascendcl.so, libopapi.so"
    for environment, names in (
        ({"ASCEND_HOME_PATH": str(split)}, pieces),
        ({"ASCEND_HOME_PATH": str(monolithic)}, whole),
        ({LIBRARY_VARIABLE: str(split / "lib64")}, pieces),
        ({LIBRARY_VARIABLE: str(monolithic / "lib64"), "ASCEND_HOME_PATH": str(split)}, whole),
    ):
        assert run(tmp_path, monkeypatch, environment).environment["libraries"] == names, environment


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


def without(folder: Path, left_out: str) -> Path:
    """The folder of an installation that lacks a library."""
    shutil.copytree(library("split") / "lib64", folder / "lib64")
    (folder / "lib64" / left_out).unlink()
    return folder / "lib64"


def compiled(folder: Path, source: str) -> Path:
    """A shared library of a few lines of C."""
    path = folder / "libpart.so"
    (folder / "part.c").write_text(source)
    subprocess.run(["g++", "-shared", "-fPIC", "-o", path, "-xc", folder / "part.c"], check=True)
    return path


def stub(folder: Path) -> str:
    return os.pathsep.join([str(compiled(folder, "int aclInit(const char* p) { return 100039; }")), str(library())])


UNAVAILABLE: dict[str, tuple[Callable[[Path], dict[str, object]], str]] = {
    "no runtime": (
        lambda folder: {LIBRARY_VARIABLE: without(folder, "libascendcl.so")},
        "library libascendcl.so is missing",
    ),
    "no operators": (
        lambda folder: {LIBRARY_VARIABLE: without(folder, "libopapi_nn.so")},
        "libraries libopapi_nn.so and libopapi.so are missing",
    ),
    "no symbol": (
        lambda folder: {LIBRARY_VARIABLE: compiled(folder, "int aclInit(const char* p) { return 0; }")},
        r"symbol \w+ is missing: none of .*libpart\.so exports it",
    ),
    "a stub": (lambda folder: {LIBRARY_VARIABLE: stub(folder)}, "a compile-time stub of the runtime was loaded"),
    "no file": (lambda folder: {LIBRARY_VARIABLE: "/nowhere"}, "--aclnn-library /nowhere: there is no such file"),
    "nothing installed": (lambda folder: {}, r"set_env\.sh.*--aclnn-library"),
    "no such NPU": (lambda folder: {DEVICE_VARIABLE: "7", LIBRARY_VARIABLE: library()}, "there is no NPU 7 here"),
    "no number": (
        lambda folder: {DEVICE_VARIABLE: "first", LIBRARY_VARIABLE: library()},
        "POOLPROOF_NPU must be the number of an NPU",
    ),
}


@pytest.mark.parametrize(("made", "said"), UNAVAILABLE.values(), ids=UNAVAILABLE)
def test_what_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[Path], dict[str, object]], said: str
) -> None:
    environment = {name: str(value) for name, value in made(tmp_path).items()}
    with pytest.raises(BackendUnavailable, match=said):
        run(tmp_path, monkeypatch, environment)


@pytest.mark.parametrize(
    ("environment", "number"),
    [({}, "0"), ({WORKER_VARIABLE: "1"}, "1"), ({WORKER_VARIABLE: "5"}, "2"), ({DEVICE_VARIABLE: "2"}, "2")],
)
def test_workers_share_the_npus_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], number: str
) -> None:
    three = {"POOLPROOF_EMULATOR_DEVICES": "3", LIBRARY_VARIABLE: str(library())}
    assert run(tmp_path, monkeypatch, environment | three).environment["npu"] == number


def asked(shape: tuple[int, ...]) -> Case:
    return Case.of("MaxPool2dWithIndicesBackward", shape=shape, kernel_size=(2, 2), index_dtype="int32")


HALF = {"dtype": "float16", "index_dtype": "int32", "shape": (1, 1, 4, 4)}
ADDS_IN_SCRATCH = Case.of("MaxPool3dWithArgmaxBackward", **HALF, kernel_size=(1, 2, 2), stride=(1,), dilation=(2,))
ONE_PLANE_MORE_THAN_CORES = asked((1, 49, 4, 4))


@pytest.mark.parametrize(
    ("variable", "value", "case", "verdict", "said"),
    [
        ("DEFECTS", "crash_on_uneven_cores", ONE_PLANE_MORE_THAN_CORES, Verdict.CRASHED, "signal SIGSEGV"),
        ("DEFECTS", "hang_on_idle_core", ADDS_IN_SCRATCH, Verdict.TIMED_OUT, ""),
        ("MEMORY", "200000", asked((1, 1, 300, 300)), Verdict.NOT_RUN, "207001"),
        ("MEMORY", "100000", asked((1, 1, 120, 120)), Verdict.NOT_RUN, "207018"),
    ],
)
def test_a_fault_in_phase_two_costs_one_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, case: Case, verdict: str, said: str
) -> None:
    monkeypatch.setenv(f"POOLPROOF_EMULATOR_{variable}", value)
    cases = asked((1, 2, 4, 4)), case, asked((1, 3, 4, 4))
    timeout = 3.0 if verdict == Verdict.TIMED_OUT else 20.0
    rows = judged_by("emulator-a2", [CaseQuestion(each, holding(*USUAL)) for each in cases], tmp_path, timeout)
    assert [row["verdict"] for row in rows] == [Verdict.CONFORMS, verdict, Verdict.CONFORMS]
    assert said in rows[1]["reason"]


def test_a_call_that_is_refused_has_no_route(tmp_path: Path) -> None:
    """That of a call before it would depend on who judged what."""
    refused = Case.from_json(
        '{"operator":"MaxPool3dWithArgmax","shape":[1,5,5,7,1],"dtype":"bfloat16","index_dtype":"int32",'
        '"kernel_size":[7,7,1],"stride":[9,6,6],"padding":[3,2,0],"dilation":[3,1,1],"ceil_mode":true}'
    )
    questions = [CaseQuestion(each, holding(*USUAL)) for each in (asked((1, 2, 4, 4)), refused)]
    taken, row = judged_by("emulator-a2", questions, tmp_path)
    assert taken["route"] and row["verdict"] == Verdict.REFUSED and not row["route"]


def test_a_failing_call_has_the_libraries_of_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = ["--operator", "MaxPool3dWithArgmaxBackward", "--dtype", "float32", "--aspect", "values", "--cases", "3"]
    named = ["--aclnn-library", str(library()), "--no-shrink", "--diagnose", "0"]
    wrong = {VARIABLE: "assign_not_accumulate", "POOLPROOF_EMULATOR_DEVICES": "2"}
    run = run_session(tmp_path / "out", "aclnn", *named, "-n", "1", asked=chosen, variables=wrong).folder
    recorded = read_run(run)["backends"]["aclnn"]
    assert (recorded["product"], recorded["soc"]) == ("A2", "Ascend910B1")
    assert {"runtime", "driver", "acl"} & recorded.keys(), "versions of what was judged"
    left = next((run / "evidence").glob("*.npz"))
    call, _ = program_lines(run, left.stem.rpartition("-")[2], "aclnn")
    ended = replay_pasted(call, run)
    assert ended.returncode == 1 and "not admissible" in ended.stdout, ended.stdout + ended.stderr
