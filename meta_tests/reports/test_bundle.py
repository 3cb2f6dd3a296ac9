"""The acceptance bundle: that it holds what a verdict rests on, and that verifying it catches every tampering."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock, patch
from zipfile import ZipFile

import pyarrow.parquet as pq
import pytest

from forging import CAUGHT, FORGERIES, UNTRACED, change_bundle, rewrite
from poolproof.backends.building import BuildFailed, cache_folder
from poolproof.reports import commands
from poolproof.reports.bundle import packing
from poolproof.reports.bundle.account import account, judged_line, left_out_line, unmet, verdict_word
from poolproof.reports.bundle.packing import SUMS, package
from poolproof.reports.figures.comparison import compare
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.history import entries as history
from poolproof.reports.pages.publishing import PAGES, publish
from poolproof.reports.pages.run import write_run_page
from poolproof.reports.rows import store
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import UNCAUGHT, Overall
from poolproof.reports.waivers import shipped, to_toml
from poolproof.suites.cases.case import Case
from poolproof.suites.plan.known import row_problem
from poolproof.suites.plan.selection import Key, PlannedRows, planned_rows
from poolproof.suites.verify import plan_rows, verification
from poolproof.suites.verify.verification import verify
from reports_made_up import Recipe, make_run
from sessions import poolproof, run_session
from shares import a_share

ROWS = "rows/main-0000.parquet"
FORWARD, BACKWARD = "MaxPool2dWithIndices", "MaxPool2dWithIndicesBackward"
Files = dict[str, bytes]


@cache
def _everything(asked: str, recorded: frozenset[tuple[Key, int]]) -> dict[Key, PlannedRows]:
    planned = planned_rows(json.loads(asked), dict(recorded))
    for each in planned.values():
        object.__setattr__(each, "rows", cache(each.rows))
    return planned


def drawn_once(run: Mapping[str, Any], recorded: Mapping[Key, int]) -> dict[Key, PlannedRows]:
    """What is drawn again, once for all records that ask the same."""
    given = {name: run[name] for name in ("selection", "narrowed", "budget", "finished") if name in run}
    return _everything(json.dumps(given), frozenset(recorded.items() if "budget" in run else ()))


def verified(bundle: Path) -> tuple[Overall, list[str]]:
    """The overall verdict on a bundle, and all problems of its steps."""
    with patch("poolproof.suites.verify.plan_rows.planned_rows", drawn_once):
        found = verify(bundle)
    return found.overall, [problem for step in found.steps for problem in step.problems]


@pytest.mark.usefixtures("deriving_once")
def test_a_bundle_stands_and_has_another_fingerprint_when_it_was_made_anew(bundle: Path) -> None:
    found = verify(bundle)
    assert found.overall is Overall.CONFORMS, found.steps
    assert any(re.match("evidence of [1-9][0-9]* cases judged again", step.text) for step in found.steps)
    assert found.verdict.startswith("violates; ")
    assert found.verdict.endswith("waived by known")
    assert verify(bundle, found.fingerprint.upper()).overall is Overall.CONFORMS
    change_bundle(bundle, "verdict.json", lambda _: b"nothing")
    assert "the fingerprint is" in "\n".join(verify(bundle, found.fingerprint).steps[0].problems)


@pytest.mark.parametrize("command", ["verify", "rerun"])
def test_a_record_that_cannot_be_read_is_named_by_its_bundle(command: str, bundle: Path) -> None:
    change_bundle(bundle, "run.json", lambda record: record[:100])
    result = poolproof(command, bundle)
    assert result.exit_code in (Overall.VIOLATES, Overall.COULD_NOT_RUN)
    assert f"{bundle}/run.json is damaged" in result.output


@pytest.mark.parametrize(
    ("module", "step", "arguments"),
    [
        (packing, "_add", ("package", "{run}", "-o", "new/it.zip")),
        (history, "_groups", ("history", "add", "new", "{run}")),
    ],
)
def test_a_full_disk_is_named_and_nothing_is_left(
    module: ModuleType, step: str, arguments: Sequence[str], run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system says on which file a folder cannot be opened, but not into which file there is no room to write."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, step, Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    result = poolproof(*(each.format(run=run) for each in arguments))
    assert result.exit_code == Overall.COULD_NOT_RUN
    assert "cannot write new/" in result.output
    assert "No space left on device; make room for it" in result.output
    assert not [*Path("new").iterdir()]


@pytest.mark.parametrize(("place", "named"), [("archive.shutil.copyfileobj", "/run"), ("packing.Path.write_text", "/")])
def test_a_full_disk_of_who_verifies_says_nothing_about_the_bundle(
    place: str, named: str, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(f"poolproof.reports.bundle.{place}", Mock(side_effect=full))
    result = poolproof("verify", bundle)
    assert result.exit_code == Overall.COULD_NOT_RUN, result.output
    assert re.search(rf"cannot write /.*{named}.*: No space left on device; make room for it", result.output)


@pytest.mark.usefixtures("deriving_once")
def test_rows_may_lie_in_groups_and_in_many_parts(run: Path, tmp_path: Path) -> None:
    (part,) = (run / "rows").glob("*.parquet")
    rows = pq.read_table(part)
    pq.write_table(rows.slice(0, 20), part, row_group_size=7)
    pq.write_table(rows.slice(20), part.with_name("zz.parquet"), row_group_size=9)
    package(run, tmp_path / "bundle.zip")
    assert verified(tmp_path / "bundle.zip") == (Overall.CONFORMS, [])


def test_a_run_of_several_lines_stands(tmp_path: Path) -> None:
    cases = [
        {"operator": BACKWARD, "dtype": "float32", "shape": [1, 1, 4, size], "kernel_size": [2]} for size in (4, 5)
    ]
    asked = [word for case in cases for word in ("--case", json.dumps(case))]
    ended = run_session(tmp_path / "run", "scatter_backends:honest", asked=asked)
    package(ended.folder, tmp_path / "bundle.zip")
    assert verified(tmp_path / "bundle.zip") == (Overall.CONFORMS, [])


def test_many_rows_are_compared_in_several_processes(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks that lie in several stretches as well, and one that is wrong."""
    FORGERIES["the shape of a row changed"](run)
    monkeypatch.setattr(store, "ROWS_PER_PART", 16)
    monkeypatch.setattr(plan_rows, "ROWS_PER_PART", 8)
    package(run, tmp_path / "bundle.zip")
    problems = [problem for step in verify(tmp_path / "bundle.zip").steps for problem in step.problems]
    (problem,) = (each for each in problems if "shape" in each)
    assert "says shape '1x1'" in problem and len(problems) == 1


