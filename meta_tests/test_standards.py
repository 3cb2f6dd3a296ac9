"""Every standard's numbers typed a second time, and every rule held against examples worked out by hand."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from poolproof.references.comparison import Comparison
from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FORMATS, FloatFormat
from poolproof.references.operators import BACKWARDS
from poolproof.references.oracle import scatter_sums
from poolproof.references.standards import (
    APPLICATIONS,
    STANDARDS,
    applications_of,
    cannbench,
    commercial,
    ecosystem,
    frameworks,
    judge_all,
    msprobe,
)

p = float.fromhex


def table(*values: str | float) -> dict[str, float]:
    """A row of the texts' tables in their order: FP16, BF16, FP32, HiF32, E4M3, E5M2; shorter rows end earlier."""
    names = ("float16", "bfloat16", "float32", "hifloat32", "float8_e4m3", "float8_e5m2")
    return {
        name: p(value) if isinstance(value, str) else value
        for name, value in zip(names, values, strict=False)
        if value != ""
    }


APRIL = table("0x1p-10", "0x1p-7", "0x1p-13", "0x1p-11", "0x1p-3", "0x1p-2")
JULY = {
    "rtol": table("0x1p-9", "0x1p-6", "0x1p-10", "0x1p-9", "0x1p-2", "0x1p-1"),
    "atol": table("0x1p-9", "0x1p-6", "0x1p-16", "0x1p-10", "0x1p-4", "0x1p-3"),
    "floor": table(0.1, 1.0, 0.01, 0.1, 1.0, 0.1),
}
SEPTEMBER_TOLERANCE = table("0x1p-10", "0x1p-7", "0x1p-13", "0x1p-10", "0x1p-3", "0x1p-2")
SEPTEMBER = {
    "rtol": SEPTEMBER_TOLERANCE,
    "atol": SEPTEMBER_TOLERANCE,
    "floor": table(0.1, 0.1, 0.01, 0.1, 1.0, 1.0),
}
ATK = {
    "rtol": table(0.00195, 0.0156, 0.000977),
    "atol": table(0.00195, 0.0156, 0.0000153),
    "floor": table(0.1, 1.0, 0.01),
}


def mixed(numbers: dict[str, Any], limit: str, specials: str = "silent", fallback: str = "") -> dict[str, Any]:
    return {**numbers, "limit": limit, "specials": specials, "fallback": fallback}


def relative(specials: str = "silent") -> dict[str, Any]:
    return {"thresholds": APRIL, "specials": specials}


def ratios(mare: float, mere: float, rmse: float, guard: str, infinities: str = "compared") -> dict[str, Any]:
    return {
        "level": commercial.Level(mare, mere, rmse),
        "guard": guard,
        "infinities": infinities,
        "specials": "silent",
    }


def everywhere(value: float) -> dict[str, float]:
    return {"float64": value, "float32": value, "float16": value, "bfloat16": value}


def close(
    rtol: dict[str, float],
    atol: dict[str, float],
    free: dict[str, float] | None = None,
    nan_equal: bool = True,
    scaled: bool = False,
) -> dict[str, Any]:
    return {
        "rtol": rtol,
        "atol": atol,
        "free": free or {},
        "nan_equal": nan_equal,
        "scaled": scaled,
        "specials": "elements",
    }


def double(row: dict[str, float]) -> dict[str, Any]:
    return close(row, row, row)


TORCH_RTOL = {"float16": 0.001, "bfloat16": 0.016, "float32": 0.0000013, "float64": 0.0000001}
TORCH_ATOL = {"float16": 0.00001, "bfloat16": 0.00001, "float32": 0.00001, "float64": 0.0000001}
SILENT = {"specials": "silent"}

