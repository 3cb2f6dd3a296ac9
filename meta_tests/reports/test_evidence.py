"""What a violation leaves behind: evidence that says the same as its row, in files that are read as written."""

import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from holding import holding, judged_by
from poolproof.backends.base import Backend
from poolproof.references.accumulation import ACC32
from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS
from poolproof.reports.pages.plane import picture
from poolproof.reports.recorder import finished_work
from poolproof.reports.rows.evidence import (
    Evidence,
    EvidenceError,
    Meta,
    evidence_path,
    program_lines,
    read_evidence,
    shrunk_path,
    write_evidence,
    write_programs,
)
from poolproof.reports.rows.failures import kind_of
from poolproof.reports.rows.records import Done
from poolproof.reports.rows.rejudge import LATTICE, NAN, NEGATIVE_INFINITY, POSITIVE_INFINITY, ZERO, rejected
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import RowWriter
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.suites.cases.calls import call_parts
from poolproof.suites.cases.case import Case
from poolproof.suites.judging import evidence
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.contract import contract_question
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.measure import digest
from poolproof.suites.plan.aspects import CASE_ASPECTS, CONTRACT
from poolproof.suites.plan.blocks import CaseBlock
from poolproof.suites.plan.plans import Plan, Subject, blocks
from poolproof.suites.run.runner import Runner
from scatter_backends import FAULTS, refuses_dilation
from sessions import poolproof

BACKWARD, FORWARD = "MaxPool2dWithIndicesBackward", "MaxPool2dWithIndices"


def planned(operator: str, dtype: str, *aspects: str, cases: int = 20) -> list[CaseBlock]:
    subject = Subject("scatter", OPERATORS[operator], dtype, "int64")
    return list(blocks([subject], [CASE_ASPECTS[name] for name in aspects], Plan("meta", cases, ""), seed=4))


def asked(folder: Path, *blocks: CaseBlock) -> list[CaseQuestion]:
    evidence = EvidenceFolder(folder, "scatter")
    return [question.with_evidence_dir(evidence) for block in blocks for question in block.questions()]


@pytest.mark.parametrize(
    "fault", ["lost", "truncating", "half_accumulator", "unwritten", "zero_garbage", "unrepeatable"]
)
def test_evidence_of_a_backward_says_what_its_row_says(tmp_path: Path, fault: str) -> None:
    backend, _ = FAULTS[fault]
    found = 0
    for question in asked(tmp_path, *planned(BACKWARD, "float16", "values", "precision", "special_values", cases=40)):
        row = question.judge(backend())
        path = evidence_path(tmp_path, question.id, "scatter")
        assert path.exists() == (row["verdict"] == Verdict.VIOLATES)
        if path.exists():
            stored = read_evidence(path)
            assert int(stored.rejected.sum()) == row["n_reject"]
            assert picture(stored) is not None
            found += bool(row["n_reject"])
    assert found or fault == "unrepeatable"


def test_evidence_holds_what_went_in(tmp_path: Path) -> None:
    case = Case.of("MaxPool3dWithArgmaxBackward", shape=(2, 3, 4, 5, 6), kernel_size=(2,), padding=(1,))
    judged_lost(case, tmp_path)
    stored = read_evidence(evidence_path(tmp_path, case.id, "scatter"))
    arrays, element = stored.arrays, stored.meta["element"]
    indices, gradient = (arrays[name].reshape(2 * 3, -1) for name in ("indices", "gradient"))
    cells = (indices + 4 * 5 * 6 * np.arange(6)[:, None]).ravel()
    assert np.array_equal(np.bincount(cells, gradient.ravel(), arrays["exact"].size), arrays["exact"].ravel())
    assert stored.rejected[tuple(element)]
    coordinates = np.stack(np.unravel_index(indices, (4, 5, 6)), axis=-1)
    first, last = arrays["window_first"], arrays["window_last"]
    assert (first <= coordinates).all() and (coordinates <= last).all()
    assert (first[0].tolist(), last[-1].tolist()) == ([0, 0, 0], [3, 4, 5])


