"""Real failing runs: sessions against the emulated NPU, each with a seeded defect, made once for all that read them.

Each run is narrowed to what its defect shows in.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from poolproof.backends.emulator.defects import VARIABLE
from poolproof.reports.bundle.packing import package
from poolproof.reports.rows.verdicts import Overall
from sessions import run_session
from shared_runs import made_once

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
    RealRun("hang_on_idle_core", "hang", (*_planar("float16", 1), "--case-timeout", "3"), "survival"),
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
    return made_once(factory, f"real-{real.name}", partial(_make, real)) / "run"


def variables(real: RealRun) -> dict[str, str]:
    return {VARIABLE: real.defect} if real.defect else {}


def _make(real: RealRun, folder: Path) -> None:
    ended = run_session(folder / "run", real.backend, "--no-shrink", asked=real.asked, variables=variables(real))
    assert ended.status == (Overall.VIOLATES if real.violated else Overall.CONFORMS), ended.output
    if real.violated:
        (folder / "sha256").write_text(package(ended.folder, folder / "bundle.zip"), encoding="utf-8")
