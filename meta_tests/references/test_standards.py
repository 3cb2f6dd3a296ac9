"""Every standard's numbers typed a second time, and every rule held against examples worked out by hand."""

import re
from dataclasses import fields
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import poolproof.references.deviations
from places import ROOT
from poolproof.references import standards
from poolproof.references.criterion import scatter_sums
from poolproof.references.deviations import Deviations
from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FORMATS, Float64, FloatFormat
from poolproof.references.operators import BACKWARDS
from poolproof.references.standards import STANDARDS, judge_all

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
SEPTEMBER = table("0x1p-10", "0x1p-7", "0x1p-13", "0x1p-10", "0x1p-3", "0x1p-2")
TTK = table(0.001, 0.001, 0.0001)

PINNED: dict[str, dict[str, Any]] = {
    "ecosystem-2026-09": {"tolerance": SEPTEMBER, "floor": table(0.1, 0.1, 0.01, 0.1, 1.0, 1.0)},
    "atk-single": {"thresholds": APRIL},
    "commercial-l0": {"limits": {"mare_ratio": 10, "mere_ratio": 2, "rmse_ratio": 2}},
    "commercial-l1": {"limits": {"mare_ratio": 5, "mere_ratio": 1.5, "rmse_ratio": 1.5}},
    "commercial-l2": {"limits": {"mare_ratio": 2, "mere_ratio": 1.2, "rmse_ratio": 1.2}},
    "ttk-close": {"rtol": TTK, "atol": table(0.00000001, 0.00000001, 0.00000001), "free": TTK},
    "msprobe-binary": {},
    "msprobe-benchmark": {"level": "L0"},
    "msprobe-acc-check": {},
}
"""The fields of every standard but for its words."""

CONSTANTS: dict[str, Any] = {
    "ecosystem.RELATIVE_GUARD": 0.0000001,
    "ecosystem.MARE_FACTOR": 10,
    "ecosystem.REQUIRED_SHARE": 0.99,
    "ecosystem.ULP_MULTIPLE": 32,
    "commercial.SMALL_VALUE": table("0x1p-11", "0x1p-8", "0x1p-14", "0x1p-12", "0x1p-4", "0x1p-3"),
    "commercial.SMALL_VALUE_ERROR": table("0x1p-16", "0x1p-16", "0x1p-30", "0x1p-28", "0x1p-6", "0x1p-5"),
    "commercial.SMALL_COUNT_RATIO": 2,
    "commercial.RATIO_GUARD": 0.0000001,
    "msprobe.SMALL_VALUE": table("0x1p-10", "0x1p-10", "0x1p-20"),
    "msprobe.EPSILON": table("0x1p-23", "0x1p-8", "0x1p-52"),
    "msprobe.BENCHMARK_ATOL": table(1e-16, 1e-16, "0x1p-30"),
    "msprobe.BENCHMARK_LEAST": table("0x1p-11", "0x1p-8", "0x1p-14"),
    "msprobe.BENCHMARK_RATIOS": {
        "L0": {"small_ratio": 2, "rmse_ratio": 2, "max_rel_ratio": 10, "mean_rel_ratio": 2},
        "L1": {"small_ratio": 2, "rmse_ratio": 1.5, "max_rel_ratio": 5, "mean_rel_ratio": 1.5},
        "L2": {"small_ratio": 2, "rmse_ratio": 1.2, "max_rel_ratio": 2, "mean_rel_ratio": 1.2},
    },
    "msprobe.LEAST_COSINE": 0.99,
    "msprobe.ALL_ZERO": p("0x1p-52"),
    "msprobe.ABSOLUTE_ERROR": 0.001,
    "msprobe.ERROR_BELOW": table(0.01, 0.01, 0.001),
    "msprobe.WARNING_BELOW": table(0.001, 0.001, 0.0001),
}


def test_every_standard_is_pinned() -> None:
    assert set(PINNED) == set(STANDARDS)


@pytest.mark.parametrize("name", PINNED)
def test_thresholds_are_those_of_the_source(name: str) -> None:
    standard = STANDARDS[name]
    words = ("name", "source", "note")
    numbers = {field.name: getattr(standard, field.name) for field in fields(standard) if field.name not in words}
    assert numbers == PINNED[name]
    assert standard.source


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_those_of_the_source(name: str) -> None:
    assert attrgetter(name)(standards) == CONSTANTS[name]


