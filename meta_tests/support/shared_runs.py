"""Runs that several modules of tests look at: each is made once, for all workers of a session."""

import fcntl
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from poolproof.backends.emulator.defects import VARIABLE
from poolproof.reports.bundle.packing import package
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import Overall
from poolproof.suites.verify.verification import Verification, verify
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
    found = verify(scratch / "bundle.zip")
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


# Real failing runs: sessions against the emulated NPU, each narrowed to what its seeded defect shows in.

BACKEND = "emulator-a2"


@dataclass(frozen=True)
class RealRun:
    """A session with a ``defect``, empty for the honest library, that is ``asked`` some questions.

    ``violated`` is a check that the defect breaks there, of the given ``kind`` of failure.
    """

    defect: str
    kind: str
    asked: tuple[str, ...]
    violated: str
    backend: str = BACKEND

    @property
    def name(self) -> str:
        return self.kind.replace(" ", "_")


def _drawn(operator: str, aspect: str, cases: int) -> tuple[str, ...]:
    return ("--operator", operator, "--dtype", "float32", "--aspect", aspect, "--cases", str(cases))


def _planar(dtype: str, planes: int) -> tuple[str, ...]:
    """One dilated 3-D backward, as a line of JSON."""
    case = {"operator": "MaxPool3dWithArgmaxBackward", "dtype": dtype, "index_dtype": "int32"}
    window = {"kernel_size": [1, 2, 2], "stride": [1, 1, 1], "padding": [0, 0, 0], "dilation": [1, 2, 2]}
    return ("--case", json.dumps(case | {"shape": [planes, 1, 1, 4, 4]} | window))


ADAPTIVE_2D, ADAPTIVE_3D = "AdaptiveMaxPool2dBackward", "AdaptiveMaxPool3dBackward"
WINDOWED_3D = "MaxPool3dWithArgmaxBackward"
CLAUSES = ("--operator", "MaxPool2dWithIndicesBackward", "--aspect", "contract", "-k", "contract-clauses")
REPEATED = _drawn("MaxPool2dWithIndicesBackward", "determinism", 4)

FAILING = (
    RealRun("assign_not_accumulate", "value", _drawn(WINDOWED_3D, "values", 6), "interval"),
    RealRun("decode_by_output_width", "index", _drawn(ADAPTIVE_2D, "values", 4), "interval"),
    RealRun("last_maximum_wins", "forward", _drawn("AdaptiveMaxPool3d", "values", 6), "index_rule"),
    RealRun("nan_dropped", "special values", _drawn(WINDOWED_3D, "special_values", 6), "interval"),
    RealRun("gradient_strides_ignored", "layouts", _drawn(ADAPTIVE_3D, "layouts", 4), "layout_invariance"),
    RealRun("write_past_output", "memory", _drawn(ADAPTIVE_2D, "values", 3), "memory_untouched"),
    RealRun("leak_per_call", "leak", _drawn(ADAPTIVE_2D, "memory", 40), "memory_kept"),
    RealRun("indices_made_global", "inputs", _drawn(ADAPTIVE_3D, "values", 4), "inputs_untouched"),
    RealRun("output_address_kept", "state", _drawn(ADAPTIVE_2D, "state", 4), "modes"),
    RealRun("inputs_read_at_the_call", "streams", _drawn(WINDOWED_3D, "streams", 40), "streams"),
    RealRun("null_executor_accepted", "phases", _drawn(ADAPTIVE_2D, "phases", 1), "phase_status"),
    RealRun("result_dtype_unchecked", "contract", CLAUSES, "status"),
    RealRun("crash_on_uneven_cores", "crash", _planar("float32", 49), "survival"),
    RealRun("hang_on_idle_core", "hang", (*_planar("float16", 1), "--case-timeout", "2"), "survival"),
    RealRun("", "flaky", REPEATED, "repeat", "scatter_backends:unrepeatable"),
)
"""At least one of every kind of failure."""

SEEDED = tuple(real for real in FAILING if real.defect)
"""Those that the honest library does not have."""


def honest(real: RealRun) -> RealRun:
    """The library without the defect, asked the same."""
    return RealRun("", f"honest {real.kind}", real.asked, "", real.backend)


RunOf = Callable[[RealRun], Path]


def run_of(real: RealRun, factory: pytest.TempPathFactory) -> Path:
    """The folder of a run, which is made once; beside it the ``bundle.zip`` of a failing one, and its ``sha256``."""
    return made_once(factory, f"real-{real.name}", partial(_make_real, real)) / "run"


def variables(real: RealRun) -> dict[str, str]:
    return {VARIABLE: real.defect} if real.defect else {}


def _make_real(real: RealRun, folder: Path) -> None:
    ended = run_session(folder / "run", real.backend, "--no-shrink", asked=real.asked, variables=variables(real))
    assert ended.status == (Overall.VIOLATES if real.violated else Overall.CONFORMS), ended.output
    if real.violated:
        (folder / "sha256").write_text(package(ended.folder, folder / "bundle.zip"), encoding="utf-8")
