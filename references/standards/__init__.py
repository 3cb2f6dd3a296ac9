"""Acceptance standards of others, which a contract may name.

Each is a small policy with its thresholds per dtype as data and its source. `APPLICATIONS` says who applies it to this
family, as far as public material says: one operator meets several, and they disagree, which is why each row of a report
carries all of them. None decides a verdict: `poolproof.references.criterion` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from poolproof.references.deviations import Deviations
from poolproof.references.standards.base import Standard
from poolproof.references.standards.commercial import COMMERCIAL
from poolproof.references.standards.ecosystem import ECOSYSTEM
from poolproof.references.standards.frameworks import FRAMEWORKS, share_close
from poolproof.references.standards.msprobe import MSPROBE

__all__ = ["APPLICATIONS", "STANDARDS", "Application", "Standard", "judge_all", "share_close"]

STANDARDS: dict[str, Standard] = {
    standard.name: standard for family in (ECOSYSTEM, COMMERCIAL, FRAMEWORKS, MSPROBE) for standard in family
}
"""Every policy by its name."""


def judge_all(deviations: Deviations, names: Iterable[str] = STANDARDS) -> dict[str, bool | None]:
    """Return whether each named standard passes; None where it does not apply."""
    return {name: STANDARDS[name].judge(deviations) for name in names}


@dataclass(frozen=True)
class Application:
    """``standards`` that somebody applies to ``operators`` (names of backward operators, empty for all).

    ``setting`` says where; an empty ``standards`` means that the rule is not known.
    """

    setting: str
    operators: tuple[str, ...]
    standards: tuple[str, ...]
    source: str


_ARGMAX_3D = "MaxPool3dWithArgmaxBackward"
_INDICES_2D = "MaxPool2dWithIndicesBackward"
_MASK_2D = "MaxPool2dWithMaskBackward"
_ADAPTIVE_2D = "AdaptiveMaxPool2dBackward"
_ADAPTIVE_3D = "AdaptiveMaxPool3dBackward"

_ST_LISTS = "NN operator library, system test lists of the pooling gradients"

APPLICATIONS = (
    Application(
        "contribution to the operator ecosystem",
        (),
        ("ecosystem-2026-04", "ecosystem-2026-07-fixed-limit", "ecosystem-2026-09"),
        "ecosystem standard, its three generations",
    ),
    Application(
        "commercial delivery, routine operator", (), ("commercial-l0",), "commercial standard, levels; pooling is named"
    ),
    Application("commercial delivery, important operator", (), ("commercial-l1",), "commercial standard, levels"),
    Application("commercial delivery, key operator", (), ("commercial-l2",), "commercial standard, levels"),
    Application("TTK system test of the 2-D gradient", (_INDICES_2D, _MASK_2D), ("ttk-close",), _ST_LISTS),
    Application(
        "ATK system test, single_bm", (_INDICES_2D, _ADAPTIVE_2D, _ADAPTIVE_3D), ("atk-single",), f"{_ST_LISTS} (ATK)"
    ),
    Application(
        "ATK system test, default", (_ARGMAX_3D, _MASK_2D), (), f"{_ST_LISTS} (ATK): what default means is not said"
    ),
    Application("CANN kernel benchmark", (_ARGMAX_3D,), ("cann-bench",), "task of the 3-D max pooling gradient"),
    Application(
        "msprobe accuracy checker, max_pool3d", (_ARGMAX_3D,), ("msprobe-binary",), "list of binary consistency"
    ),
    Application(
        "msprobe accuracy checker, other pools",
        (_INDICES_2D, _MASK_2D, _ADAPTIVE_2D, _ADAPTIVE_3D),
        ("msprobe-benchmark",),
        "APIs in none of the lists are benchmarked",
    ),
    Application(
        "torch_npu unit tests of the windowed pools",
        (_INDICES_2D, _ARGMAX_3D),
        ("npu-assert-rtol",),
        "operator plugin, base operator tests",
    ),
    Application(
        "torch_npu unit tests of the adaptive pools",
        (_ADAPTIVE_2D, _ADAPTIVE_3D),
        ("npu-assert-rtol-adaptive",),
        "operator plugin, base operator tests",
    ),
    Application(
        "experimental max pooling gradient",
        (_INDICES_2D,),
        ("ops-nn-experimental",),
        "NN operator library, experimental folder",
    ),
    Application(
        "community task of September 2026",
        (_MASK_2D,),
        ("ecosystem-2026-09",),
        "task 09-47; its golden result adds in float32 in memory order and casts once",
    ),
    Application("PyTorch operator tests", (), ("torch-assert-close",), "operator database without an override"),
    Application("Inductor's accuracy check on Ascend", (), ("torch-assert-close",), "compiler option, torch's table"),
    Application("oneDNN benchdnn", (), ("benchdnn-strict",), "pooling driver"),
    Application("FlagGems tests, 2-D", (_INDICES_2D,), ("flaggems-max-pool2d",), "test of max_pool2d"),
    Application(
        "FlagGems tests, adaptive 2-D",
        (_ADAPTIVE_2D,),
        ("flaggems-adaptive-max-pool2d",),
        "test of adaptive_max_pool2d's backward",
    ),
)