PINNED: dict[str, dict[str, Any]] = {
    "ecosystem-2026-04": relative(),
    "ecosystem-page-en": relative(),
    "ecosystem-2026-07-fixed-limit": mixed(JULY, "fixed"),
    "ecosystem-2026-07-limit-each-ulp": mixed(JULY, "each_ulp"),
    "ecosystem-2026-07-limit-largest-ulp": mixed(JULY, "largest_ulp"),
    "ecosystem-page-zh": mixed(JULY, "fixed"),
    "ecosystem-2026-09": mixed(SEPTEMBER, "largest_ulp", "elements"),
    "ecosystem-2026-09-fixed-limit": mixed(SEPTEMBER, "fixed"),
    "atk-single": relative("unseen"),
    "atk-mixed": mixed(ATK, "each_ulp", "unseen"),
    "ttk-stat-rel-err": relative("positions"),
    "ttk-mixed": mixed(JULY, "fixed", "positions", "float32"),
    "ttk-mixed-fork": mixed(JULY, "largest_ulp", "positions", "float32"),
    "commercial-l0": ratios(10, 2, 2, "added"),
    "commercial-l1": ratios(5, 1.5, 1.5, "added"),
    "commercial-l2": ratios(2, 1.2, 1.2, "added"),
    "commercial-l0-unguarded": ratios(10, 2, 2, "none"),
    "commercial-l1-unguarded": ratios(5, 1.5, 1.5, "none"),
    "commercial-l2-unguarded": ratios(2, 1.2, 1.2, "none"),
    "commercial-l0-inf-off": ratios(10, 2, 2, "added", "excluded"),
    "commercial-l1-inf-off": ratios(5, 1.5, 1.5, "added", "excluded"),
    "commercial-l2-inf-off": ratios(2, 1.2, 1.2, "added", "excluded"),
    "commercial-non-compute": {"zeros_differ": False, **SILENT},
    "ttk-cross-check-l0": ratios(10, 2, 2, "clamped"),
    "ttk-cross-check-l1": ratios(5, 1.5, 1.5, "clamped"),
    "ttk-cross-check-l2": ratios(2, 1.2, 1.2, "clamped"),
    "ttk-binary": {"zeros_differ": True, **SILENT},
    "double-thousandth": double(everywhere(0.001)),
    "double-five-thousandths": double(everywhere(0.005)),
    "double-ten-thousandth": double(everywhere(0.0001)),
    "double-by-dtype": double({"float16": 0.001, "bfloat16": 0.005, "float32": 0.0001}),
    "double-by-dtype-ascendoptest": double({"float16": 0.001, "bfloat16": 0.004, "float32": 0.0001}),
    "double-by-dtype-ops-nn": double({"float16": 0.001, "bfloat16": 0.001, "float32": 0.0001}),
    "ttk-close": close(
        table(0.001, 0.001, 0.0001), table(0.00000001, 0.00000001, 0.00000001), table(0.001, 0.001, 0.0001)
    ),
    "torch-assert-close": close(TORCH_RTOL, TORCH_ATOL, nan_equal=False),
    "flaggems-max-pool2d": close(TORCH_RTOL, everywhere(0.0001), nan_equal=False),
    "flaggems-adaptive-max-pool2d": close(TORCH_RTOL, everywhere(0.0001), nan_equal=False, scaled=True),
    "jax": close(*[{"float64": 1e-15, "float32": 0.000001, "float16": 0.001, "bfloat16": 0.01}] * 2),
    "jax-gradient": close(*[{"float64": 0.00001, "float32": 0.002, "float16": 0.01, "bfloat16": 0.1}] * 2),
    "jax-reduce-window": close(*[{"float32": 0.06, "float16": 0.1}] * 2),
    "onnx": close(everywhere(0.001), everywhere(0.0000001)),
    "tensorflow": close(everywhere(0.000001), everywhere(0.000001)),
    "stablehlo": close(everywhere(0.0001), everywhere(0.0001)),
    "kernelbench": close(table(0.01, 0.01, 0.0001), table(0.01, 0.01, 0.0001)),
    "ops-nn-experimental": close({"float32": 0.0001, "float16": 0.01}, {"float32": 0.0001, "float16": 0.001}),
    "cann-bench": SILENT,
    "msprobe-binary": SILENT,
    "msprobe-benchmark": {"small_atol": table(1e-16, 1e-16, "0x1p-30"), **SILENT},
    "msprobe-benchmark-document": {"small_atol": table("0x1p-16", "0x1p-16", "0x1p-30"), **SILENT},
    "msprobe-absolute": {
        "rtol": table("0x1p-10", "0x1p-8", "0x1p-20"),
        "atol": table("0x1p-16", 1e-16, "0x1p-30"),
        **SILENT,
    },
    "msprobe-absolute-document": {
        "rtol": table("0x1p-10", "0x1p-8", "0x1p-20"),
        "atol": table("0x1p-16", "0x1p-16", "0x1p-30"),
        **SILENT,
    },
    "msprobe-ulp": SILENT,
    "msprobe-thousandth": SILENT,
    "msprobe-accumulative": SILENT,
    "msprobe-compare": {"least": 0.9, "largest": 1.0, **SILENT},
    "ttk-cosine": {"least": 0.99, "largest": float("inf"), **SILENT},
    "npu-assert-rtol": {"tolerance": {"float16": 0.001, "float32": 0.0001, "float64": 0.0001}, **SILENT},
    "npu-assert-rtol-adaptive": {"tolerance": {"float16": 0.0003, "float32": 0.0003, "float64": 0.0003}, **SILENT},
    "benchdnn-strict": {"epsilons": 0.0, **SILENT},
    "benchdnn-relaxed": {"epsilons": 10.0, **SILENT},
    "tosa": {"bias": False, **SILENT},
    "tosa-random": {"bias": True, **SILENT},
    "miopen": SILENT,
    "opencl-orders": SILENT,
    "webnn-scatter": {"zeros_differ": False, **SILENT},
}

