"""Runs that several modules of tests look at: each is made once, for all workers of a session."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from poolproof.backends.emulator.defects import VARIABLE
from poolproof.reports.bundle.packing import package
from poolproof.reports.bundle.verification import Verification, verify
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import Overall
from poolproof.suites.rerun import REDRAW
from sessions import Ended, run_session, waiver

WIDE_LANES = {VARIABLE: "wide_lanes_halved"}
"""Makes the emulator lose planes where N*C leaves a remainder above 16 by 32."""

_WAIVER = waiver(
    scope='backend = "reports_backends:Mixed", operator = "AdaptiveMaxPool2dBackward"',
    more='checks = ["interval", "plane_sum", "layout_invariance", "scale_equivariance", "index_dtype_invariance"]',
)
_ASKED = [
    *("--operator", "MaxPool2dWithIndicesBackward", "--operator", "AdaptiveMaxPool2dBackward"),
    *("--dtype", "float32", "--dtype", "float64", "--aspect", "values", "--aspect", "layouts", "--cases", "3"),
]


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that the first worker that needs it lets ``make`` fill, and all others wait for. Nobody writes to it."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = factory.mktemp(name)
            make(unfinished)
            unfinished.rename(folder)
    return folder


def verified(run: Path, scratch: Path) -> Verification:
    """The verification of a bundle of a run, whose plan is drawn again; the bundle stands."""
    package(run, scratch / "bundle.zip")
    found = verify(scratch / "bundle.zip", draw=REDRAW)
    assert found.overall is Overall.CONFORMS, [problem for step in found.steps for problem in step.problems]
    return found


def make_failing_run(folder: Path) -> None:
    """``run``, with rows that conform, violate, crash and are waived, and its ``bundle.zip``."""
    waivers = folder / "waivers.toml"
    waivers.write_text(_WAIVER)
    given = ["--waivers", str(waivers), "--no-shrink"]
    ended = run_session(folder / "run", "reports_backends:Mixed", *given, asked=_ASKED, fresh=True)
    assert ended.status == Overall.VIOLATES, ended.output
    kinds = set(read_rows(ended.folder, ["verdict"])["verdict"].to_pylist())
    assert {"conforms", "violates", "crashed", "waived"} <= kinds
    package(ended.folder, folder / "bundle.zip")


def judged_with_wide_lanes(folder: Path, *options: str) -> Ended:
    """A session on the emulated NPU with that defect."""
    asked = ["--operator", "MaxPool3dWithArgmaxBackward", "--dtype", "float32", "--aspect", "values", "--cases", "12"]
    return run_session(folder, "emulator-a2", *options, asked=(*asked, "--no-shrink"), variables=WIDE_LANES)


def make_diagnosed_run(folder: Path) -> None:
    """``run``, which one case of twelve fails, and further cases that tell why; what was printed; ``bundle.zip``."""
    ended = judged_with_wide_lanes(folder / "run", "--diagnose", "60")
    assert ended.status == Overall.VIOLATES, ended.output
    (folder / "printed.txt").write_text(ended.output, encoding="utf-8")
    package(folder / "run", folder / "bundle.zip")