def test_the_page_has_every_forgery() -> None:
    assert list(CAUGHT) == list(FORGERIES)


@pytest.mark.usefixtures("deriving_once")
@pytest.mark.parametrize("title", a_share(FORGERIES))
def test_a_forgery_is_caught_as_the_page_says(title: str, run: Path, tmp_path: Path) -> None:
    """By a forger who has the suite, and makes tables and hashes agree."""
    FORGERIES[title](run)
    package(run, tmp_path / "forged.zip")
    overall, problems = verified(tmp_path / "forged.zip")
    words = re.findall("… (.*) …", CAUGHT[title])
    assert (overall is Overall.VIOLATES) == bool(words), problems
    assert all(each in "\n".join(problems) for each in words), problems


@pytest.mark.usefixtures("deriving_once", "forked_sandboxes")
@pytest.mark.parametrize("title", a_share(UNTRACED))
def test_a_rerun_tells_where_the_page_says_so(title: str, run: Path, tmp_path: Path) -> None:
    FORGERIES[title](run)
    package(run, tmp_path / "forged.zip")
    again = poolproof("rerun", tmp_path / "forged.zip", "--backend", "reports_backends:Mixed", "--sample", 10_000)
    assert again.exit_code == (Overall.VIOLATES if CAUGHT[title] == "a rerun tells" else 0), again.output
    says_so = "another chip than" in again.output or "0 with other bits" not in again.output
    assert says_so == (CAUGHT[title] == "a rerun says so"), again.output