def test_every_standard_is_applied_by_somebody() -> None:
    page = (ROOT / "docs" / "reference" / "checks.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.partition("| who |")[2].partition("\n\n")[0].splitlines()[2:]]
    assert {name for _, _, names, _ in rows for name in re.findall("`(.*?)`", names)} == {*STANDARDS}
    pools = {operator.name.removesuffix("Backward") for operator in BACKWARDS}
    assert {pool for _, of, _, _ in rows for pool in of.split(", ")} == {"all", *pools}


def compare(outputs: list[float], owed: list[float], fmt: FloatFormat, second: list[float] | None = None) -> Deviations:
    """Outputs beside one term per cell; cells owed None have no term."""
    cells = np.array([cell for cell, term in enumerate(owed) if term is not None], np.int64)
    terms = np.array([term for term in owed if term is not None], float)
    sums = scatter_sums(cells, terms, len(owed))
    return Deviations(np.array(outputs, float), sums, fmt, None if second is None else np.array(second, float))


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
    ("atk-single", FLOAT32, ones(100, at7=1 + 9 / 8192), ones(100), True),
    ("atk-single", FLOAT32, ones(100, at7=1 + 11 / 8192), ones(100), False),
    # All elements off by as much: MERE, 1 / 1024 in float16, decides.
    ("atk-single", FLOAT16, [1 + 1.01 * ULP16] * 4, [1.0] * 4, False),
    ("atk-single", FLOAT16, [1 + ULP16, 1.0], [1.0, 1.0], True),
    # Where zero is owed, 1e-7 takes its place: a MARE of 10 / 128 leaves 7.8e-9.
    ("atk-single", BFLOAT16, [*ones(99), 7e-9], [*ones(99), 0.0], True),
    ("atk-single", BFLOAT16, [*ones(99), 9e-9], [*ones(99), 0.0], False),
    ("atk-single", FLOAT64, [1.0], [1.0], None),
    ("atk-single", FLOAT16, [np.nan], [1.0], False),
    ("atk-single", FLOAT16, [7.0, 3.0], [np.nan, 1.0], True),
    # Of a hundred elements one may miss the mixed tolerance, if it is not too far off.
    ("ecosystem-2026-09", FLOAT32, ones(100, at0=1.0099), ones(100), True),
    ("ecosystem-2026-09", FLOAT32, ones(100, at0=1.0101), ones(100), False),
    ("ecosystem-2026-09", FLOAT32, ones(99, at0=1.0099), ones(99), False),
    ("ecosystem-2026-09", FLOAT32, [1 + 2.0**-12], [1.0], True),
    ("ecosystem-2026-09", FLOAT32, [1 + 2.0**-12 + ULP32], [1.0], False),
    # 32 ulp of 4096.0 are 128.0 in float16: more than the number.
    ("ecosystem-2026-09", FLOAT16, [4100.0], [4096.0], True),
    ("ecosystem-2026-09", FLOAT16, [4101.0], [4096.0], False),
    ("ecosystem-2026-09", FLOAT32, [2.0**-13], [0.0], True),
    ("ecosystem-2026-09", FLOAT32, [2.0**-13 * 1.01], [0.0], False),
    ("ecosystem-2026-09", FLOAT16, [np.inf], [np.inf], True),
    ("ecosystem-2026-09", FLOAT16, [np.nan], [1.0], False),
    ("ttk-close", FLOAT32, [1.00009], [1.0], True),
    ("ttk-close", FLOAT32, [1.00011], [1.0], False),
    ("ttk-close", FLOAT32, [9e-9], [0.0], True),
    ("msprobe-binary", FLOAT16, [1.0, -0.0], [1.0, 0.0], True),
    ("msprobe-binary", FLOAT16, [1 + ULP16], [1.0], False),
    ("msprobe-binary", FLOAT16, [np.nan], [np.nan], False),
    ("ecosystem-2026-09", FLOAT16, [1.0], [np.inf], False),
    # Any error below 0.001 passes, if the direction is right: a cosine of 0.988 is too little, one of 0.992 enough.
    ("msprobe-acc-check", FLOAT32, [1e-4, 1e-4], [1e-4, 1.3e-4], True),
    ("msprobe-acc-check", FLOAT32, [1e-4, 1e-4], [1e-4, 1.37e-4], False),
    ("msprobe-acc-check", FLOAT32, [1e-4, 0.0], [0.0, 1e-4], False),
    # Zeros on one side, up to 2**-52, have no direction; on both sides, and in one cell, none is needed.
    ("msprobe-acc-check", FLOAT32, [2.0**-52, 0.0], [2.0**-51, 0.0], False),
    ("msprobe-acc-check", FLOAT32, [2.0**-52, 0.0], [0.0, 2.0**-52], True),
    ("msprobe-acc-check", FLOAT32, [-1e-4], [1e-4], True),
    # More than 99.9 % of the cells within 0.1 % are no error in float32, but a warning; in float16 they pass.
    ("msprobe-acc-check", FLOAT32, [*[1.0005] * 1998, 1.0015], ones(1999), None),
    ("msprobe-acc-check", FLOAT32, ones(999, at0=1.0015), ones(999), False),
    ("msprobe-acc-check", FLOAT16, ones(1001, at0=1.0015), ones(1001), True),
    ("msprobe-acc-check", FLOAT16, ones(999, at0=1.0015), ones(999), None),
    ("msprobe-acc-check", FLOAT16, ones(99, at0=1.02), ones(99), False),
    # What is not finite is no cell within, though a NaN is owed; it leaves the direction open.
    ("msprobe-acc-check", FLOAT32, ones(99, at0=np.nan), ones(99, at0=np.nan), False),
    ("msprobe-acc-check", FLOAT16, ones(101, at0=np.inf), ones(101, at0=np.inf), None),
    ("msprobe-acc-check", FLOAT64, [1.0], [1.0], None),
]


