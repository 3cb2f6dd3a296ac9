"""Bad inputs: each ends in a short sentence that names it, with its exit status, and changes and accuses nothing."""

import importlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import forked
from places import GOLDEN
from poolproof.references.contract.call import ContractError
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import FAILED
from poolproof.suites.cases.case import CaseError
from poolproof.suites.isolation import supervision
from poolproof.suites.plan.lines import parse_line
from sessions import poolproof, surroundings
from shared_runs import made_once

HONEST = "scatter_backends:honest"


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """Undo what options set in this process: where libraries and kernels are."""
    with patch.dict(os.environ):
        yield


HARMFUL = "libharmful.so"
"""A library without symbols whose constructor does what the variable HARMFUL says."""

CASE = '{"operator":"MaxPool2dWithIndicesBackward","shape":[1,4,4],"kernel_size":[2]}'
SUBJECT = f"--backend {HONEST} --operator MaxPool2dWithIndicesBackward --dtype float16"
SMALL = f"{SUBJECT} --aspect values --cases 2"

STANDS_FOR = {
    "CASE": shlex.quote(CASE),
    "LONG": "x" * 300,
    "EXPORT": f"export {SMALL} --format json",
    "COVERAGE": f"coverage {SMALL}",
    "WHY": "--reason known --owner us --expires 2026-12-29",
    "SESSION": f"run -q -p no:cacheprovider --no-search --diagnose=0 --no-shrink --ci=none {SMALL}",
}
"""Words of the tables, and what they are short for. ``ID`` is a case that the run violates."""