CONSTANTS: dict[str, Any] = {
    "ecosystem.RELATIVE_GUARD": 0.0000001,
    "ecosystem.MARE_FACTOR": 10,
    "ecosystem.REQUIRED_SHARE": 0.99,
    "ecosystem.ULP_MULTIPLE": 32,
    "commercial.SMALL_VALUE": table("0x1p-11", "0x1p-8", "0x1p-14", "0x1p-12", "0x1p-4", "0x1p-3"),
    "commercial.SMALL_VALUE_ERROR": table("0x1p-16", "0x1p-16", "0x1p-30", "0x1p-28", "0x1p-6", "0x1p-5"),
    "commercial.SMALL_COUNT_RATIO": 2,
    "commercial.RATIO_GUARD": 0.0000001,
    "commercial.RECHECK_RUNS": 200,
    "commercial.RECHECK_RESAMPLES": 2000,
    "cannbench.CANCELLATION": table("0x1p-5", "0x1p-3", "0x1p-8"),
    "msprobe.SMALL_VALUE": table("0x1p-10", "0x1p-10", "0x1p-20"),
    "msprobe.EPSILON": table("0x1p-23", "0x1p-8", "0x1p-52"),
    "msprobe.BENCHMARK_LEAST": table("0x1p-11", "0x1p-8", "0x1p-14"),
    "msprobe.BENCHMARK_RATIOS": {"small_ratio": 2, "rmse_ratio": 2, "max_rel_ratio": 10, "mean_rel_ratio": 2},
    "msprobe.ULP_LIMIT": table(1.0, 1.0, 32.0),
    "msprobe.ULP_SHARE": table(0.001, 0.001, 0.05),
    "msprobe.ULP_MEAN": {"float32": 64.0},
    "msprobe.THOUSANDTH_ERROR": 0.001,
    "msprobe.THOUSANDTH_SHARE": 0.999,
    "msprobe.ACCUMULATIVE_BOUND": table("0x1p-8", "0x1p-7", "0x1p-11"),
    "msprobe.ACCUMULATIVE_BALANCE": table("0x1p-20", "0x1p-7", "0x1p-14"),
    "msprobe.ACCUMULATIVE_SMALL": 1.0,
    "frameworks.NPU_GUARD": {"float16": 0.00000006, "float32": 0.000000001, "float64": 0.000000001},
    "frameworks.NPU_BFLOAT16": 0.001,
    "frameworks.BENCHDNN_ABSOLUTE_BELOW": 0.00001,
    "frameworks.TOSA_SQUARES": 1.6,
    "frameworks.TOSA_BIAS": 10,
    "frameworks.TOSA_ABSOLUTE": 2,
    "frameworks.TOSA_ABSOLUTE_FLOAT32": 6,
    "frameworks.TOSA_FRACTION": {"float16": (10, 23), "bfloat16": (7, 23), "float32": (23, 23)},
    "frameworks.MIOPEN_ULPS": 4,
    "frameworks.MIOPEN_DIFFERENCE": {"float32": 0.000001, "float16": 0.005},
}

_MODULES = {
    "ecosystem": ecosystem,
    "commercial": commercial,
    "cannbench": cannbench,
    "msprobe": msprobe,
    "frameworks": frameworks,
}


def test_every_standard_is_pinned() -> None:
    assert set(PINNED) == set(STANDARDS)


@pytest.mark.parametrize("name", PINNED)
def test_thresholds_are_those_of_the_source(name: str) -> None:
    standard = STANDARDS[name]
    words = ("name", "source", "note", "sound")
    numbers = {field.name: getattr(standard, field.name) for field in fields(standard) if field.name not in words}
    assert numbers == PINNED[name]
    assert standard.source


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_those_of_the_source(name: str) -> None:
    module, _, constant = name.partition(".")
    assert getattr(_MODULES[module], constant) == CONSTANTS[name]


def test_only_the_empirical_rule_is_unsound() -> None:
    assert [name for name, standard in STANDARDS.items() if not standard.sound] == ["opencl-orders"]


def test_applications_name_standards_and_operators_that_exist() -> None:
    known = {operator.name for operator in BACKWARDS}
    for application in APPLICATIONS:
        assert set(application.standards) <= set(STANDARDS)
        assert set(application.operators) <= known
        assert application.source
    for operator in known:
        assert any("ecosystem-2026-09" in application.standards for application in applications_of(operator))