@pytest.mark.parametrize(("fault", "status"), [("writes_past", 2), ("lost", 1)])
def test_the_program_acquits_nobody_of_what_it_cannot_see(tmp_path: Path, fault: str, status: int) -> None:
    case = Case.of(BACKWARD, shape=(1, 1, 4, 6), kernel_size=(2,))
    row = asked_once(case, "interval", "memory_untouched", folder=tmp_path).judge(FAULTS[fault][0]())
    write_programs(tmp_path)
    path = evidence_path(tmp_path, case.id, "scatter")
    assert read_evidence(path).meta["checks"] == row["checks_violated"]
    again = ended_program("rejudge.py", path)
    assert (again.returncode, "violates memory_untouched" in again.stdout) == (status, status == 2)


@pytest.mark.parametrize(("fault", "tensor"), [("zero_padded", "out"), ("last_maximum", "indices")])
def test_evidence_of_a_forward_is_the_output_that_deviates(tmp_path: Path, fault: str, tensor: str) -> None:
    backend, check = FAULTS[fault]
    shown = set()
    for question in asked(tmp_path, *planned(FORWARD, "float32", "values", "special_values")):
        row = question.judge(backend())
        if row["checks_violated"][:1] == [check]:
            stored = read_evidence(evidence_path(tmp_path, question.id, "scatter"))
            assert stored.rejected[tuple(stored.meta["element"])]
            shown.add(stored.meta["tensor"])
    assert shown == {tensor}


def judged_lost(case: Case, folder: Path, backend: Backend | None = None) -> Row:
    return asked_once(case, "interval", folder=folder).judge(backend or FAULTS["lost"][0]())


def asked_once(case: Case, *checks: str, folder: Path) -> CaseQuestion:
    return CaseQuestion(case, holding(*checks), evidence=EvidenceFolder(folder, "scatter"))


def ended_program(name: str, evidence: Path) -> subprocess.CompletedProcess[str]:
    """How a program that lies beside evidence ends."""
    return subprocess.run([sys.executable, evidence.with_name(name), evidence], capture_output=True, text=True)


def test_a_refused_call_leaves_the_memory_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend := refuses_dilation(), "accumulation", lambda _: ACC32)
    fields = {"dtype": "float16", "gradient": "positive", "indices": "crowded", "stride": (1,)}
    case = Case.of(BACKWARD, shape=(1, 1, 16, 16), kernel_size=(3,), dilation=(2,), **fields)
    row = judged_lost(case, tmp_path, backend)
    assert row["checks_violated"] == ["refusal"]
    left = read_evidence(evidence_path(tmp_path, case.id, "scatter"))
    assert np.isnan(left.arrays["got"]).all()
    described = {name: row.get(name) for name in ("data", "model")} | {"case": case.to_json(), "output_digest": None}
    assert evidence.contradiction(described, left, is_shrunk=False) == ""


OVERLAPPING = Case.of(
    BACKWARD, shape=(2, 3, 4, 6), dtype="float16", kernel_size=(3,), stride=(1,), padding=(1,), gradient="positive"
)
"""Six planes of 24 cells and windows, wrong in many of them when sums are cut."""
OVERLAPPING_FORWARD = Case.of(FORWARD, shape=(2, 3, 4, 6), dtype="float16", kernel_size=(3,), stride=(1,), padding=(1,))


def test_a_bundle_holds_what_a_backward_left_against_its_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = OVERLAPPING
    row = asked_once(case, "interval", folder=tmp_path).judge(FAULTS["truncating"][0]())
    left = read_evidence(evidence_path(tmp_path, case.id, "scatter"))

    def contradicted(*, changed: Mapping[str, Any] = {}, **meta: Any) -> str:
        forged = Evidence({**left.arrays, **changed}, Meta(**{**left.meta, **meta}))  # type: ignore[typeddict-item]
        return evidence.contradiction({"shrunk": None, "data": None, **row}, forged, is_shrunk=False)

    assert contradicted() == ""
    for name in ("high", "exact", "gradient"):
        assert f"another array {name!r}" in contradicted(changed={name: left.arrays[name] + 1})
    assert "another output" in contradicted(changed=dict.fromkeys(("got", "low", "high"), left.arrays["exact"]))
    assert "another call" in contradicted(case=replace(case, seed=1).to_json())
    assert "which is not that of its case" in contradicted(spatial_rank=3)
    monkeypatch.setattr(evidence, "MAX_ELEMENTS", 24)
    assert "too large to leave any" in contradicted()