COMMANDS = r"""
judge                                            | No such command 'judge'
history drop                                     | No such command 'drop'
show --no-such-option                            | No such option '--no-such-option'
replay nowhere 012345                            | nowhere is no run
replay 1 2 3                                     | replay takes one case, or a run and a case id
replay CASE --timeout                            | Option '--timeout' requires an argument
score --resume=yes                               | Option '--resume' does not take a value
package run                                      | Missing option
list --backend abacus                            | unknown backend 'abacus'; known are aclnn, emulator-310b,
list --plan smokey                               | unknown plan 'smokey' (did you mean smoke?); known are
list --model torch                               | '--model': 'torch' is not 'cann'
list --sources missing                           | '--sources': 'missing' is no folder
list --sources a-device                          | '--sources': 'a-device' is no folder
replay CASE --backend os:path                    | os:path raised TypeError: 'module' object is not callable
replay CASE --timeout 0                          | '--timeout': 0.0 is not in the range 0<x<=86400.0
replay CASE --timeout nan                        | '--timeout': a number is needed, not nan
replay CASE --timeout 1e400                      | '--timeout': inf is not in the range 0<x<=86400.0
replay CASE --repeat 0                           | '--repeat': 0 is not in the range x>=1
replay CASE --repeat 1.5                         | '--repeat': '1.5' is not a valid integer range
replay CASE --evidence a-file/out                | Not a directory: a-file/out
replay CASE --evidence a-loop                    | File exists: a-loop
replay CASE --evidence LONG                      | File name too long: xxx
probe --operator MaxPool9d                       | '--operator': unknown operator 'MaxPool9d' (did you mean MaxPool
probe --operator ''                              | '--operator': unknown operator ''; known are
probe --memory-format nonsense                   | unknown memory-format 'nonsense'; known are contiguous, channels
EXPORT -o x --format nonsense                    | unknown format 'nonsense': choose from atk, json
EXPORT -o x --aspect nonsense                    | unknown aspect 'nonsense'; known are determinism, empty_window
EXPORT -o x --cases x                            | '--cases': 'x' is not a valid integer
EXPORT -o x --cases 0                            | --cases 0: a plan needs 1 to 100,000 cases per operator
EXPORT -o x --seed 1.5                           | '--seed': '1.5' is not a valid integer
EXPORT -o a-folder                               | a-folder is there and is no regular file: name another file to write
EXPORT -o a-device                               | a-device is there and is no regular file
EXPORT -o a-pipe                                 | a-pipe is there and is no regular file
EXPORT -o a-loop                                 | a-loop is there and is no regular file
EXPORT -o a-file/out                             | cannot write a-file/out: File exists
EXPORT -o LONG                                   | cannot write xxx
coverage missing                                 | case list missing: No such file or directory
coverage a-file                                  | case list a-file is none of the formats that poolproof reads
coverage a-loop                                  | case list a-loop: Too many levels of symbolic links
coverage a-folder                                | a-folder is no run: it has no run.json
coverage a-pipe                                  | case list a-pipe
COVERAGE --missing -1                            | '--missing': -1 is not in the range x>=0
COVERAGE --missing x                             | '--missing': 'x' is not a valid integer range
COVERAGE --complete a-folder                     | a-folder is there and is no regular file
EXPORT -o x --case-list ''                       | '--case-list': a path is needed, not an empty text
show missing                                     | missing
show a-file                                      | a-file
show a-folder                                    | a-folder is no run: it has no run.json
show a-device                                    | a-device
show a-loop                                      | a-loop
show a-pipe                                      | a-pipe
show LONG                                        | xxx
show ''                                          | a path is needed, not an empty text
show 'a\nb\nc\nd\ne\nf'                          | lines of text
waive run '*' WHY                                | run has no case *
waive run 000000000000 WHY                       | 000000000000
waive run ID WHY --expires soon                  | '--expires': 'soon'
waive run ID WHY --expires 2027-13-01            | '--expires': '2027-13-01'
waive run ID WHY --expires 2999-01-01            | 2999-01-01
waive run ID WHY --expires 2001-01-01            | 2001-01-01
waive run ID WHY --reason ' '                    | reason
waive run ID WHY --owner ''                      | owner
waive run ID WHY --scope beauty                  | beauty
waive run ID WHY --scope checks_violated         | checks_violated
waive run ID WHY --backend abacus                | does not fail: it is violates on scatter_backends:lost
waive run ID WHY -o a-folder                     | a-folder
waive run ID WHY -o a-file                       | a-file
waive run ID WHY -o a-pipe                       | a-pipe
waive run ID WHY -o a-device                     | a-device
waive a-pipe ID WHY                              | a-pipe
package a-pipe -o new.zip                        | a-pipe
package missing -o new.zip                       | missing
package run -o a-folder                          | a-folder
package run -o a-device                          | a-device
package run -o a-file/out                        | a-file/out
package run -o new.zip --sign missing            | missing
package run -o new.zip --sign a-folder           | a-folder
verify missing                                   | missing
verify a-file                                    | a-file
verify a-folder                                  | a-folder
verify a-loop                                    | a-loop
verify bundle.zip --require nonsense             | nonsense
verify bundle.zip --require plan=                | plan
verify bundle.zip --require conforms-in          | conforms-in
verify bundle.zip --fingerprint 00               | fingerprint
verify bundle.zip --signer a-device              | attestation
verify bundle.zip --waivers missing              | missing
verify bundle.zip --waivers LONG                 | xxx
merge missing -o whole                           | missing
merge a-pipe -o whole                            | a-pipe
merge run -o a-file                              | a-file
merge run -o a-file/out                          | a-file/out
compare run a-file                               | a-file
compare missing run                              | missing
compare run run --markdown a-folder              | a-folder
compare run run --markdown a-file/out            | a-file/out
history add a-file run                           | a-file
history add a-loop run                           | a-loop
history add '' run                               | a path is needed, not an empty text
history add history missing                      | missing
history list a-device                            | a-device
history list missing                             | missing
history query history SELEC                      | SELEC
history query history ''                         | there is no SQL in an empty text
history query history 'SELECT * FROM nowhere'    | nowhere
history query history 'SELECT runs.beauty FROM runs' | beauty
history query history "COPY runs TO 'a-file/x'"  | file system operations are disabled
history query history 'SELECT ~99.5'             | No function
history query history 'SELECT 1' --timeout 0     | '--timeout': 0.0 is not in the range
dashboard a-device -o site                       | a-device
dashboard history -o a-loop                      | a-loop
dashboard history -o a-file                      | a-file
rerun missing --sample 1                         | missing
rerun a-file --sample 1                          | a-file
rerun bundle.zip --sample x                      | '--sample': 'x' is not a valid integer range
rerun bundle.zip --sample 0                      | '--sample': 0 is not in the range x>=1
rerun bundle.zip --sample 1 --timeout 0          | '--timeout': 0.0 is not in the range
rerun bundle.zip --sample 1 --sources missing    | '--sources': 'missing' is no folder
rerun bundle.zip --sample 1 --backend os:path    | os:path
score --cases 0                                  | --cases 0: a plan needs 1 to 100,000 cases per operator
score --defect no-such-defect                    | no-such-defect
score --defect ''                                | defect
score -n -1                                      | '-n': -1 is not in the range
score -n 9999999                                 | '-n': 9999999 is not in the range
score --fail-under 101                           | '--fail-under': 101.0 is not in the range
score --fail-under nan                           | '--fail-under': a number is needed, not nan
score --shrink nan                               | '--shrink': a number is needed, not nan
score --product A9                               | there is no product 'A9'; there are A2, A3, 950
score --timeout -1                               | '--timeout': -1.0 is not in the range
score --report a-loop                            | a-loop
score --report a-file                            | a-file
score --resume                                   | nothing to resume
"""

