"""Real sessions of every kind: exit status, terminal, page and files for a run that conforms, violates, has gaps,
has waivers in every state, and crashes."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.compute as pc
import pytest

from places import ROOT
from poolproof.reports.recorder import CannotOpen, RunFolder, require_same_run
from poolproof.reports.rows.store import read_rows, read_run, write_run
from poolproof.reports.rows.verdicts import Overall
from poolproof.suites.cases.case import Case
from sessions import ASKED, run_session, waiver

LOSSY = 'backend = "reports_backends:Lossy"'
WAIVERS = waiver("lost", f'{LOSSY}, dtype = "float32"') + waiver("old", LOSSY, "2020-01-01")
WAIVERS += waiver("aimless", 'operator = "Nothing"', more='checks = ["interval"]')


@pytest.fixture(scope="module", autouse=True)
def torch() -> None:
    pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("backend", "options", "word", "said", "shown"),
    [
        ("torch-cpu", "", "conforms", "48 of 48 planned cases judged, none deviates", "48"),
        (
            "reports_backends:Lossy",
            "--dtype float32 -n 2 --ci github",
            "violates",
            "judged cases fail",
            "poolproof replay ",
        ),
        ("dying_backends:crashing", "--dtype float64 --no-shrink", "violates", "by a crash", "by signal SIGSEGV"),
        ("dying_backends:environment", "--dtype float16", "incomplete", "24 of 24 planned", "package is not installed"),
        ("torch-cpu", "--collect-only", "incomplete", "48 of 48 planned cases", "never run"),
    ],
)
def test_the_end_of_a_run_is_that_of_its_page_and_of_its_files(
    tmp_path: Path, backend: str, options: str, word: str, said: str, shown: str
) -> None:
    junit = f"--junitxml={tmp_path / 'junit.xml'}"
    ended, status = run_session(tmp_path / "run", backend, junit, *options.split()), Overall.of_word(word)
    word += " in part" if status is Overall.CONFORMS else ""  # of the plan
    assert ended.status == status, ended.output
    (line,) = (line for line in ended.output.splitlines() if f"{word.upper()} (exit status {int(status)}): " in line)
    assert said in line
    assert f"<strong>{word}</strong>" in ended.page and shown in ended.page
    assert ("\n::error title=" in ended.output) == ("--ci" in options), "annotations as the service obeys them"
    report = ElementTree.parse(tmp_path / "junit.xml").getroot()
    failures, skipped = ([*report.iter(tag)] for tag in ("failure", "skipped"))
    assert bool(failures) == (status is Overall.VIOLATES) == bool([*ended.folder.glob("evidence/*.npz")])
    assert all("poolproof replay " in (failure.text or "") for failure in failures)
    assert not report.findall(".//error")
    assert (len(skipped) >= 2) == (shown == "package is not installed") or backend == "torch-cpu"


def test_a_single_case_that_memory_does_not_hold_leaves_a_run_unfinished(tmp_path: Path) -> None:
    case = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 2, 4000, 4000), kernel_size=(2,)).to_json()
    ended = run_session(tmp_path / "run", "torch-cpu", "--memory-budget", "1MiB", asked=("--case", case))
    assert ended.status == Overall.INCOMPLETE, ended.output
    assert "| torch-cpu case | 1 | 1 | beyond the memory budget" in (ended.folder / "summary.md").read_text("utf-8")


@pytest.mark.parametrize("options", [("-k", "values and float32"), ("-k", "float32", "-n", "1"), ()])
def test_a_run_of_a_selection_owes_that_and_says_so(tmp_path: Path, options: Sequence[str]) -> None:
    """By -k, by -k in a worker, and by node ids."""
    name = "torch-cpu-MaxPool2dWithIndicesBackward-float32-int64-values-0"
    suite = [] if options else [f"suites/test_conformance.py::test_conformance[{name}]"]
    ended = run_session(
        tmp_path / "run", "torch-cpu", *options, asked=[*ASKED, "--aspect", "precision"], suite=suite or ["suites"]
    )
    judged = 24 if "-n" in options else 12
    assert ended.status == Overall.CONFORMS, ended.output
    record = read_run(ended.folder)
    by = f"{' '.join(ASKED[:2])} --aspect values --aspect precision --cases 12 {len(record['narrowed']['tests'])} test"
    narrowed = f"narrowed: {judged} of {record['plan_cases']:,} cases of plan smoke ({by}"
    assert f"{judged} of {judged} planned cases judged, none deviates. N{narrowed[1:]}" in ended.output
    assert narrowed in ended.page
    assert f"N{narrowed[1:]}" in (ended.folder / "summary.md").read_text(encoding="utf-8"), "names as they are spelled"
    assert record["plan_cases"] > 1000
    assert (record["narrowed"]["selected"], record["narrowed"]["planned"]) == (judged, 96)
    assert name in record["narrowed"]["tests"]


@pytest.mark.parametrize(("options", "status"), [([], Overall.CONFORMS), (["--strict-waivers"], Overall.VIOLATES)])
def test_a_run_with_waivers(tmp_path: Path, options: list[str], status: Overall) -> None:
    (tmp_path / "waivers.toml").write_text(WAIVERS)
    given = ["--waivers", str(tmp_path / "waivers.toml"), "--dtype", "float32", *options]
    ended = run_session(tmp_path / "run", "reports_backends:Lossy", *given)
    assert ended.status == status, ended.output
    lines = [" ".join(line.split()[1:]) for line in ended.output.splitlines()]
    for name, state in (("lost", "used, wide"), ("old", "expired, wide"), ("aimless", "unmatched")):
        assert any(f"{line} ".startswith(f"{state} {name} ") for line in lines), ended.output
        assert f"<td>{name}</td>" in ended.page
    assert ("old (expired), aimless (unmatched)" in ended.output) == bool(options)


def test_a_session_that_died_before_it_began_is_resumed_as_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.77.tmp").touch()
    ended = run_session(tmp_path / "run", "torch-cpu", "--resume", asked=("--aspect", "examples", "--dtype", "float32"))
    assert ended.status == Overall.CONFORMS, ended.output
    assert "has nothing to resume, for a session ended before it began" in ended.output
    assert not [*ended.folder.glob("*.tmp")]
    (tmp_path / "rows").mkdir()
    with pytest.raises(CannotOpen, match="nothing to resume"):
        RunFolder(tmp_path, resumes=True)


def test_a_run_that_cannot_start(tmp_path: Path) -> None:
    for options, complaint in (
        (("--dtype", "float32", "--operator", "MaxPool2dWithMask"), "nothing to judge"),
        (("--resume",), "nothing to resume"),
    ):
        ended = run_session(tmp_path / "run", "torch-cpu", *options, asked=("--aspect", "values"))
        assert (ended.status, complaint in ended.output) == (Overall.COULD_NOT_RUN, True), ended.output
        assert "Traceback" not in ended.output


def test_the_sample_for_ci_gives_each_worker_a_card(tmp_path: Path) -> None:
    cards = [option for card in "01" for option in ("--tx", f"popen//env:ASCEND_RT_VISIBLE_DEVICES={card}")]
    options = ["--dist", "load", *cards]
    for sample in ("npu-github.yml", "npu-gitlab.yml"):
        text = (ROOT / "docs" / "ci" / sample).read_text(encoding="utf-8")
        assert '--tx "popen//env:ASCEND_RT_VISIBLE_DEVICES=$card"' in text
        assert "--dist load" in text
    ended = run_session(tmp_path / "run", "plugged_backends:tells_its_card", *options)
    assert ended.status == Overall.CONFORMS, ended.output
    routes = read_rows(ended.folder, ["route"], pc.field("aspect") == "values")["route"]
    assert set(routes.to_pylist()) == {"card 0", "card 1"}


def test_a_run_that_is_resumed_owes_the_whole_plan_and_goes_on_as_it_was_begun(tmp_path: Path) -> None:
    begun = run_session(tmp_path / "run", "torch-cpu", "-k", "float32")
    ended = run_session(tmp_path / "run", "torch-cpu", "--resume", "--seed", "3")
    assert ended.status == Overall.COULD_NOT_RUN
    assert "selection seed is 0 there, and 3 now" in ended.output
    record = read_run(begun.folder)
    second = run_session(tmp_path / "run", "torch-cpu", "--resume")
    assert (begun.status, second.status) == (Overall.CONFORMS, Overall.CONFORMS)
    assert ". Narrowed: 12 of " in begun.output
    assert "48 of 48 planned cases judged" in second.output
    assert ". Narrowed: 48 of " in second.output
    again = run_session(tmp_path / "run", "torch-cpu", "--resume")
    assert again.status == Overall.CONFORMS
    rows = read_rows(tmp_path / "run", ["dtype", "index_dtype"], pc.field("verdict") == "not supported")
    assert rows["index_dtype"].to_pylist() == ["int32"] * 4, "what is not supported is noted once"
    assert set(rows["dtype"].to_pylist()) == {"float64", "float32", "float16", "bfloat16"}
    write_run(tmp_path / "run", record)
    require_same_run(begun.folder, record)
    for name in ("suite", "selection", "backends"):
        key = next(iter(record[name]))
        with pytest.raises(CannotOpen, match=f"{name} {key} is .* there, and 'another' now"):
            require_same_run(begun.folder, {**record, name: {**record[name], key: "another"}})
    first, *others = record["waivers"]
    for waivers, said in (
        (others, f"begun with waiver '{first['id']}', which is not given now: choose another"),
        ([*others, first, first | {"id": "new"}], "begun without waiver 'new', which is given now"),
        (
            [first | {"owner": "somebody"}, *others],
            f"begun with waiver '{first['id']}', and now it would be with another one",
        ),
    ):
        with pytest.raises(CannotOpen, match=said):
            require_same_run(begun.folder, record | {"waivers": waivers})


def test_a_folder_has_one_session_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    program = "import sys, pathlib, poolproof.reports.rows.store as s; s.lock(pathlib.Path(sys.argv[1])); "
    command = [sys.executable, "-c", program + "print(); sys.stdout.flush(); input()", folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"\n"
        ended = run_session(folder, "torch-cpu")
        assert ended.status == Overall.COULD_NOT_RUN
        assert f"another session writes to {folder}" in ended.output
        holder.kill()
    assert run_session(folder, "torch-cpu").status == Overall.CONFORMS


def test_all_that_strides_do_to_torch_is_waived(tmp_path: Path) -> None:
    """A first run conforms: what is known of the operator with the most faults has a waiver for every check."""
    asked = ["--operator", "AdaptiveMaxPool3dBackward", "--aspect", "layouts", "--dtype", "float32"]
    ended = run_session(tmp_path / "run", "torch-cpu", asked=asked)
    assert ended.status == Overall.CONFORMS, ended.output


def test_reports_of_allure_and_pytest_html_get_attachments_of_failing_blocks(tmp_path: Path) -> None:
    for package in ("allure", "pytest_html"):
        pytest.importorskip(package)
    results, page = tmp_path / "allure", tmp_path / "report.html"
    options = ("--dtype", "float32", "-n", "2", "--alluredir", str(results), "--html", str(page))
    ended = run_session(tmp_path / "run", "reports_backends:Lossy", *options)
    assert ended.status == Overall.VIOLATES, ended.output
    tests = [json.loads(path.read_text("utf-8")) for path in results.glob("*-result.json")]
    failed = [test for test in tests if test["status"] == "failed"]
    assert failed and all([each["name"] for each in test["attachments"]] == _ATTACHED for test in failed)
    assert not any("attachments" in test for test in tests if test["status"] == "passed")
    line, evidence, picture = (results / each["source"] for each in failed[0]["attachments"])
    assert line.read_text("utf-8").startswith("poolproof replay --backend reports_backends:Lossy ")
    assert evidence.read_bytes() in [path.read_bytes() for path in (ended.folder / "evidence").glob("*.npz")]
    assert '<svg class="plane"' in picture.read_text("utf-8")
    (data,) = re.findall('data-jsonblob="([^"]*)"', page.read_text("utf-8"))
    tried = [one for tries in json.loads(unescape(data))["tests"].values() for one in tries]
    replay, link, frame = next(one["extras"] for one in tried if one["result"] == "Failed")
    assert (page.parent / replay["content"]).read_text("utf-8").startswith("poolproof replay ")
    assert link["content"].startswith((ended.folder / "evidence").as_uri())
    assert '<svg class="plane"' in unescape(frame["content"])


_ATTACHED = ["replay", "evidence", "picture"]