@pytest.mark.parametrize(
    ("values", "fault", "check"), [("negative", "zero_padded", "maximum"), ("ties", "last_maximum", "index_rule")]
)
def test_a_bundle_holds_what_a_forward_left_against_its_case_and_rule(
    values: str, fault: str, check: str, tmp_path: Path
) -> None:
    case = replace(OVERLAPPING_FORWARD, values=values)
    row = asked_once(case, check, folder=tmp_path).judge(FAULTS[fault][0]())
    left = read_evidence(evidence_path(tmp_path, case.id, "scatter"))

    def contradicted(row: Row, **changed: Any) -> str:
        return evidence.contradiction(row, Evidence({**left.arrays, **changed}, left.meta), is_shrunk=False)

    said = {"n_reject": None, "output_digest": None, **row}
    assert (row["model"], contradicted(said)) == ("first", "")
    assert "another array 'high'" in contradicted(said, high=left.arrays["high"] + 1)
    assert ("another array" in contradicted(said | {"model": "last"})) == (check == "index_rule")
    assert contradicted(said | {"data": ["nothing"]}) == "has other data than its row says"


@pytest.mark.parametrize(("extra", "leaves"), [(0, True), (1, False)])
def test_a_case_leaves_evidence_up_to_a_million_elements(tmp_path: Path, extra: int, leaves: bool) -> None:
    case = Case.of(BACKWARD, shape=(100 + extra, 100, 10, 10), kernel_size=(2,))
    judged_lost(case, tmp_path)
    assert evidence_path(tmp_path, case.id, "scatter").exists() == leaves


LOST = "scatter_backends:lost"


@pytest.mark.usefixtures("forked_sandboxes")
def test_a_run_keeps_a_few_of_each_kind_and_no_more_where_it_is_resumed(tmp_path: Path) -> None:
    rows = record_lost(tmp_path, most_evidence=3)
    failed = [row for row in rows if row["verdict"] in FAILED]
    left = {path.stem.rpartition("-")[2]: path for path in tmp_path.glob("evidence/*.npz")}
    assert left.keys() < {row["case_id"] for row in failed}
    of_left = {tuple(row["checks_violated"]) for row in failed if row["case_id"] in left}
    assert of_left == {tuple(row["checks_violated"]) for row in failed}
    with closing(RowWriter(tmp_path, "main")) as writer:
        for row in rows:
            writer.append(row)
    done = Done(evidence=finished_work(tmp_path).evidence)
    for path in left.values():
        path.unlink()
    record_lost(tmp_path, most_evidence=3, done=done)
    assert not [*tmp_path.glob("evidence/*.npz")]


@pytest.mark.usefixtures("forked_sandboxes")
@pytest.mark.parametrize("wanted", [False, True])
def test_evidence_is_left_where_it_is_wanted(tmp_path: Path, wanted: bool) -> None:
    (block,) = planned(BACKWARD, "float16", "values")
    asked: list[Row] = []

    def wants(row: Row) -> bool:
        asked.append(row)
        return wanted

    folder = EvidenceFolder(tmp_path, "scatter", wants=wants)
    rows = judged_by(LOST, [question.with_evidence_dir(folder) for question in block.questions()[:4]], tmp_path)
    failed = [(row["case_id"], row["checks_violated"]) for row in rows if row["verdict"] in FAILED]
    assert failed
    assert [(row["case_id"], row["checks_violated"]) for row in asked] == failed
    assert len([*tmp_path.glob("evidence/*.npz")]) == (len(failed) if wanted else 0)


def record_lost(folder: Path, rows: list[Row] | None = None, shrinks: bool = False, **options: Any) -> list[Row]:
    """The rows of a block on a backend that loses a gradient, as they are recorded."""
    (block,), recorded = planned(BACKWARD, "float16", "values"), [] if rows is None else rows
    options["shrinks"] = shrinks
    runner = Runner(folder, "main", lambda row: row, lambda row: recorded.append(dict(row)), 60.0, **options)
    with closing(runner):
        runner.judge(replace(block, subject=replace(block.subject, backend=LOST)))
    return recorded