def test_a_bundle_holds_what_a_verdict_rests_on(bundle: Path) -> None:
    with ZipFile(bundle) as archive:
        names = archive.namelist()
        failures = {name.split("/")[1] for name in names if name.startswith("failures/")}
        assert failures
        evidence = next(name for name in names if name.startswith("evidence/") and name.endswith(".npz"))
        script = archive.read(f"failures/{Path(evidence).stem}/reproduce.sh").decode()
        assert "poolproof replay --backend reports_backends:Mixed" in script
        assert f"python evidence/rejudge.py {evidence}" in script
        assert {"evidence/call.py", "evidence/rejudge.py"} <= set(names)
        environment = json.loads(archive.read("environment.json"))
        assert "torch" in environment["backends"]["reports_backends:Mixed"]
        assert b'id = "known"' in archive.read("waivers.toml")
    assert not PAGES.keys() & set(names)
    assert {"tables/coverage.csv", "tables/checks.csv", "verdict.json"} <= set(names)


def test_an_unpacked_bundle_is_checked_by_sha256sum_and_judged_by_its_script(bundle: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with ZipFile(bundle) as archive:
        archive.extractall(out)
    summed = subprocess.run(["sha256sum", "--check", "--quiet", SUMS], cwd=out, capture_output=True)
    assert summed.returncode == 0, summed.stderr
    evidence = sorted((out / "evidence").glob("*.npz"))[0]
    command = [sys.executable, str(evidence.with_name("rejudge.py")), str(evidence)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.match(r"\d+ of \d+ elements are not admissible", done.stdout)


def test_a_bundle_is_shown_and_makes_the_pages_of_its_run(run: Path, bundle: Path, tmp_path: Path) -> None:
    shown = poolproof("show", bundle, "--pages", tmp_path / "pages" / "new")
    assert (shown.exit_code, "VIOLATES" in shown.output or "FAILED" in shown.output) == (Overall.VIOLATES, True)
    publish(read_digest(run), run)
    for page in PAGES:
        assert (tmp_path / "pages" / "new" / page).read_bytes() == (run / page).read_bytes(), page


def more(text: bytes) -> Callable[[bytes], bytes]:
    return lambda content: content + text


def conform(content: bytes) -> bytes:
    return content.replace(b'"violates",', b'"conforms",')


@pytest.mark.usefixtures("deriving_once")
@pytest.mark.parametrize(
    ("name", "edit", "hashed", "problem"),
    [
        (ROWS, more(b"0"), False, "changed: {}"),
        ("verdict.json", conform, False, "verdict.json does not follow from the rows"),
        ("verdict.json", conform, False, "changed: {}"),
        ("verdict.json", conform, True, "verdict.json does not follow from the rows"),
        *((name, None, False, "removed: {}") for name in ("tables/coverage.csv", ROWS, "run.json")),
        ("rows/more.jsonl", more(b""), False, "added: {}"),
        *(
            (name, more(b"all is well"), True, "{} does not follow from the rows")
            for name in ("environment.json", "evidence/rejudge.py", "tables/checks.csv")
        ),
        *((name, more(b"trust us"), True, "{} follows from no row") for name in ("README.txt", "index.html")),
    ],
)
def test_a_changed_file_is_caught(
    bundle: Path, name: str, edit: Callable[[bytes], bytes] | None, hashed: bool, problem: str
) -> None:
    change_bundle(bundle, name, edit, hashed)
    overall, problems = verified(bundle)
    assert overall is Overall.VIOLATES
    assert problem.format(name) in problems
    assert not hashed or not any(each.startswith("changed") for each in problems)


def test_another_suite_is_named_and_no_changed_bundle_stands(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "suite_identity", lambda: {"version": "0.9.9", "content_hash": "f" * 64})
    overall, problems = verified(bundle)
    assert overall is Overall.INCOMPLETE
    assert "now again by 0.9.9 (ffffffffffff)" in problems[0]
    change_bundle(bundle, "verdict.json", lambda _: b'{"verdict": "conforms"}')
    overall, problems = verified(bundle)
    assert overall is Overall.VIOLATES
    assert "the verdict is stored as 'conforms', and the rows say 'violates'" in problems


@pytest.mark.usefixtures("deriving_once")
def test_the_commands(run: Path, bundle: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "bundle.zip"
    made = poolproof("package", run, "-o", target)
    assert made.exit_code == 0, made.output
    assert target.read_bytes() == bundle.read_bytes(), "a bundle is the same whenever it is made"
    checked = poolproof("verify", target, "--fingerprint", made.output.split()[-1])
    assert checked.exit_code == 0
    assert "STANDS (exit status 0): the run in it violates" in checked.output
    left_out, vouches, judged = checked.output.splitlines()[-3:]
    assert "; 2 aspects (layouts, values); reports_backends:Mixed (library " in judged
    assert re.search(r"; plan smoke, seed 0; on .+; \d{4}-\d\d-\d\d$", judged)
    assert re.search(r"left out: narrowed: .*; \d+ cases waived by known until ", left_out)
    assert vouches == "vouched for: nobody signed this"
    agreed = tmp_path / "agreed.toml"
    agreed.write_text(to_toml(shipped()[:1]), encoding="utf-8")
    others = poolproof("verify", target, "--waivers", agreed)
    assert (others.exit_code, "waiver known of somebody was not agreed on" in others.output) == (1, True)


@pytest.mark.usefixtures("deriving_once")
@pytest.mark.parametrize(
    ("required", "why"),
    [
        ("conforms", "verdict is: violates\n"),
        ("no-waivers", "waivers in use are known"),
        ("plan=soak", "plan is smoke"),
        ("isolated", "hosts without a wall are "),  # tests open a folder to backends
    ],
)
def test_a_bundle_that_stands_may_not_be_what_was_required(required: str, why: str, bundle: Path) -> None:
    checked = poolproof("verify", bundle, "--require", required)
    assert (checked.exit_code, f"--require {required}: its {why}" in checked.output) == (Overall.UNMET, True)
    assert "STANDS, BUT IS NOT WHAT WAS REQUIRED (exit status 6)" in checked.output
    assert checked.output.count("narrowed: ") == 1, "it is said once, of what was left out"


def test_a_requirement_is_met_by_the_whole_of_a_plan_alone(run: Path) -> None:
    digest = read_digest(run)
    left = digest.conclusion.narrowed
    assert re.fullmatch(r"narrowed: .* of plan smoke \(--operator .* --aspect layouts and 1 more\)", left)
    assert unmet(digest, "plan=smoke") == "it is narrowed: see what was left out"
    assert unmet(digest, "conforms-in-part") == "its verdict is: violates"
    digest.conclusion = replace(digest.conclusion, overall=Overall.CONFORMS)
    assert unmet(digest, "conforms") == "its verdict is: conforms in part"
    assert not unmet(digest, "conforms-in-part")
    digest.waivers = ()
    for whole in ("", "40 cases beyond the plan"):
        digest.conclusion = replace(digest.conclusion, narrowed=whole)
        assert not any(unmet(digest, each) for each in ("plan=smoke", "conforms", "conforms-in-part", "no-waivers"))


def test_what_conforms_is_never_said_without_of_what(run: Path) -> None:
    digest = read_digest(run)
    assert verdict_word(digest) == "violates"
    digest.conclusion = replace(digest.conclusion, overall=Overall.CONFORMS)
    assert verdict_word(digest) == "conforms in part"
    digest.conclusion = replace(digest.conclusion, narrowed="")
    assert verdict_word(digest) == "conforms in what it supports"
    for subject in digest.run["selection"]["backends"]["reports_backends:Mixed"]["subjects"]:
        subject[3] = None
    assert verdict_word(digest) == "conforms to the whole plan"


def test_what_a_backend_was_given_is_shown_and_signed(tmp_path: Path) -> None:
    said = {"torch": "2.13.0", "library libc10.so": f"sha256:{64 * '0'}, /lib/libc10.so"}
    recipe = Recipe(record={"backends": {"torch-cpu": said}})
    folder, other = (make_run(tmp_path / name, recipe) for name in ("run", "other"))
    words = ["POOLPROOF_EMULATOR_TIES=last", "--aclnn-library", "/a b"]
    rewrite(folder, lambda rows: [row | {"given": words} for row in rows])
    digest, text = read_digest(folder), "POOLPROOF_EMULATOR_TIES=last --aclnn-library '/a b'"
    assert account(digest)["backends"]["torch-cpu"]["given"] == [text], "which is signed"
    assert f"torch-cpu (library 000000000000, given {text})" in judged_line(digest)
    page = unescape(write_run_page(digest, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert f"torch-cpu (library 000000000000, given {text})</h1>" in page and f"<dt>given</dt><dd>{text}</dd>" in page
    assert "<details><summary>loaded files, by hash: 1 file</summary><dl><dt>library libc10.so</dt>" in page
    changed = compare(other, folder).environment.to_numpy().tolist()
    assert changed == [["torch-cpu given", "", text]]


@pytest.mark.parametrize("backend", ["torch-cpu", "torch-npu", "emulator-a2", "aclnn", "somebody:Backend"])
@pytest.mark.parametrize(("operator", "right", "wrong"), [(FORWARD, "first", "any"), (BACKWARD, "acc32", "acc32+ftz")])
def test_a_model_is_held_against_what_is_known(backend: str, operator: str, right: str, wrong: str) -> None:
    row = {"backend": backend, "operator": operator, "dtype": "float32", "given": None, "verdict": "conforms"}
    run = {"backends": {backend: {"product": "A2"}}}
    assert row_problem(row | {"model": right}, run) == ""
    assert bool(row_problem(row | {"model": wrong}, run)) is (":" not in backend)


@pytest.mark.parametrize(
    ("backend", "product", "stands"),
    [("somebody:Backend", "", True), ("somebody:Backend", "A2", False), ("torch-cpu", "", False)],
)
def test_only_the_adapter_of_an_unknown_interface_may_document_its_refusals(
    backend: str, product: str, stands: bool
) -> None:
    case = Case.of(BACKWARD, shape=(1, 1, 4, 4), kernel_size=(2,))
    row = {"backend": backend, "product": product, "operator": BACKWARD, "model": None, "case": case.to_json()}
    row |= {"verdict": "refused as documented", "reason": "as its adapter declares: limits.md"}
    assert (row_problem(row, {"backends": {}}) == "") is stands


@pytest.mark.thorough
def test_an_emulators_run_under_the_name_of_a_card_does_not_stand(diagnosed: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(diagnosed / "run", tmp_path / "run"))
    record = folder / "run.json"
    record.write_text(record.read_text().replace("emulator-a2", "aclnn"))

    def renamed(row: dict[str, Any]) -> dict[str, Any]:
        return row | {name: (row[name] or "").replace("emulator-a2", "aclnn") for name in ("backend", "block")}

    rewrite(folder, lambda rows: list(map(renamed, rows)))
    shutil.rmtree(folder / "evidence")
    package(folder, tmp_path / "bundle.zip")
    overall, problems = verified(tmp_path / "bundle.zip")
    assert overall is Overall.VIOLATES
    assert "which emulated libraries name and CANN's do not" in "\n".join(problems)


def test_a_rule_that_is_not_the_familys_is_said_and_signed(tmp_path: Path) -> None:
    asked = ("--operator", "MaxPool2dWithIndices", "--dtype", "float32", "--aspect", "special_values", "--cases", "8")
    assert run_session(tmp_path, "scatter_backends:PicksLast", asked=asked).status == Overall.CONFORMS
    digest = read_digest(tmp_path)
    (own,) = account(digest)["backends"].values()
    assert own["models"] == {"last": ["MaxPool2dWithIndices float32"]}
    said = "is declared to find maxima by the rule last: 1 forward (MaxPool2dWithIndices float32)"
    assert f"scatter_backends:PicksLast {said}" in left_out_line(digest)


def test_a_fault_of_ours_ends_in_no_verdict(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, status in ((RuntimeError("ours"), UNCAUGHT), (KeyboardInterrupt(), 130)):
        monkeypatch.setattr(commands, "read_digest", Mock(side_effect=error))
        assert poolproof("show", run).exit_code == status


def test_who_has_no_home_is_told_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError("Could not determine home directory.")))
    with pytest.raises(BuildFailed, match="set XDG_CACHE_HOME"):
        cache_folder("emulator")


def test_a_run_without_a_single_row_can_be_packaged(tmp_path: Path) -> None:
    package(make_run(tmp_path / "run", Recipe(cases=0)), tmp_path / "bundle.zip")
    problems = [problem for step in verify(tmp_path / "bundle.zip").steps for problem in step.problems]
    problems = [problem for problem in problems if "in the future" not in problem]  # until the day that was made up
    assert problems == ["its cases cannot be drawn again: the run has no record of its selection"]
    assert not read_rows(tmp_path / "run").num_rows
