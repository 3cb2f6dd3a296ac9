"""The acceptance bundle: that it holds what a verdict rests on, and that verifying it catches every tampering."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from poolproof.reports.bundle import verification
from poolproof.reports.bundle.packing import SUMS, package
from poolproof.reports.bundle.verification import verify
from poolproof.reports.pages.publishing import PAGES
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import Overall
from poolproof.suites.cli import main
from reports_made_up import Recipe, make_run

CELL = ("MaxPool2dWithIndicesBackward", "float32", "values")
WAIVER = {"id": "known", "reason": "r", "owner": "o", "expires": "2027-12-31", "scope": {"dtype": "float16"}}
ROWS = "rows/gw0-0000.parquet"

Files = dict[str, bytes]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    waived = (CELL[0], "float16", "layouts")
    recipe = Recipe(verdicts={CELL: ["violates", "crashed"], waived: ["waived"]}, waivers=[WAIVER])
    return make_run(tmp_path / "run", recipe, evidence=True)


@pytest.fixture
def bundle(run: Path, tmp_path: Path) -> Path:
    package(run, tmp_path / "bundle.zip")
    return tmp_path / "bundle.zip"


def change(bundle: Path, edit: Callable[[Files], None], hashed: bool) -> None:
    """Edit the files of a bundle; ``hashed`` makes its sums agree again, as a careful forger would."""
    with ZipFile(bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    edit(files)
    if hashed:
        named = sorted(set(files) - {SUMS})
        files[SUMS] = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in named).encode()
    with ZipFile(bundle, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def edit_rows(files: Files, edit: Callable[[list[dict]], None]) -> None:
    table = pq.read_table(io.BytesIO(files[ROWS]))
    rows = table.to_pylist()
    edit(rows)
    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, table.schema), target)
    files[ROWS] = target.getvalue()


def make_conform(rows: list[dict]) -> None:
    for row in rows:
        if row["verdict"] in ("violates", "crashed"):
            row |= {"verdict": "conforms", "checks_violated": [], "n_reject": 0, "reason": ""}


def problems(bundle: Path) -> str:
    found = verify(bundle)
    assert found.overall is Overall.VIOLATES
    return "\n".join(problem for step in found.steps for problem in step.problems)


def test_a_bundle_stands(bundle: Path) -> None:
    found = verify(bundle)
    assert found.overall is Overall.CONFORMS, found.steps
    assert found.verdict.startswith("violates; deviating and not waived: 2 of 72 judged cases")


def test_a_bundle_is_the_same_whenever_it_is_made(run: Path, bundle: Path, tmp_path: Path) -> None:
    package(run, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == bundle.read_bytes()


def test_a_bundle_holds_what_a_verdict_rests_on(bundle: Path) -> None:
    with ZipFile(bundle) as archive:
        names = archive.namelist()
        failures = {name.split("/")[1] for name in names if name.startswith("failures/")}
        assert len(failures) == 2
        (evidence,) = (name for name in names if name.startswith("evidence/") and name.endswith(".npz"))
        script = archive.read(f"failures/{Path(evidence).stem}/reproduce.sh").decode()
        assert "poolproof replay --backend torch-cpu" in script
        assert f"python evidence/call.py {evidence}" in script
        assert {"evidence/call.py", "evidence/rejudge.py"} <= set(names)
        environment = json.loads(archive.read("environment.json"))
        assert environment["backends"]["torch-cpu"]["torch"] == "2.13.0"
        assert b'id = "known"' in archive.read("waivers.toml")
    assert {page.name for page in PAGES} <= set(names)
    assert {"tables/coverage.csv", "tables/checks.csv", "verdict.json"} <= set(names)


def test_the_sums_are_those_that_sha256sum_checks(bundle: Path, tmp_path: Path) -> None:
    with ZipFile(bundle) as archive:
        archive.extractall(tmp_path / "out")
    done = subprocess.run(["sha256sum", "--check", "--quiet", SUMS], cwd=tmp_path / "out", capture_output=True)
    assert done.returncode == 0, done.stderr


def test_the_unpacked_script_judges_evidence_alone(bundle: Path, tmp_path: Path) -> None:
    with ZipFile(bundle) as archive:
        archive.extractall(tmp_path / "out")
    (evidence,) = (tmp_path / "out" / "evidence").glob("*.npz")
    command = [sys.executable, str(evidence.with_name("rejudge.py")), str(evidence)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.startswith("1 of 192 elements are not admissible")


def test_a_changed_row_is_caught(bundle: Path) -> None:
    change(bundle, lambda files: edit_rows(files, make_conform), hashed=False)
    assert f"changed: {ROWS}" in problems(bundle)


def test_a_changed_row_is_caught_with_sums_that_agree(bundle: Path) -> None:
    change(bundle, lambda files: edit_rows(files, make_conform), hashed=True)
    found = problems(bundle)
    assert "the verdict is stored as 'violates', and the rows say 'conforms'" in found
    assert "has 1 rejected cell, its row says 0" in found


def test_a_row_that_was_made_to_look_waived_is_caught(bundle: Path) -> None:
    def waive(rows: list[dict]) -> None:
        for row in rows:
            if row["verdict"] == "crashed":
                row["verdict"] = "waived"

    change(bundle, lambda files: edit_rows(files, waive), hashed=True)
    assert "is said to be waived, and no waiver covers it" in problems(bundle)


def test_a_verdict_that_disagrees_with_its_own_row_is_caught(bundle: Path) -> None:
    def only_the_verdict(rows: list[dict]) -> None:
        for row in rows:
            if row["verdict"] == "violates":
                row["verdict"] = "conforms"

    change(bundle, lambda files: edit_rows(files, only_the_verdict), hashed=True)
    assert "is said to conform, and its own columns say it deviates" in problems(bundle)


@pytest.mark.parametrize("hashed", [False, True])
def test_a_changed_verdict_is_caught(bundle: Path, hashed: bool) -> None:
    def conform(files: Files) -> None:
        files["verdict.json"] = files["verdict.json"].replace(b'"violates",', b'"conforms",')

    change(bundle, conform, hashed)
    found = problems(bundle)
    assert "the verdict is stored as 'conforms', and the rows say 'violates'" in found
    assert ("changed: verdict.json" in found) != hashed


@pytest.mark.parametrize("name", ["tables/coverage.csv", ROWS, "run.json", "junit.xml"])
def test_a_removed_file_is_caught(bundle: Path, name: str) -> None:
    change(bundle, lambda files: files.pop(name) and None, hashed=False)
    assert f"removed: {name}" in problems(bundle)


def test_an_added_file_is_caught(bundle: Path) -> None:
    change(bundle, lambda files: files.update({"rows/more.jsonl": b""}), hashed=False)
    assert "added: rows/more.jsonl" in problems(bundle)


def test_changed_evidence_is_caught(bundle: Path) -> None:
    def heal(files: Files) -> None:
        (name,) = (name for name in files if name.endswith(".npz"))
        with np.load(io.BytesIO(files[name])) as stored:
            arrays = dict(stored)
        arrays["got"] = arrays["exact"]
        target = io.BytesIO()
        np.savez_compressed(target, **arrays)
        files[name] = target.getvalue()

    change(bundle, heal, hashed=True)
    assert "has 0 rejected cells, its row says 1" in problems(bundle)


def test_another_suite_is_named(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = {"version": "0.9.9", "content_hash": "f" * 64}
    monkeypatch.setattr(verification, "suite_identity", lambda: other)
    found = verify(bundle)
    assert found.overall is Overall.INCOMPLETE
    (problem,) = (problem for step in found.steps for problem in step.problems)
    assert "now again by 0.9.9 (ffffffffffff)" in problem


def test_a_changed_bundle_of_another_suite_does_not_stand(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "suite_identity", lambda: {"version": "0.9.9", "content_hash": "f" * 64})
    change(bundle, lambda files: edit_rows(files, make_conform), hashed=True)
    assert verify(bundle).overall is Overall.VIOLATES


def test_a_bundle_that_was_made_anew_has_another_fingerprint(bundle: Path) -> None:
    expected = verify(bundle).fingerprint
    assert verify(bundle, expected.upper()).overall is Overall.CONFORMS
    change(bundle, lambda files: files.update({"index.html": b"nothing"}), hashed=True)
    assert "the fingerprint is" in "\n".join(verify(bundle, expected).steps[0].problems)


def test_a_truncated_bundle_is_refused(bundle: Path) -> None:
    bundle.write_bytes(bundle.read_bytes()[:-100])
    result = CliRunner().invoke(main, ["verify", str(bundle)])
    assert result.exit_code == Overall.COULD_NOT_RUN
    assert "is no bundle" in result.output


def test_the_commands(run: Path, tmp_path: Path) -> None:
    target = str(tmp_path / "new" / "bundle.zip")
    made = CliRunner().invoke(main, ["package", str(run), "-o", target])
    assert made.exit_code == 0, made.output
    checked = CliRunner().invoke(main, ["verify", target, "--fingerprint", made.output.split()[-1]])
    assert checked.exit_code == 0
    assert "STANDS (exit status 0): the run in it violates" in checked.output


def test_a_run_without_a_single_row_can_be_packaged(tmp_path: Path) -> None:
    package(make_run(tmp_path / "run", Recipe(cases=0)), tmp_path / "bundle.zip")
    assert verify(tmp_path / "bundle.zip").overall is Overall.CONFORMS
    assert not read_rows(tmp_path / "run").num_rows