@pytest.mark.usefixtures("forked_sandboxes")
def test_an_interruption_costs_the_smaller_case_and_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CaseBlock, "smaller", Mock(side_effect=KeyboardInterrupt))
    rows: list[Row] = []
    with pytest.raises(KeyboardInterrupt):
        record_lost(tmp_path, rows, shrinks=True)
    assert len({row["case_id"] for row in rows}) == len(rows) == 20


@pytest.mark.usefixtures("forked_sandboxes")
def test_the_first_failure_of_each_kind_is_shrunk_after_its_block_and_leaves_its_evidence(tmp_path: Path) -> None:
    rows = record_lost(tmp_path, shrinks=True)
    kinds = {kind_of(row) for row in rows if row["verdict"] in FAILED}
    last = rows[-len(kinds) :]
    assert {kind_of(row) for row in last} == kinds
    assert all(len(row["shrunk"]) <= len(row["case"]) for row in last)
    assert not any("shrunk" in row for row in rows[: -len(kinds)])
    assert len({row["case_id"] for row in rows}) == len(rows) == 20
    row = rows[-1]
    stored, smallest = read_evidence(shrunk_path(tmp_path, row["case_id"], LOST)), Case.from_json(row["shrunk"])
    assert stored.rejected.any()
    assert stored.arrays["got"].shape == smallest.shape
    assert stored.meta["call"]["tensors"]["indices"]["shape"] == list(smallest.pooled_shape)
    with closing(RowWriter(tmp_path, "main")) as writer:
        writer.append(row | {"backend": "torch-cpu"})
    for path in (evidence_path, shrunk_path):
        path(tmp_path, row["case_id"], LOST).rename(path(tmp_path, row["case_id"], "torch-cpu"))
    assert "call.py evidence/shrunk/" in program_lines(tmp_path, row["case_id"], "torch-cpu")[0]


@pytest.mark.thorough
def test_replay_and_call_say_that_the_call_of_a_large_case_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "MAX_ARRAY", 100)
    case = Case.of(BACKWARD, shape=(1, 2, 4, 4), kernel_size=(2,))
    asked = ("replay", "--interactive", "--evidence", tmp_path, "--backend", LOST, case.to_json())
    told = poolproof(*asked, typed="print('held:', got.shape)\n")
    assert "call is too large to be kept" in told.output and "call.py" not in told.output, told.output
    assert "held: (1, 2, 4, 4)" in told.output
    path = evidence_path(tmp_path, case.id, LOST)
    ended = ended_program("call.py", path)
    line = f"poolproof replay --backend {LOST} '{case.to_json()}'\n"
    assert (ended.returncode, ended.stderr) == (1, f"the case is too large for the file to hold its call: {line}")


