"""What FINDINGS.md says about torch: each plain program still shows it, and the suite tells it for what it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date

import pytest

import forked
from finding_programs import Ended, Program, programs, run_afresh
from forked import Command
from places import ROOT
from poolproof.backends.registry import create
from poolproof.reports.rows.verdicts import Verdict
from poolproof.reports.waivers import Waivers, load, shipped
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion, judge
from poolproof.suites.judging.checks import CHECKS, run_checks
from poolproof.suites.judging.trial import Trial
from poolproof.suites.plan.aspects import EVERYTHING
from sessions import surroundings

pytest.importorskip("torch")


def violated(**case: object) -> set[str]:
    trial = Trial(Case.from_json(json.dumps(case)), create("torch-cpu"))
    ids = tuple(name for name in CHECKS if name not in ("modes", "state", "memory_kept"))
    return {finding.check for finding in run_checks(trial, ids)[1]}


WINDOWED = {"operator": "MaxPool3dWithArgmax", "shape": [1, 2, 2, 3, 3], "kernel_size": [1]}


def test_a_pool_gives_its_outputs_other_strides_or_ignores_those_of_what_it_writes() -> None:
    for layouts, expected in (
        ({"self": "channels_last"}, {"results"}),
        ({"out": "sliced"}, {"results", "memory_untouched"}),
        ({"indices": "sliced"}, {"results", "memory_untouched"}),
        ({"self": "sliced"}, set()),
    ):
        assert violated(**WINDOWED, layouts=layouts) == expected, layouts
    adaptive = {"operator": "AdaptiveMaxPool3d", "shape": [1, 2, 2, 3, 3], "output_size": [2, 3, 3]}
    found = violated(**adaptive, layouts={"out": "sliced"})
    assert {"maximum", "layout_invariance"} <= found and "results" not in found


@pytest.mark.parametrize("tensor", ["indices", "grad_input"])
def test_a_single_case_of_what_the_adaptive_backward_ignores_is_waived_as_a_whole(tensor: str) -> None:
    """With the indices of its own forward, too, which lie in memory as those of the case."""
    backend = create("torch-cpu")
    shape = {"operator": "AdaptiveMaxPool3dBackward", "shape": [2, 2, 2, 3, 4], "output_size": [2, 2, 2]}
    case = Case.from_record(shape | {"layouts": {tensor: "transposed"}})
    row = judge(CaseQuestion(case, EVERYTHING), backend) | {"backend": "torch-cpu"}
    assert "round_trip" in row["checks_violated"]
    waivers = Waivers([waiver for path in shipped() for waiver in load(path)], date(2026, 12, 1))
    assert waivers.apply(row, backend.environment())["verdict"] == Verdict.WAIVED


PROGRAMS = programs("torch 2.13.0, CPU") + programs("torch 2.13.0, tensors of oneDNN")


def run_forked(program: Program) -> Ended:
    """In a process that has torch already: to load it takes longer than any of the programs."""
    return forked.run(Command("python", [program.whole], ROOT, surroundings()))


@pytest.mark.parametrize(("program", "run"), [(PROGRAMS[0], run_afresh), *((each, run_forked) for each in PROGRAMS)])
def test_the_plain_program_still_shows_it(program: Program, run: Callable[[Program], Ended]) -> None:
    ended = run(program)
    assert program.still_shows(ended), (ended.returncode, ended.stdout, ended.stderr)