def compare(
    outputs: list[float], owed: list[float], fmt: FloatFormat, second: list[float] | None = None, **more: Any
) -> Comparison:
    """Outputs beside one term per cell; cells owed None have no term."""
    cells = np.array([cell for cell, term in enumerate(owed) if term is not None], np.int64)
    terms = np.array([term for term in owed if term is not None], float)
    sums = scatter_sums(cells, terms, len(owed))
    return Comparison(np.array(outputs, float), sums, fmt, None if second is None else np.array(second, float), **more)


def passes(name: str, comparison: Comparison) -> bool | None:
    return STANDARDS[name].judge(comparison).passed


def ones(cells: int, **changed: float) -> list[float]:
    """Ones, some replaced: ``ones(100, at3=1.5)``."""
    values = [1.0] * cells
    for place, value in changed.items():
        values[int(place.removeprefix("at"))] = value
    return values


ULP16, ULP32 = 2.0**-10, 2.0**-23
"""Units in the last place of 1.0."""

EXAMPLES: list[tuple[str, FloatFormat, list[float], list[float], bool | None]] = [
    # One element in a hundred off by d: MERE = d / 100, MARE = d; the limit of MARE, 10 / 8192 in float32, decides.
    ("ecosystem-2026-04", FLOAT32, ones(100, at7=1 + 9 / 8192), ones(100), True),
    ("ecosystem-2026-04", FLOAT32, ones(100, at7=1 + 11 / 8192), ones(100), False),
    # All elements off by as much: MERE, 1 / 1024 in float16, decides.
    ("ecosystem-2026-04", FLOAT16, [1 + 1.01 * ULP16] * 4, [1.0] * 4, False),
    ("ecosystem-2026-04", FLOAT16, [1 + ULP16, 1.0], [1.0, 1.0], True),
    # Where zero is owed, 1e-7 takes its place: a MARE of 10 / 128 leaves 7.8e-9.
    ("ecosystem-2026-04", BFLOAT16, [*ones(99), 7e-9], [*ones(99), 0.0], True),
    ("ecosystem-2026-04", BFLOAT16, [*ones(99), 9e-9], [*ones(99), 0.0], False),
    ("ecosystem-2026-04", FLOAT64, [1.0], [1.0], None),
    ("ecosystem-2026-04", FLOAT16, [np.nan], [np.nan], None),
    ("ecosystem-2026-04", FLOAT16, [np.nan], [1.0], False),
    ("atk-single", FLOAT16, [7.0, 3.0], [np.nan, 1.0], True),
    ("ttk-stat-rel-err", FLOAT16, [np.nan, 1.0], [np.nan, 1.0], True),
    ("ttk-stat-rel-err", FLOAT16, [np.inf, 1.0], [np.nan, 1.0], False),
    # Of a hundred elements one may miss the mixed tolerance, if it is not too far off.
    ("ecosystem-2026-07-fixed-limit", FLOAT32, ones(100, at0=1.0099), ones(100), True),
    ("ecosystem-2026-07-fixed-limit", FLOAT32, ones(100, at0=1.0101), ones(100), False),
    ("ecosystem-2026-07-fixed-limit", FLOAT32, ones(99, at0=1.0099), ones(99), False),
    ("ecosystem-2026-07-fixed-limit", FLOAT32, [1 + 2**-10 + 2**-16], [1.0], True),
    ("ecosystem-2026-07-fixed-limit", FLOAT32, [1 + 2**-10 + 2**-16 + ULP32], [1.0], False),
    # 32 ulp of 4096.0 are 128.0 in float16: more than the number, but only where the readings say so.
    ("ecosystem-2026-07-fixed-limit", FLOAT16, [4100.0], [4096.0], False),
    ("ecosystem-2026-07-limit-each-ulp", FLOAT16, [4100.0], [4096.0], True),
    ("ecosystem-2026-07-limit-largest-ulp", FLOAT16, [4100.0], [4096.0], True),
    # With the largest difference at 4096.0, the limit of the largest lets the small element pass, each for itself not.
    ("ecosystem-2026-07-limit-each-ulp", FLOAT16, [4100.0, *ones(199, at0=3.0)], [4096.0, *ones(199)], False),
    ("ecosystem-2026-07-limit-largest-ulp", FLOAT16, [4100.0, *ones(199, at0=3.0)], [4096.0, *ones(199)], True),
    ("ecosystem-2026-09", FLOAT16, [4100.0], [4096.0], True),
    ("ecosystem-2026-09", FLOAT16, [4101.0], [4096.0], False),
    ("ecosystem-2026-09-fixed-limit", FLOAT16, [4100.0], [4096.0], False),
    ("ecosystem-2026-09", FLOAT32, [2.0**-13], [0.0], True),
    ("ecosystem-2026-09", FLOAT32, [2.0**-13 * 1.01], [0.0], False),
    ("ecosystem-2026-09", FLOAT16, [np.inf], [np.inf], True),
    ("ecosystem-2026-09", FLOAT16, [np.nan], [1.0], False),
    ("ttk-mixed", FLOAT64, [1.0009], [1.0], True),
    ("ttk-mixed", FLOAT16, [np.nan, 1.0], [1.0, 1.0], False),
    ("atk-mixed", FLOAT16, [3.0], [np.inf], True),
    ("commercial-non-compute", FLOAT16, [-0.0, np.nan], [0.0, np.nan], True),
    ("commercial-non-compute", FLOAT16, [1 + ULP16], [1.0], False),
    ("ttk-binary", FLOAT16, [-0.0], [0.0], False),
    # 0.001 + 0.001 |g| for all but one in a thousand.
    ("double-thousandth", FLOAT16, ones(1000, at0=9.0), ones(1000), True),
    ("double-thousandth", FLOAT16, ones(999, at0=9.0), ones(999), False),
    ("double-thousandth", FLOAT32, [1.00199], [1.0], True),
    ("double-thousandth", FLOAT32, [1.00201], [1.0], False),
    ("double-five-thousandths", BFLOAT16, ones(200, at0=9.0), ones(200), True),
    ("double-ten-thousandth", FLOAT32, [1.00019], [1.0], True),
    ("double-ten-thousandth", FLOAT32, [1.00021], [1.0], False),
    ("double-by-dtype", FLOAT64, [1.0], [1.0], None),
    ("double-by-dtype", BFLOAT16, [1.0099], [1.0], True),
    ("double-by-dtype-ascendoptest", BFLOAT16, [1.0099], [1.0], False),
    ("double-by-dtype-ops-nn", BFLOAT16, [1.005], [1.0], False),
    ("ttk-close", FLOAT32, [1.00009], [1.0], True),
    ("ttk-close", FLOAT32, [1.00011], [1.0], False),
    ("ttk-close", FLOAT32, [9e-9], [0.0], True),
    ("torch-assert-close", FLOAT32, [1.0000112], [1.0], True),
    ("torch-assert-close", FLOAT32, [1.0000114], [1.0], False),
    ("torch-assert-close", FLOAT32, [np.nan], [np.nan], False),
    ("torch-assert-close", FLOAT32, [np.inf], [np.inf], True),
    ("torch-assert-close", FLOAT32, [-np.inf], [np.inf], False),
    ("flaggems-max-pool2d", FLOAT32, [1.0001], [1.0], True),
    ("flaggems-adaptive-max-pool2d", FLOAT32, [1.0001], [1.0], None),
    ("jax", FLOAT32, [1.0000021], [1.0], False),
    ("jax-gradient", FLOAT32, [1.003], [1.0], True),
    ("jax-reduce-window", BFLOAT16, [1.0], [1.0], None),
    ("onnx", FLOAT32, [1.00101], [1.0], False),
    ("tensorflow", FLOAT32, [1.0000019], [1.0], True),
    ("stablehlo", FLOAT32, [1.00021], [1.0], False),
    ("kernelbench", FLOAT16, [1.0195], [1.0], True),
    ("ops-nn-experimental", FLOAT16, [1.012], [1.0], False),
    # Two of the small values may be garbage, three may not; a normal one may not be wrong at all.
    ("cann-bench", FLOAT32, [1e4, 1e4, *ones(98)], [0.0, 0.0, *ones(98)], True),
    ("cann-bench", FLOAT32, [1e4, 1e4, 1e4, *ones(97)], [0.0, 0.0, 0.0, *ones(97)], False),
    ("cann-bench", FLOAT32, ones(100, at0=2.0), ones(100), False),
    ("cann-bench", FLOAT32, [0.003, *ones(9)], [0.002, *ones(9)], True),
    ("cann-bench", FLOAT16, [65504.0], [np.inf], True),
    ("cann-bench", FLOAT16, [np.nan], [1.0], False),
    ("msprobe-binary", FLOAT16, [1.0, -0.0], [1.0, 0.0], True),
    ("msprobe-binary", FLOAT16, [1 + ULP16], [1.0], False),
    ("msprobe-binary", FLOAT16, [np.nan], [np.nan], False),
    ("msprobe-absolute", FLOAT32, [1 + 8 * ULP32], [1.0], True),
    ("msprobe-absolute", FLOAT32, [1 + 9 * ULP32], [1.0], False),
    ("msprobe-absolute", BFLOAT16, [1e-15], [0.0], False),
    ("msprobe-absolute-document", BFLOAT16, [1e-15], [0.0], True),
    ("msprobe-absolute", FLOAT16, [np.inf], [np.inf], True),
    ("msprobe-absolute", FLOAT16, [1.0], [np.nan], False),
    # The checker divides the clipped difference by the golden value, infinite or not.
    ("msprobe-absolute", FLOAT16, [1.0], [np.inf], True),
    ("ecosystem-2026-09", FLOAT16, [1.0], [np.inf], False),
    # One element in a thousand beyond 1 ulp is one too many.
    ("msprobe-ulp", FLOAT16, ones(1001, at0=9.0), ones(1001), True),
    ("msprobe-ulp", FLOAT16, ones(1000, at0=9.0), ones(1000), False),
    ("msprobe-ulp", FLOAT32, [1 + 60 * ULP32], [1.0], True),
    ("msprobe-ulp", FLOAT32, [1 + 65 * ULP32], [1.0], False),
    ("msprobe-ulp", FLOAT16, [ULP16], [0.0], True),
    ("msprobe-thousandth", FLOAT16, ones(1000, at0=9.0), ones(1000), True),
    ("msprobe-thousandth", FLOAT16, ones(999, at0=9.0), ones(999), False),
    # Below 1 the bound 2**-8 is absolute; a single error of either sign upsets the balance of two elements.
    ("msprobe-accumulative", FLOAT16, [0.5 + 2**-9, 0.5 - 2**-9], [0.5, 0.5], True),
    ("msprobe-accumulative", FLOAT16, [0.5 + 2**-9, 0.5], [0.5, 0.5], False),
    ("msprobe-accumulative", FLOAT16, [0.5 + 2**-7, 0.5 - 2**-7], [0.5, 0.5], False),
    ("msprobe-compare", FLOAT16, [1.0, 0.4], [1.0, 0.0], True),
    ("msprobe-compare", FLOAT16, [1.0, 0.5], [1.0, 0.0], False),
    ("msprobe-compare", FLOAT16, [100.0, 102.0], [100.0, 100.0], False),
    ("ttk-cosine", FLOAT16, [1.0, 0.14], [1.0, 0.0], True),
    ("ttk-cosine", FLOAT16, [1.0, 0.15], [1.0, 0.0], False),
    # Both shares must exceed the tolerance: one of 9,999 does, one of 10,000 does not.
    ("npu-assert-rtol", FLOAT32, ones(10000, at0=9.0), ones(10000), True),
    ("npu-assert-rtol", FLOAT32, ones(9999, at0=9.0), ones(9999), False),
    ("npu-assert-rtol", FLOAT32, [9e-5], [0.0], True),
    ("npu-assert-rtol", BFLOAT16, [1.01], [1.0], False),
    ("npu-assert-rtol-adaptive", FLOAT32, ones(3333, at0=9.0), ones(3333), False),
    ("npu-assert-rtol-adaptive", FLOAT32, ones(3334, at0=9.0), ones(3334), True),
    ("benchdnn-strict", FLOAT32, [1.0], [1.0], True),
    ("benchdnn-strict", FLOAT32, [1 + ULP32], [1.0], False),
    ("benchdnn-strict", FLOAT16, [1.0], [1 + 2.0**-12], None),
    ("benchdnn-relaxed", FLOAT32, [1 + 10 * ULP32], [1.0], True),
    ("benchdnn-relaxed", FLOAT32, [1 + 11 * ULP32], [1.0], False),
    # One term: the bound is 2 * 2**-11 of it in float16, 6 * 2**-24 in float32, the squares 1.6 of a square.
    ("tosa", FLOAT16, [1 + ULP16, *ones(9)], ones(10), True),
    ("tosa", FLOAT16, [1 + 2 * ULP16, *ones(9)], ones(10), False),
    ("tosa", FLOAT16, [1 + ULP16] * 2, [1.0] * 2, False),
    ("tosa", FLOAT32, [1 + 3 * ULP32, *ones(99)], ones(100), True),
    ("tosa", FLOAT32, [1 + 4 * ULP32, *ones(99)], ones(100), False),
    ("tosa", FLOAT16, [2.0**-24], [0.0], False),
    ("tosa", FLOAT16, [1.0], [np.nan], False),
    # Ten thousand errors of half the bound: one-sided they sum to 5000, more than the root of 10 * 1.6 * 10,000.
    ("tosa", FLOAT16, [1 + 0.25 * ULP16] * 10000, [1.0] * 10000, True),
    ("tosa-random", FLOAT16, [1 + 0.25 * ULP16] * 10000, [1.0] * 10000, False),
    ("tosa-random", FLOAT16, [1 + 0.25 * ULP16, 1 - 0.25 * ULP16] * 5000, [1.0] * 10000, True),
    # The root mean square alone, or far elements alone, do not fail.
    ("miopen", FLOAT32, [1e-5, *[0.0] * 99999], [0.0] * 100000, True),
    ("miopen", FLOAT32, [1e-5], [0.0], False),
    ("miopen", FLOAT32, [1024.0001], [1024.0], True),
    ("miopen", BFLOAT16, [1.0], [1.0], None),
    ("webnn-scatter", FLOAT32, [1 + ULP32], [1.0], False),
]


