"""Budgets: each room has a limit on its lines of Python, and so has the way of one case through the code."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from holding import holding
from places import ROOT
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.run.sandbox import Sandbox

LINES = {
    "references": 8_500,
    "backends": 6_000,
    "suites": 18_000,
    "reports": 11_000,
    "meta_tests": 25_500,
    "studies": 2_000,
}
"""Lines of Python of each room: the next 500 above the count, so that a small addition needs no new budget."""

CLASSES, FRAMES = 24, 16
"""Classes whose methods one case's way enters, and the most of our frames at a time, from the question to its row."""


@pytest.mark.parametrize("room", LINES)
def test_a_room_keeps_its_budget(room: str) -> None:
    lines = sum(len(path.read_bytes().splitlines()) for path in (ROOT / room).rglob("*.py"))
    assert lines <= LINES[room], "a room that outgrows its budget raises it, and the commit says what that buys"


def test_a_cases_way_keeps_its_budget(tmp_path: Path) -> None:
    sandbox = Sandbox("scatter_backends:honest", tmp_path, "budget", 20.0)
    case = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 2, 5, 5), kernel_size=(2,))
    classes: set[tuple[str, str]] = set()
    depths = [0]

    def enter(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not _is_ours(frame):
            return
        *_, owner, _ = ["", "", *frame.f_code.co_qualname.split(".")]
        if owner and not owner.startswith("<"):
            classes.add((frame.f_code.co_filename, owner))
        depth, outer = 0, frame
        while outer is not None:
            depth, outer = depth + _is_ours(outer), outer.f_back  # type: ignore[assignment]
        depths.append(depth)

    try:
        list(sandbox.judge([CaseQuestion(case, holding("interval", "repeat"), "block")]))
        sys.setprofile(enter)
        (row,) = sandbox.judge([CaseQuestion(case, holding("interval", "repeat"), "block")])
    finally:
        sys.setprofile(None)
        sandbox.close()
    assert row["verdict"] == "conforms"
    assert len(classes) <= CLASSES
    assert max(depths) <= FRAMES


def _is_ours(frame: FrameType) -> bool:
    return any(frame.f_code.co_filename.startswith(f"{ROOT / room}/") for room in ("references", "backends", "suites"))