@pytest.mark.thorough
def test_replay_names_what_it_leaves(tmp_path: Path) -> None:
    line = Case.of(BACKWARD, shape=(1, 1, 4, 4), kernel_size=(2,)).to_json()
    told = poolproof("replay", "--backend", LOST, line)
    assert told.exit_code == 1 and "add --evidence DIR" in told.output, told.output
    told = poolproof("replay", "--backend", LOST, "--evidence", tmp_path, line)
    (again,) = re.findall("judged again by.* python (.*) (.*)", told.output)
    ended = subprocess.run([sys.executable, *again], capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stdout.startswith("1 of 16 elements are not admissible\n  [0, 0, ")
    assert ": got 0, expected " in ended.stdout
    outside = "print('outside:', int(((got < low) | (got > high)).sum()))\n"
    told = poolproof("replay", "--interactive", "--backend", LOST, line, typed=outside)
    assert told.exit_code == 1 and "outside: 1" in told.output, told.output


def test_a_case_that_ended_its_process_leaves_evidence_and_a_low_level_call_none(tmp_path: Path) -> None:
    folder = EvidenceFolder(tmp_path, "scatter")
    part = next(call_parts(PRODUCTS["A2"], f"aclnn{BACKWARD}", 0, 0))
    (_, _, call), *_ = part.make()
    folder.write_unfinished(contract_question(call, PRODUCTS["A2"], CONTRACT).describe() | {"verdict": Verdict.CRASHED})
    assert not list(tmp_path.rglob("*.npz"))
    for operator in (BACKWARD, FORWARD):
        case = Case.of(operator, dtype="float16", shape=(1, 2, 5, 5), kernel_size=(2,))
        folder.write_unfinished({"verdict": Verdict.CRASHED, "case": case.to_json()})
        stored = read_evidence(evidence_path(tmp_path, case.id, "scatter"))
        assert stored.rejected.all() and np.isnan(stored.arrays["got"]).all()
        assert stored.meta["call"]["operator"] == operator


# Files of evidence.


def arrays() -> dict[str, Any]:
    one = np.ones((1, 2, 2))
    return {"got": one, "low": one - 1, "high": one, "flags": np.zeros(one.shape, np.uint8)}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = evidence_path(tmp_path, "0123456789ab", "my.module:Backend")
    write_evidence(path, arrays(), Meta(tensor="grad_input"))
    assert path.name == "my.module_Backend-0123456789ab.npz"
    evidence = read_evidence(path)
    assert evidence.meta == {"tensor": "grad_input"}
    assert not evidence.rejected.any()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("got", "low", "high", "flags", "lattice", "admissible"),
    [
        (1.0, 1.0, 1.0, 0, 0, True),
        (1.5, 1.0, 1.25, 0, 0, False),
        (1.5, 1.0, 2.0, LATTICE, 0, False),
        (1.5, 1.0, 2.0, LATTICE, -1, True),
        (1.5, 1.0, 2.0, 0, 0, True),
        (np.inf, 1.0, 2.0, 0, 0, False),
        (np.inf, 1.0, 2.0, POSITIVE_INFINITY, 0, True),
        (-np.inf, 1.0, 2.0, POSITIVE_INFINITY, 0, False),
        (-np.inf, 1.0, 2.0, NEGATIVE_INFINITY, 0, True),
        (np.nan, -np.inf, np.inf, 0, 0, False),
        (np.nan, 1.0, 0.0, NAN, 0, True),
        (0.5, 1.0, 0.0, NAN, 0, False),
        (0.0, 1.0, 2.0, ZERO, 0, True),
        (-0.0, 0.0, 0.0, LATTICE, 5, True),
        (65504.0, 0.0, 65504.0, LATTICE, 20, True),
    ],
)
def test_judging_again(got: float, low: float, high: float, flags: int, lattice: int, admissible: bool) -> None:
    stored = {name: np.array([value]) for name, value in (("got", got), ("low", low), ("high", high))}
    stored |= {"flags": np.array([flags], np.uint8), "lattice": np.array([lattice], np.int32)}
    assert rejected(stored, limit=65504.0).tolist() == [not admissible]


def test_wrong_arrays_and_damaged_files_are_named(tmp_path: Path) -> None:
    complete = arrays()
    for wrong, complaint in (
        (complete | {"low": np.zeros(3)}, "'low' must have the shape of 'got'"),
        (complete | {"colour": np.zeros(3)}, "no array 'colour'"),
        (complete | {"gradient": np.zeros(3)}, "'gradient' must come with 'indices'"),
        ({name: complete[name] for name in complete if name != "high"}, "'high' is missing"),
    ):
        with pytest.raises(EvidenceError, match=complaint):
            write_evidence(tmp_path / "a.npz", wrong, Meta())
    assert not list(tmp_path.rglob("*.npz"))
    np.savez(tmp_path / "x.npz", meta=np.array("{}"), **complete | {"low": np.zeros((1, 2, 2), int)})
    with pytest.raises(EvidenceError, match="array 'low' must be float64, not int64"):
        read_evidence(tmp_path / "x.npz")
    for content in (b"", b"PK\x03\x04", b"something else"):
        (tmp_path / "x.npz").write_bytes(content)
        with pytest.raises(EvidenceError, match="is not evidence of a case"):
            read_evidence(tmp_path / "x.npz")


def test_a_digest_is_of_values_where_machines_make_other_nans() -> None:
    here, there = (np.array([1.0, nan], np.float32) for nan in (np.nan, np.copysign(np.nan, -1.0)))
    assert here.tobytes() != there.tobytes()
    assert digest(here) == digest(there) != digest(np.array([np.nan, 1.0], np.float32))
    assert digest(np.array([0.0])) != digest(np.array([-0.0]))