@pytest.mark.parametrize(("name", "fmt", "outputs", "owed", "expected"), EXAMPLES)
def test_example(name: str, fmt: FloatFormat, outputs: list[float], owed: list[float], expected: bool | None) -> None:
    assert passes(name, compare(outputs, owed, fmt)) is expected


SECOND: list[tuple[str, list[float], list[float], list[float], bool | None]] = [
    # float32, one element; MARE, MERE and RMSE are alike, so the ratio is that of the errors.
    ("commercial-l2-unguarded", [1.0011], [1.001], [1.0], True),
    ("commercial-l2-unguarded", [1.0013], [1.001], [1.0], False),
    ("commercial-l1-unguarded", [1.0013], [1.001], [1.0], True),
    ("commercial-l1-unguarded", [1.0016], [1.001], [1.0], False),
    ("commercial-l0-unguarded", [1.0019], [1.001], [1.0], True),
    ("commercial-l0-unguarded", [1.0021], [1.001], [1.0], False),
    # A faultless third party: no error is a ratio of 1, any error an infinite one, unless 1e-7 or 2**-14 is added.
    ("commercial-l2-unguarded", [1.0], [1.0], [1.0], True),
    ("commercial-l2-unguarded", [1 + ULP32], [1.0], [1.0], False),
    ("commercial-l2", [1 + 0.5 * ULP32], [1.0], [1.0], True),
    ("commercial-l2", [1 + 2 * ULP32], [1.0], [1.0], False),
    ("commercial-l0", [1 + ULP32], [1.0], [1.0], True),
    ("ttk-cross-check-l2", [1 + 2.0**-14], [1.0], [1.0], True),
    ("ttk-cross-check-l2", [1 + 2.0**-13], [1.0], [1.0], False),
    # Small values are counted: two errors where the third party has none or one, four where it has two.
    ("commercial-l2", [1e-6, 1e-6, 0.0], [0.0] * 3, [0.0] * 3, True),
    ("commercial-l2", [1e-6] * 3, [0.0] * 3, [0.0] * 3, False),
    ("commercial-l2", [1e-6] * 3, [1e-6, 1e-6, 0.0], [0.0] * 3, True),
    ("commercial-l2-unguarded", [1e-6, 0.0, 0.0], [0.0] * 3, [0.0] * 3, False),
    # NaN and infinities: right with the third party or with the golden value; open if all three differ.
    ("commercial-l1", [np.inf], [np.inf], [1.0], True),
    ("commercial-l1", [np.inf], [1.0], [np.inf], True),
    ("commercial-l1", [1.0], [np.inf], [np.inf], False),
    ("commercial-l1", [1.0], [np.nan], [np.inf], None),
    ("commercial-l1", [np.inf], [1.0], [1.0], False),
    ("commercial-l1-inf-off", [np.inf], [1.0], [1.0], True),
    ("commercial-l1-inf-off", [np.nan], [1.0], [1.0], False),
    # The benchmark divides by no less than 2**-14: errors of 2**-13 and more of a faultless device's fail.
    ("msprobe-benchmark", [1 + 2.0**-14], [1.0], [1.0], True),
    ("msprobe-benchmark", [1 + 2.0**-12], [1.0], [1.0], False),
    ("msprobe-benchmark", [1 + 2.0**-12], [1 + 2.0**-13], [1.0], True),
    ("msprobe-benchmark", [np.nan], [1.0], [1.0], True),
    ("msprobe-ulp", [1 + 65 * ULP32, 1.0], [1 + 99 * ULP32] * 2, [1.0] * 2, True),
    ("cann-bench", ones(9, at0=2.0), ones(9, at1=2.0), ones(9), True),
    ("cann-bench", ones(9, at0=2.0, at1=2.0, at2=2.0), ones(9, at1=2.0), ones(9), False),
]