SESSIONS = r"""
3 | SESSION --backend=                             | unknown backend ''
3 | SESSION --backend=nowhere:Backend              | nowhere
3 | SESSION --cases=1000000000000                  | --cases
3 | SESSION --shard=3/2                            | --shard
3 | SESSION --ray=                                 | --ray
3 | SESSION --ray-workers=0                        | --ray-workers
3 | SESSION --report=a-file                        | a-file
3 | SESSION --report=run                           | run
3 | SESSION --report=run --resume --seed=1         | run holds another run: selection cases is 6 there, and 2 now
3 | SESSION --resume                               | nothing to resume
3 | SESSION --case={                               | this is not JSON
3 | SESSION --case-list=a-file                     | a-file is none of the formats that poolproof reads
3 | SESSION --operator=MaxPool2dWithMsk            | 'MaxPool2dWithMsk' (did you mean MaxPool2dWithMask?); known
3 | SESSION --waivers=a-file                       | a-file
3 | SESSION --case-timeout=nan                     | --case-timeout
3 | SESSION --diagnose=-1                          | --diagnose
3 | SESSION --budget=10                            | --budget
3 | SESSION --memory-budget=-1GiB                  | --memory-budget
3 | SESSION -n 9999999                             | -n 9999999
4 | SESSION --plan=nonsense                        | poolproof: unknown plan 'nonsense'; known are
4 | SESSION --seed=x                               | --seed
4 | SESSION --report=                              | --report
4 | SESSION --dtype=float8                         | poolproof: unknown dtype 'float8' (did you mean float64?)
4 | SESSION --aspect=value                         | poolproof: unknown aspect 'value' (did you mean values?); known are
4 | SESSION --model=torch                          | poolproof: unknown model 'torch'; known are cann
4 | SESSION --sources=missing                      | missing
4 | SESSION --ci=jenkins                           | jenkins
4 | SESSION --resume=yes                           | --resume
4 | SESSION --minutes                              | --minutes
0 | SESSION --ray-resource=                        | CONFORMS
"""
"""What pytest's parser refuses ends with 4, what we refuse with 3."""


def rows(table: str) -> list[tuple[str, ...]]:
    return [tuple(cell.strip() for cell in line.split(" | ")) for line in table.strip().splitlines()]


def make(made: Path) -> None:
    """A run that violates, its bundle, and a history of it."""
    asked = f"{SMALL} --backend scatter_backends:lost --cases 6 --no-shrink --diagnose 0 --ci none --report run"
    forked.run(command("run", "-q", "-p", "no:cacheprovider", *asked.split()[2:], here=made))
    for words in ("package run -o bundle.zip", "history add history run"):
        forked.run(command(*words.split(), here=made))
    subprocess.run(["c++", "-x", "c++", "-shared", "-fPIC", "-o", HARMFUL, GOLDEN / "harmful.c"], cwd=made, check=True)