@pytest.mark.parametrize(("name", "fmt", "outputs", "owed", "expected"), EXAMPLES)
def test_example(name: str, fmt: FloatFormat, outputs: list[float], owed: list[float], expected: bool | None) -> None:
    assert STANDARDS[name].judge(compare(outputs, owed, fmt)) is expected


SECOND: list[tuple[str, list[float], list[float], list[float], bool | None]] = [
    # float32, one element; MARE, MERE and RMSE are alike, so the ratio is that of the errors.
    ("commercial-l2", [1.0011], [1.001], [1.0], True),
    ("commercial-l2", [1.0013], [1.001], [1.0], False),
    ("commercial-l1", [1.0013], [1.001], [1.0], True),
    ("commercial-l1", [1.0016], [1.001], [1.0], False),
    ("commercial-l0", [1.0019], [1.001], [1.0], True),
    ("commercial-l0", [1.0021], [1.001], [1.0], False),
    # A faultless third party: no error is a ratio of 1, any error an infinite one, unless 1e-7 is added.
    ("commercial-l2", [1 + 0.5 * ULP32], [1.0], [1.0], True),
    ("commercial-l2", [1 + 2 * ULP32], [1.0], [1.0], False),
    ("commercial-l0", [1 + ULP32], [1.0], [1.0], True),
    # Small values are counted: two errors where the third party has none or one, four where it has two.
    ("commercial-l2", [1e-6, 1e-6, 0.0], [0.0] * 3, [0.0] * 3, True),
    ("commercial-l2", [1e-6] * 3, [0.0] * 3, [0.0] * 3, False),
    ("commercial-l2", [1e-6] * 3, [1e-6, 1e-6, 0.0], [0.0] * 3, True),
    # NaN and infinities: right with the third party or with the golden value; open if all three differ.
    ("commercial-l1", [np.inf], [np.inf], [1.0], True),
    ("commercial-l1", [np.inf], [1.0], [np.inf], True),
    ("commercial-l1", [1.0], [np.inf], [np.inf], False),
    ("commercial-l1", [1.0], [np.nan], [np.inf], None),
    ("commercial-l1", [np.inf], [1.0], [1.0], False),
    # The benchmark divides by no less than 2**-14: errors of 2**-13 and more of a faultless device's fail.
    ("msprobe-benchmark", [1 + 2.0**-14], [1.0], [1.0], True),
    ("msprobe-benchmark", [1 + 2.0**-12], [1.0], [1.0], False),
    ("msprobe-benchmark", [1 + 2.0**-12], [1 + 2.0**-13], [1.0], True),
    ("msprobe-benchmark", [np.nan], [1.0], [1.0], True),
]