@pytest.mark.parametrize(("name", "outputs", "second", "owed", "expected"), SECOND)
def test_example_with_a_second_result(
    name: str, outputs: list[float], second: list[float], owed: list[float], expected: bool | None
) -> None:
    assert passes(name, compare(outputs, owed, FLOAT32, second)) is expected


def test_the_typing_error_in_the_benchmark_method_decides_where_the_second_device_errs_too() -> None:
    """fp16: errors of 2**-24 in half of the small values of one, in a quarter of the other's."""
    tiny = 2.0**-24
    comparison = compare([tiny] * 3 + [0.0], [0.0] * 4, FLOAT16, [tiny] + [0.0] * 3)
    assert passes("msprobe-benchmark", comparison) is False
    assert passes("msprobe-benchmark-document", comparison) is True


def test_standards_that_compare_two_need_two() -> None:
    comparison = compare([1.0], [1.0], FLOAT32)
    for name in STANDARDS:
        if name.startswith(("commercial-l", "ttk-cross", "msprobe-benchmark")):
            assert passes(name, comparison) is None


def test_tolerance_by_windows_grows_with_the_plane() -> None:
    assert passes("flaggems-adaptive-max-pool2d", compare([1.01], [1.0], FLOAT32, windows_per_plane=99)) is False
    assert passes("flaggems-adaptive-max-pool2d", compare([1.01], [1.0], FLOAT32, windows_per_plane=100)) is True


