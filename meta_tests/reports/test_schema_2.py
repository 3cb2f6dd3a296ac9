"""A run that an earlier suite wrote, with rows of schema 2, is read, shown, verified and kept as it was.

The bundle holds six judged cases of the emulator with a defect, one of which violates and left evidence.
"""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from places import GOLDEN
from poolproof.reports.bundle.verification import verify
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.figures.history import add, query, read_entries
from poolproof.reports.pages.precision import write_precision_page
from poolproof.reports.rows.arrow import SCHEMA
from poolproof.reports.rows.evidence import read_evidence
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import Overall

BUNDLE = GOLDEN / "bundle_of_schema_2.zip"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with ZipFile(BUNDLE) as archive:
        archive.extractall(tmp_path / "run")
    return tmp_path / "run"


def test_it_is_verified_by_its_own_verdict() -> None:
    verification = verify(BUNDLE)
    assert [step.problems for step in verification.steps if step.overall is Overall.VIOLATES] == []
    assert "rows of schema 2" in [step.text for step in verification.steps]
    assert verification.verdict.startswith("violates; deviating and not waived: 1 of 6 judged cases")


def test_its_rows_are_read_without_the_columns_that_went(run: Path) -> None:
    (part,) = (run / "rows").glob("*.parquet")
    assert {"comm_level", "rmse"} <= set(pq.read_schema(part).names)
    rows = read_rows(run)
    assert rows.schema.names == SCHEMA.names
    assert read_rows(run, ["n_reject"], pc.field("verdict") == "violates")["n_reject"].to_pylist()[0] > 0


def test_a_journal_of_it_is_read_alike(run: Path) -> None:
    (part,) = (run / "rows").glob("*.parquet")
    lines = [json.dumps(row) for row in pq.read_table(part).to_pylist()]
    expected = read_rows(run).sort_by("case_id")
    part.unlink()
    (run / "rows" / "main-0000.jsonl").write_text("\n".join(lines) + "\n")
    assert read_rows(run).sort_by("case_id").equals(expected)


def test_its_pages_and_its_evidence_are_there(run: Path, tmp_path: Path) -> None:
    assert write_precision_page(read_digest(run), tmp_path / "precision.html") is not None
    (path,) = (run / "evidence").glob("*.npz")
    assert read_evidence(path).rejected.any()


def test_it_can_be_kept_in_a_history(run: Path, tmp_path: Path) -> None:
    add(tmp_path / "history", run)
    entries = read_entries(tmp_path / "history")
    assert query(entries, "SELECT count(*) AS rows FROM rows WHERE verdict = 'violates'")["rows"].to_list() == [1]
