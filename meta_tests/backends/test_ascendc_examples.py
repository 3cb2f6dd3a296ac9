"""Kernels of `examples/kernels` are right, and what watches them finds nothing."""

from itertools import islice, zip_longest

import pytest

from places import ROOT
from poolproof.backends.ascendc.manifest import Kernel
from poolproof.backends.registry import create, prepare
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, blocks, subjects
from shares import a_share

MANIFESTS = {path.stem: path for path in sorted((ROOT / "examples" / "kernels").glob("*.toml"))}
COMPILED = [(name, dtype) for name, path in MANIFESTS.items() for dtype in Kernel(str(path)).manifest.dtypes]
FEW = 10


@pytest.mark.parametrize(("kernel", "dtype"), a_share(COMPILED))
def test_an_example_conforms(kernel: str, dtype: str) -> None:
    """On the first cases of its smoke plan, of each aspect in turn, but for those that take long."""
    name = f"ascendc:{MANIFESTS[kernel]}"
    prepare(name, lambda _: None, dtype)
    backend = create(name)
    chosen = [aspect for aspect in CASE_ASPECTS.values() if not aspect.costly]
    asked = [subject for subject in subjects("", backend) if subject.dtype == dtype and not subject.unsupported]
    turns = zip_longest(*(block.questions() for block in blocks(asked, chosen, PLANS["smoke"], 1)))
    questions = [question for turn in islice(turns, FEW) for question in turn if question is not None][:FEW]
    assert len(questions) == FEW
    for question in questions:
        row = question.judge(backend)
        assert row["verdict"] == Verdict.CONFORMS, row["reason"]


def test_manifests_of_examples_are_short() -> None:
    assert len(COMPILED) == 6
    for path in MANIFESTS.values():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 20, path.stem