def test_tosa_counts_the_terms() -> None:
    """float16, 100 terms of 1: ksb = ceil(100 / 2**6.5) = 2 doubles the bound to 4 * 100 * 2**-11."""
    sums = scatter_sums(np.zeros(100, np.int64), np.ones(100), 1)
    for output, expected in ((100.0 + 0.0625, True), (100.0 + 0.125, False)):
        single = Comparison(np.array([output, *ones(0)]), sums, FLOAT16)
        assert passes("tosa", single) is expected


def test_the_orders_of_opencl_reject_a_correct_sum() -> None:
    """bfloat16: ascending 1 + 1 + 256 = 258, descending 256 + 1 + 1 = 256, exact 258; nothing else would pass."""
    terms = np.array([1.0, 256.0, 1.0])
    cells = np.zeros(3, np.int64)
    sums = scatter_sums(cells, terms, 1)
    assert frameworks.sum_in_order(cells, terms, 1, BFLOAT16, "ascending")[0] == 258.0
    assert frameworks.sum_in_order(cells, terms, 1, BFLOAT16, "descending")[0] == 256.0
    for output, expected in ((258.0, True), (256.0, True), (254.0, False)):
        assert passes("opencl-orders", Comparison(np.array([output]), sums, BFLOAT16, terms=(cells, terms))) is expected
    assert passes("opencl-orders", Comparison(np.array([258.0]), sums, BFLOAT16)) is None