def command(*words: str, here: Path) -> forked.Command:
    return forked.Command("poolproof", words, here, surroundings(), 60.0)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "bad-inputs", make)


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what was made, in which the command is run."""
    monkeypatch.chdir(shutil.copytree(made, tmp_path / "here"))
    return Path.cwd()


@pytest.fixture
def here(folder: Path) -> Iterator[Path]:
    """The same with things that are no run. All of it is there afterwards as before."""
    (folder / "a-file").write_text("years of work")
    (folder / "a-folder").mkdir()
    (folder / "a-loop").symlink_to("a-loop")
    (folder / "a-device").symlink_to(os.devnull)
    os.mkfifo(folder / "a-pipe")
    before = contents(folder)
    yield folder
    now = contents(folder)
    assert {name: now.get(name) for name in before} == before
    assert Path(os.devnull).is_char_device()


def contents(folder: Path) -> dict[str, bytes | str]:
    found: dict[str, bytes | str] = {}
    for path in folder.rglob("*"):
        is_link, is_file = path.is_symlink(), path.is_file()
        found[str(path)] = str(path.readlink()) if is_link else path.read_bytes() if is_file else str(path.is_fifo())
    return found


def words(line: str, here: Path) -> list[str]:
    for name, meant in STANDS_FOR.items():
        line = line.replace(name, meant)
    case = next((here / "run" / "evidence").glob("*.npz")).stem.rpartition("-")[2]
    return [word.replace("\\n", "\n") for word in shlex.split(line.replace("ID", case))]


def hold(output: str, said: str, most_lines: int = 6) -> None:
    """Hold what a command printed to being short, and to saying that."""
    assert said in output
    assert "Traceback" not in output and "INTERNALERROR" not in output
    assert len([line for line in output.splitlines() if line.strip()]) <= most_lines
    assert len(output) < 2000 * most_lines


def refused(said: str, *given: str) -> None:
    """Hold a command to ending with status 3, and to saying that."""
    ended = poolproof(*given)
    assert ended.exit_code == 3, ended.output
    hold(ended.output, said)


@pytest.mark.parametrize(("line", "said"), rows(COMMANDS))
def test_a_command_refuses_what_is_wrong(line: str, said: str, here: Path) -> None:
    refused(said, *words(line, here))


@pytest.mark.parametrize(("status", "line", "said"), rows(SESSIONS))
def test_a_session_refuses_what_is_wrong(status: str, line: str, said: str, here: Path) -> None:
    before = {*here.iterdir()}
    ended = forked.run(command(*words(line, here), here=here))
    hold(ended.stdout + ended.stderr, said, 200 if status == "0" else 14)
    assert ended.returncode == int(status)
    for folder in {*here.iterdir()} - before:
        assert not (folder / "rows").exists() or not accused(folder)


def accused(run: Path) -> set[str]:
    return {*read_rows(run, ["verdict"])["verdict"].to_pylist()} & {*FAILED}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("list --backend os:path", "os:path raised TypeError"),
        ("show missing", "missing"),
        ("replay {", "this is not JSON"),
        ("SESSION --cases=0", "--cases"),
    ],
)
def test_a_process_of_its_own_ends_so(line: str, said: str, here: Path) -> None:
    program = [sys.executable, "-c", "from poolproof.suites.cli import main; main()", *words(line, here)]
    ended = subprocess.run(program, env=surroundings(), capture_output=True, text=True, timeout=120)
    assert ended.returncode == 3
    hold(ended.stdout + ended.stderr, said)


WINDOWED: dict[str, Any] = {
    "operator": "MaxPool2dWithIndicesBackward",
    "shape": [1, 1, 4, 4],
    "dtype": "float16",
    "index_dtype": "int64",
    "kernel_size": [2, 2],
    "stride": [2],
    "padding": [0],
    "dilation": [1],
    "ceil_mode": False,
    "gradient": "integers",
    "indices": "forward",
    "scale": 0,
    "layouts": {"grad_output": "sliced"},
    "deterministic": False,
    "seed": 3,
}
ADAPTIVE = {"operator": "AdaptiveMaxPool3d", "shape": [1, 1, 2, 2, 2], "output_size": [1, 1, 1], "values": "ties"}
TENSOR = {"shape": [1, 1, 2, 2], "dtype": "FLOAT", "format": "NCHW", "strides": [4, 4, 2, 1], "offset": 0}
CALL: dict[str, Any] = {
    "api": "aclnnMaxPool2dWithIndicesBackward",
    "tensors": dict.fromkeys(("gradOutput", "self", "indices", "gradInput"), TENSOR),
    "lists": {name: [2, 2] for name in ("kernelSize", "stride", "padding", "dilation")},
    "ceilMode": False,
    "null_outputs": {"workspaceSize": False, "executor": False},
}
WAY = {"way": "null_workspace", "case": WINDOWED}
DEEP = 20_000


def windowed(**changes: object) -> str:
    return json.dumps(WINDOWED | changes)


LINES = {
    "": "Expecting value",
    "  \t ": "Expecting value",
    "MaxPool2dWithIndicesBackward": "Expecting value",
    "17": "not int",
    "null": "not NoneType",
    "[]": "not list",
    "NaN": "not float",
    "-Infinity": "not float",
    "{}": "a case needs the field 'operator'",
    windowed() * 2: "Extra data",
    str(WINDOWED): "Expecting property name enclosed in double quotes",
    '{"operator":"MaxPool2dWithIndicesBackward",}': "this is not JSON",
    '{} // "shape"': "Extra data",
    "\ufeff" + windowed(): "Unexpected UTF-8 BOM",
    "\udcff" + windowed(): "Expecting value",
    windowed(operator="\ud800"): r"unknown operator '\ud800'",
    windowed(**{"\udfff": 1}): r"has no field '\udfff'",
    windowed(operator="\x1b[2J\x07"): r"unknown operator '\x1b[2J\x07'",
    windowed(operator="\n::error::all is lost"): r"unknown operator '\n::error::all is lost'",
    windowed(operator="\0"): r"unknown operator '\x00'",
    windowed(operator="[bold]</b><script>"): "unknown operator '[bold]</b><script>'",
    "[" * DEEP + "]" * DEEP: "maximum recursion depth exceeded",
    '{"way":' * DEEP + "1" + "}" * DEEP: "maximum recursion depth exceeded",
    windowed(seed="HERE").replace('"HERE"', "9" * 5000): "Exceeds the limit (4300 digits)",
    windowed(seed=float("nan")): "Expected `int`, got `float`",
    windowed(kernel_size=[9, 9], dilation=[9]): "a kernel of 9 (dilation 9) over 4 cells with padding 0 has no window",
    windowed(shape=[1] * 20_000): "takes a shape of 3 or 4 axes",
    windowed(output_size=[1, 1]): "has no field 'output_size'",
    windowed(kernelSize=[2, 2]): "has no field 'kernelSize'",
    windowed(literals={"grad_output": [1e300] * 4}): "literal 1e+300 of 'grad_output' overflows float16",
    windowed(literals={"grad_output": [1.0]}): "need to be 4 values of an input",
    windowed(literals={"indices": [16, 0, 0, 0]}): "index 16 of the literals is no integer in [0, 16)",
    windowed(layouts={"grad_output": "nhwc"}): "a layout with a format tag is that of all tensors or of none",
    windowed(layouts={}, shape=[1, 1, 10**9, 10**9]): "are more than fit an axis here",
    windowed(layouts={}, shape=[1, 1, 1, 2**62]): "has no window",
    windowed(layouts={}, shape=[1, 1, 10**30, 1]): "are more than fit an axis here",
    json.dumps(ADAPTIVE | {"output_size": [10**30, 1, 1]}): "are more than fit an axis here",
    json.dumps(CALL | WINDOWED): "a call has no field 'operator'",
    json.dumps(CALL | WAY): "a call has no field 'way'",
    json.dumps(CALL | {"tensors": CALL["tensors"] | {"self": TENSOR | {"strides": [1]}}}): "1 values for 4 axes",
    json.dumps(CALL): "contract",
}
"""Lines that are no case, no low-level call and no way through the phases."""

TOO_LARGE = (
    json.dumps(ADAPTIVE | {"output_size": [10**6, 10**6, 10**6]}),
    windowed(layouts={}, shape=[10**3, 10**2, 10**3, 10**3]),
    windowed(shape=[1, 1, 10**7, 10**7], kernel_size=[10**7, 1]),
)


@pytest.mark.parametrize(("line", "said"), LINES.items(), ids=range(len(LINES)))
def test_a_line_that_is_no_case_is_refused(line: str, said: str, here: Path, forked_sandboxes: None) -> None:
    refused(said, "replay", "--backend", HONEST, "--", line)


@pytest.mark.parametrize("line", TOO_LARGE, ids=range(len(TOO_LARGE)))
def test_a_case_that_no_machine_can_judge_is_not_run(line: str, here: Path, forked_sandboxes: None) -> None:
    ended = poolproof("replay", "--backend", HONEST, "--", line)
    assert (ended.exit_code, "beyond the memory budget" in ended.output) == (2, True), ended.output


def damaged(name: str, damage: Callable[[Path], object]) -> Callable[[Path], None]:
    def lay(here: Path) -> None:
        damage(next(here.glob(name)))

    return lay


def recorded(**changes: object) -> Callable[[Path], None]:
    """A run.json of which some entries are changed, or with ... gone."""

    def damage(path: Path) -> None:
        entries = {**json.loads(path.read_text()), **changes}
        path.write_text(json.dumps({name: value for name, value in entries.items() if value is not ...}))

    return damaged("run/run.json", damage)


def written(name: str, content: bytes) -> Callable[[Path], None]:
    return damaged(name, lambda path: path.write_bytes(content))


def replaced(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    return damaged(name, lambda path: (path.unlink(), make(path)))


def other_columns(path: Path) -> None:
    pq.write_table(pa.table({"verdict": [1, 2], "beauty": ["a", "b"]}), path)


ROWS = "run/rows/*.parquet"
RUNS = [
    damaged("run/run.json", Path.unlink),
    *(written("run/run.json", content) for content in (b"", b"[]", b"[" * 100_000, bytes(range(256)))),
    *(replaced("run/run.json", make) for make in (Path.mkdir, os.mkfifo, lambda path: path.symlink_to(path.name))),
    *(recorded(**{name: ...}) for name in ("id", "plan", "seed", "mandatory", "suite", "waivers")),
    *(recorded(id=value) for value in (5, [])),
    *(recorded(started=value) for value in ("today", 1e300)),
    *(recorded(mandatory=value) for value in ({}, [{"planned": 1.5}])),
    *(recorded(waivers=value) for value in ([5], [{"id": "x"}])),
    *(recorded(backends=value) for value in ([], {"a": 5})),
    recorded(suite="0.1"),
    recorded(host=[]),
    recorded(finished=-1),
    recorded(waivers_judged_on="soon"),
    recorded(strict_waivers="no"),
    *(written(ROWS, content) for content in (b"", b"PAR1 conforms PAR1")),
    damaged(ROWS, lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])),
    *(replaced(ROWS, make) for make in (Path.mkdir, lambda path: path.symlink_to(path.name))),
    damaged(ROWS, other_columns),
    *(
        damaged(ROWS, lambda path, content=content: (path.parent / "w-0000.jsonl").write_bytes(content))  # type: ignore[misc]
        for content in (b"\xff\xfe\n" * 3, b"verdict\n", b"5\n", b'{"verdict": [5]}\n', b"[" * 99_999 + b"\n")
    ),
]
READERS = ("package run -o new.zip", "history add new run", "waive run ID WHY")


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_a_damaged_run_is_named(number: int, folder: Path) -> None:
    RUNS[number](folder)
    for line in ("show run", READERS[number % 3]):
        refused("run", *words(line, folder))


@pytest.mark.parametrize(
    "line", ["history query history 'SELECT count(*) FROM rows, cells'", "dashboard history -o site"]
)
@pytest.mark.parametrize("name", ["rows/rows.parquet", "cells.parquet"])
def test_a_damaged_history_is_named(name: str, line: str, folder: Path) -> None:
    written(f"history/run=*/{name}", b"x" * 999)(folder)
    refused("parquet", *shlex.split(line))


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"run": 5, "started": [], "verdict": {}, "content": 1}'])
def test_an_entry_of_a_history_that_is_none_is_passed_over(content: bytes, folder: Path) -> None:
    written("history/run=*/entry.json", content)(folder)
    ended = poolproof("history", "list", "history")
    assert (ended.exit_code, "Traceback" in ended.output) == (0, False)


BACKEND = """
from poolproof.backends.base import Backend, Outcome, Status