@pytest.mark.parametrize(("name", "outputs", "second", "owed", "expected"), SECOND)
def test_example_with_a_second_result(
    name: str, outputs: list[float], second: list[float], owed: list[float], expected: bool | None
) -> None:
    assert STANDARDS[name].judge(compare(outputs, owed, FLOAT32, second)) is expected


def test_examples_that_need_more() -> None:
    tiny, half = 2.0**-24, STANDARDS["msprobe-benchmark"]
    # The typing error in the method decides where the second device errs, too: in a quarter of the small values.
    assert half.judge(compare([tiny] * 3 + [0.0], [0.0] * 4, FLOAT16, [tiny] + [0.0] * 3)) is False
    alone = compare([1.0], [1.0], FLOAT32)
    assert {name for name in STANDARDS if name.startswith(("commercial-l", "msprobe-benchmark"))} <= {
        name for name, standard in STANDARDS.items() if standard.judge(alone) is None
    }


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda fmt: fmt.name)
def test_an_exact_output_passes_every_standard_that_applies_and_an_empty_one_fails_none(fmt: FloatFormat) -> None:
    owed = [0.0, 1.0, -2.0, 2.0**-9, 384.0]
    verdicts = judge_all([compare(owed, owed, fmt, owed)])
    assert list(verdicts.values()).count(True) == (1 if fmt is FLOAT64 else len(STANDARDS))
    empty = judge_all([compare([], [], fmt, [])])
    assert False not in verdicts.values() and False not in empty.values()


def test_an_all_nan_output_passes_only_what_leaves_such_cells_out() -> None:
    owed = [1.0, 2.0, 3.0]
    verdicts = judge_all([compare([np.nan] * 3, owed, FLOAT32, owed)])
    assert [name for name, passed in verdicts.items() if passed] == ["msprobe-benchmark"]


def drawn(stream: np.random.Generator, fmt: FloatFormat, cells: int) -> Deviations:
    """Sums of two terms a cell or of none, NaN and infinities among them, and two results, right or wrong somewhere."""
    terms = fmt.round(stream.standard_normal(2 * cells) * stream.choice([1e-6, 1e-3, 1.0, 100.0]))
    if cells and stream.random() < 0.3:
        terms[stream.integers(0, 2 * cells, 3)] = stream.choice([np.nan, np.inf, -np.inf, 0.0], 3)
    reached = np.where(stream.random(cells) < stream.choice([0.3, 1.0]), np.arange(cells), -1)
    sums = scatter_sums(np.repeat(reached, 2), terms, cells)

    def result() -> Float64:
        values = fmt.round(sums.exact)
        if stream.random() < 0.6:
            values *= 1 + stream.standard_normal(cells) * stream.choice([1e-5, 1e-3, 1e-2])
        if cells and stream.random() < 0.4:
            values[stream.integers(cells)] = stream.choice([np.nan, np.inf, 1e4, 0.0])
        return fmt.round(values)

    return Deviations(result(), sums, fmt, result() if stream.random() < 0.7 else None)


def test_figures_of_parts_and_of_idle_cells_add_up_to_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, said = np.random.default_rng(0), set()
    for number in range(600):
        deviations = drawn(
            stream, tuple(FORMATS.values())[number % len(FORMATS)], int(stream.choice([0, 1, 7, 40, 300]))
        )
        whole = judge_all(deviations.parts())
        with monkeypatch.context() as patch:
            patch.setattr(poolproof.references.deviations, "PART", 7)
            patch.setattr(poolproof.references.deviations, "_FEW", 0)
            assert judge_all(deviations.parts()) == whole
        said |= set(whole.items())
    assert {name for name in STANDARDS if {(name, True), (name, False)} <= said} == {*STANDARDS}