def test_recheck_needs_200_runs_and_a_median_not_clearly_above_one() -> None:
    rng = np.random.default_rng(0)
    assert commercial.recheck(np.full(199, 0.5)).passed is False
    assert commercial.recheck(np.full(200, 1.0)).passed is True
    assert commercial.recheck(rng.normal(0.99, 0.05, 1000)).passed is True
    assert commercial.recheck(rng.normal(1.05, 0.05, 1000)).passed is False


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda fmt: fmt.name)
def test_an_exact_output_passes_every_standard_that_applies(fmt: FloatFormat) -> None:
    owed = [0.0, 1.0, -2.0, 2.0**-9, 384.0]
    terms = np.arange(5), np.array(owed)
    verdicts = judge_all(compare(owed, owed, fmt, owed, terms=terms, windows_per_plane=5))
    assert [name for name, verdict in verdicts.items() if verdict.passed is False] == []
    applicable = {name for name, verdict in verdicts.items() if verdict.passed}
    assert len(applicable) >= (24 if fmt is FLOAT64 else 60)


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda fmt: fmt.name)
def test_an_empty_output_fails_nothing(fmt: FloatFormat) -> None:
    verdicts = judge_all(compare([], [], fmt, [], terms=(np.zeros(0, np.int64), np.zeros(0)), windows_per_plane=0))
    assert [name for name, verdict in verdicts.items() if verdict.passed is False] == []


def test_an_all_nan_output_passes_only_what_leaves_such_cells_out() -> None:
    owed = [1.0, 2.0, 3.0]
    verdicts = judge_all(compare([np.nan] * 3, owed, FLOAT32, owed, windows_per_plane=3))
    passed = {name for name, verdict in verdicts.items() if verdict.passed}
    assert passed == {"msprobe-benchmark", "msprobe-benchmark-document"}
