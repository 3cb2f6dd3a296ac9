"""What a call leaves otherwise than it was in its process is named, and touches no other row."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from holding import holding
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.isolation.sandbox import Sandbox
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import CHECKS
from untidy_backends import LEFT

CASE = Case.of(operator="MaxPool2dWithIndicesBackward", shape=(1, 2, 5, 5), kernel_size=(2,), gradient="uniform")
ASPECT = holding(*CHECKS)
QUESTIONS = [
    CaseQuestion(replace(CASE, seed=seed, attributes=replace(CASE.attributes, ceil_mode=seed in (1, 4))), ASPECT)
    for seed in range(6)
]


def judged(backend: str, scratch: Path) -> list[Row]:
    with closing(Sandbox(backend, scratch, "sandbox", 20.0)) as sandbox:
        return [*sandbox.judge(QUESTIONS), *sandbox.unplanned]


@cache
def honest() -> list[Row]:
    with TemporaryDirectory() as scratch:
        return judged("scatter_backends:honest", Path(scratch))


def comparable(row: Row) -> Row:
    others = {"seconds", "call_seconds", "judged_at", "backend", "given"}
    return {name: value for name, value in row.items() if name not in others}


def test_an_honest_call_leaves_its_process_as_it_was() -> None:
    for row in honest():
        assert row["verdict"] == Verdict.CONFORMS
        assert "process_untouched" in row["checks_judged"]


@pytest.mark.usefixtures("forked_sandboxes")
@pytest.mark.parametrize("backend", LEFT)
def test_what_a_call_changes_is_named_and_accuses_no_other(tmp_path: Path, backend: str) -> None:
    here, umask = Path.cwd(), os.umask(0o022)
    os.umask(umask)
    rows = judged(f"untidy_backends:{backend}", tmp_path)
    _, what = LEFT[backend]
    assert len(rows) == len(QUESTIONS)
    for row, question, owed in zip(rows, QUESTIONS, honest(), strict=True):
        if not question.case.attributes.rounds_up:
            assert comparable(row) == comparable(owed)
            continue
        assert row["verdict"] == Verdict.VIOLATES
        assert row["checks_violated"] == ["process_untouched"]
        assert what in row["reason"]
    assert Path.cwd() == here
    assert os.umask(umask) == umask