class Mine(Backend):
    survives_fork = True
    def unsupported(self, operator, dtype, index_dtype):
        return None
    def run(self, call, mode=""):
        return Outcome(Status.REFUSED, message="not today")
"""
MODULES = (
    "def (",
    "1 / 0",
    "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd",
    r"raise RuntimeError('all\n' * 100)",
    r"raise RuntimeError('\x1b[2J::error::lost')",
    "import surely_not_there",
    "import sys; sys.exit(0)",
    "import os; os._exit(0)",
    "import os; os._exit(1)",
    "raise KeyboardInterrupt",
    "import os; os.abort()",
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "import time\nwhile True: time.sleep(1)",
    "def deeper(): deeper()\ndeeper()",
    "x = bytearray(1 << 62)",
    "x = 1\0",
    "\udcff\udcfe",
    "x = 1",
    "Mine = 5",
    "def Mine(): pass",
    "def Mine(): return 'backend'",
    BACKEND.replace("Mine", "Other") + "\ndef Mine(): return Other",
    "def Mine(device): pass",
    "def Mine(): raise OSError(5, 'no card')",
    "class Odd(BaseException): pass\ndef Mine(): raise Odd('odd')",
    "import sys\ndef Mine(): sys.exit(0)",
    "class Mine: pass",
    BACKEND.replace("(Backend)", ""),
    "from poolproof.backends.base import Backend\nclass Mine(Backend): pass",
    BACKEND.replace("def run", "def runs"),
    BACKEND.replace("return None", "raise KeyError(dtype)"),
    BACKEND + "    unsupported = 5\n",
    BACKEND.replace("return None", "return 5"),
    BACKEND.replace("operator, dtype, index_dtype", "operator"),
    BACKEND + "    def environment(self): raise OSError('no driver')\n",
    BACKEND + "    def environment(self): return ['torch']\n",
    BACKEND + "    environment = {'torch': '2'}\n",
    BACKEND + "    product = 'A2'\n",
    *(f"{BACKEND}    {name} = 5\n" for name in ("tags", "modes", "interface", "actions")),
)
"""What no backend can be made of."""

OUTCOMES = (
    BACKEND.replace("return Outcome", "raise RuntimeError; return Outcome"),
    BACKEND.replace("return Outcome", "Outcome"),
    BACKEND.replace("return Outcome", "return 5; Outcome"),
    BACKEND.replace("Status.REFUSED", "'fine'"),
    BACKEND.replace('mode=""', "mode, device"),
    *(
        f"{BACKEND.replace('REFUSED', 'COMPLETED')}    def accumulation(self, call): {does}\n"
        for does in ("1 / 0", "0")
    ),
    BACKEND.replace("message=", "results=[5], message="),
    BACKEND.replace('"not today"', "5"),
    BACKEND.replace('message="not', 'code="E1", message="not'),
    BACKEND.replace("message=", "seconds='1', message="),
    BACKEND.replace("message=", "guard_violations=5, message="),
    BACKEND + "    actions = ('destroy', 'hold_up', 'prepare', 'run')\n",
)
"""What an adapter does wrong in a call: nobody else is accused of it."""


def replayed(module: str, backend: str = "mine:Mine") -> Any:
    Path("mine.py").write_bytes(module.encode("utf-8", "surrogateescape"))
    with patch.object(sys, "path", [str(Path.cwd()), *sys.path]):  # that of the forked sandboxes
        importlib.invalidate_caches()
        return poolproof("replay", CASE, "--backend", backend)


@pytest.mark.parametrize("module", MODULES, ids=range(len(MODULES)))
def test_a_backend_that_is_none_is_named(
    module: str, here: Path, monkeypatch: pytest.MonkeyPatch, forked_sandboxes: None
) -> None:
    monkeypatch.setattr(supervision, "START_SECONDS", 10.0)
    ended = replayed(module)
    assert ended.exit_code == 3, ended.output
    hold(ended.output, "mine")
    assert "No module named 'mine'" not in ended.output


@pytest.mark.parametrize("name", ["mine:Mine:More", "mine.Mine:", ":Mine", "mine:", "mine:Mi ne", "..mine:Mine", "5:5"])
def test_a_name_of_no_backend_is_refused(name: str, here: Path, forked_sandboxes: None) -> None:
    ended = replayed(BACKEND, name)
    assert ended.exit_code == 3
    hold(ended.output, name)


@pytest.mark.parametrize("module", OUTCOMES, ids=range(len(OUTCOMES)))
def test_what_an_adapter_does_wrong_accuses_nobody(module: str, here: Path, forked_sandboxes: None) -> None:
    ended = replayed(module)
    assert ended.exit_code == 2, ended.output
    assert not any(verdict in ended.output for verdict in FAILED)


ELF = b"\x7fELF\x02\x01\x01" + b"\0" * 9


def patched(offset: int, value: bytes, size: int | None = None) -> Callable[[bytes], bytes]:
    return lambda whole: (whole[:offset] + value + whole[offset + len(value) :])[:size]


LIBRARIES = (
    *(b"", b"#!/bin/sh\nexit 0\n", b"INPUT(-lascendcl)\n", b"!<arch>\n", bytes(range(256)) * 16, ELF),
    *(patched(0, b"", size) for size in (64, 1000, 4096)),
    *(patched(place, value) for place, value in ((18, b"\xb7\x00"), (4, b"\x01"), (5, b"\x02"), (16, b"\x01\x00"))),
    *(patched(place, value) for place, value in ((16, b"\x02\x00"), (56, b"\xff\xff"), (56, b"\x00\x00"), (0, b""))),
    patched(32, b"\xff" * 7 + b"\x7f"),
)


@pytest.mark.parametrize("content", LIBRARIES, ids=range(len(LIBRARIES)))
def test_a_library_that_is_none_is_named(
    content: bytes | Callable[[bytes], bytes], here: Path, made: Path, forked_sandboxes: None
) -> None:
    """Some of them are what the compiler made, changed in a few bytes or cut."""
    (here / "lib.so").write_bytes(content if isinstance(content, bytes) else content((made / HARMFUL).read_bytes()))
    ended = poolproof("replay", CASE, "--backend", "aclnn", "--aclnn-library", "lib.so")
    assert ended.exit_code == 3, ended.output
    hold(ended.output, "backend aclnn ended by signal SIGBUS" if "SIGBUS" in ended.output else "lib.so")


@pytest.mark.parametrize(
    ("how", "said"), [*((how, "aclnn") for how in ("aborts", "exits", "faults", "hangs")), ("prints", HARMFUL)]
)
def test_a_library_that_does_harm_while_it_is_loaded_is_named(
    how: str, said: str, here: Path, monkeypatch: pytest.MonkeyPatch, forked_sandboxes: None
) -> None:
    monkeypatch.setenv("HARMFUL", how)
    monkeypatch.setattr(supervision, "START_SECONDS", 5.0)
    refused(said, "replay", CASE, "--backend", "aclnn", "--aclnn-library", HARMFUL)


@pytest.mark.parametrize("name", ["ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "POOLPROOF_ACLNN_LIBRARY"])
@pytest.mark.parametrize("value", ["missing", "a-file", "a-loop", "x" * 300, ""])
def test_a_variable_that_leads_to_no_library_is_named(
    name: str, value: str, here: Path, monkeypatch: pytest.MonkeyPatch, forked_sandboxes: None
) -> None:
    for each in ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH", "POOLPROOF_ACLNN_LIBRARY"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, value)
    refused("librar", "replay", CASE, "--backend", "aclnn")


REFUSED = {
    "POOLPROOF_EMULATOR_DEFECTS=no-such-defect": "no-such-defect",
    "POOLPROOF_EMULATOR_SANITIZER=beauty": "POOLPROOF_EMULATOR_SANITIZER=beauty is none of address, thread",
    "POOLPROOF_NPU=x": "POOLPROOF_NPU must be the number of an NPU, not 'x'",
    "POOLPROOF_NPU=99": "there is no NPU 99 here",
    "POOLPROOF_WORKER=gw0": "gw0",
    "XDG_CACHE_HOME=a-file": "the emulator cannot be kept in a-file",
}
HARMLESS = (
    *("COLUMNS=1", "COLUMNS=-5", "COLUMNS=x", "LINES=0", "TERM=dumb", "TERM=no-such-terminal", "NO_COLOR=1"),
    *("FORCE_COLOR=1", "LANG=C", "LC_ALL=no_SUCH.locale", "PYTHONIOENCODING=ascii", "PYTHONUTF8=0", "HOME="),
    *("HOME=/dev/null/nobody", "USER=", "TZ=Nowhere/Atlantis", "OMP_NUM_THREADS=x", "GITHUB_ACTIONS=maybe", "CI="),
    *("GITLAB_CI=true", "TMPDIR=missing", "POOLPROOF_EMULATOR_DEFECTS=no-such-defect"),
)
"""Variables that say nothing about a run that is shown, and that must not get in its way."""


@pytest.mark.parametrize(("variable", "said"), REFUSED.items())
def test_a_variable_that_the_emulator_cannot_use_is_named(
    variable: str, said: str, here: Path, monkeypatch: pytest.MonkeyPatch, forked_sandboxes: None
) -> None:
    monkeypatch.setenv(*variable.split("="))
    refused(said, "replay", CASE, "--backend", "emulator-a2")


@pytest.mark.parametrize("variable", HARMLESS)
def test_a_variable_of_the_surroundings_does_no_harm(variable: str, here: Path) -> None:
    name, value = variable.split("=")
    ended = forked.run(forked.Command("poolproof", ["show", "run"], here, surroundings() | {name: value}))
    assert (ended.returncode, "Traceback" in ended.stderr) == (1, False), ended.stderr


@pytest.mark.parametrize("target", ["nowhere/summary.md", "a-folder", "a-loop", "a-file/summary.md", "a-pipe"])
def test_a_summary_that_cannot_be_written_is_named(target: str, here: Path) -> None:
    variables = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": target}
    asked = [*words("SESSION", here), "--ci=github"]
    ended = forked.run(forked.Command("poolproof", asked, here, surroundings() | variables))
    assert ended.returncode == 3
    hold(ended.stdout + ended.stderr, f"cannot write {target}", 200)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-2, 9) | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
)
GARBAGE = st.sampled_from(["", "\0\1", "}{", '"""', "\\x", "]["])


@st.composite
def broken_lines(draw: st.DrawFn) -> str:
    """Good lines with a field that is anything, left out or unknown, or with garbage in place of some of the text."""
    good = draw(st.sampled_from([WINDOWED, ADAPTIVE, CALL, WAY]))
    name = draw(st.sampled_from([*good, "Shape", "kernel", ""]))
    fields = {key: value for key, value in good.items() if key != name}
    if draw(st.booleans()):
        fields[name] = draw(ANY_JSON | st.lists(st.integers(-2, 9) | st.integers(), max_size=6))
    line = json.dumps(fields)
    begin, end = sorted(draw(st.tuples(*[st.integers(0, len(line))] * 2)))
    return line if draw(st.booleans()) else line[:begin] + draw(GARBAGE) + line[end:]


def refusal(ask: Callable[[], object]) -> str | None:
    try:
        ask()
    except (CaseError, ContractError) as error:
        return str(error)
    return None


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is
@given(broken_lines())
def test_any_line_is_asked_or_refused_in_one_sentence(line: str) -> None:
    said = refusal(lambda: parse_line(line))
    assert said is None or (said and "\n" not in said)
