"""Made-up rows of windowed backwards, of which some fail, for whoever looks for what those have in common."""

import random
from collections.abc import Callable
from functools import cache
from typing import Any

from poolproof.references.operators import OPERATORS
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.judging.measure import look_at_data

Row = dict[str, Any]


def made_up(count: int = 300, seed: int = 0) -> list[Row]:
    """Conforming rows of windowed backwards of many geometries."""
    return list(_made_up(count, seed))


@cache
def _made_up(count: int, seed: int) -> tuple[Row, ...]:
    lots = random.Random(seed)
    return tuple(_row(lots, number) for number in range(count))


def _row(lots: random.Random, number: int) -> Row:
    operator = lots.choice(["MaxPool3dWithArgmaxBackward", "MaxPool2dWithIndicesBackward"])
    rank = OPERATORS[operator].spatial_rank
    kernel = [lots.randint(1, 3) for _ in range(rank)]
    case = Case.from_record(
        {
            "operator": operator,
            "shape": [lots.randint(1, 3), lots.randint(1, 40), *(lots.randint(8, 12) for _ in range(rank))],
            "dtype": lots.choice(["float32", "float16"]),
            "kernel_size": kernel,
            "stride": [lots.randint(1, 3) for _ in range(rank)],
            "dilation": [lots.randint(1, 2)],
            "gradient": lots.choice(["integers", "ones", "special"]),
            "seed": number,
        }
    )
    return {
        "case_id": case.id,
        "case": case.to_json(),
        "block": f"b{number % 7}",
        "aspect": ("values", "precision")[number % 2],
        "backend": "mine",
        "operator": operator,
        "dtype": case.dtype,
        "index_dtype": "int64",
        "route": ("normal", "scatter", "tiles")[number % 3],
        "overlapping": any(axis.overlap > 1 for axis in case.axes),
        "gradient": case.gradient,
        "elements": case.planes * case.plane_size,
        "windows": case.planes * case.plane_windows,
        "verdict": "conforms",
        "checks_judged": ["interval", "written"],
        "checks_violated": [],
        **look_at_data(make_operands(case)),
    }


def failing(rows: list[Row], fails: Callable[[Row], bool], check: str = "interval") -> list[Row]:
    """The rows, of which some violate a check."""
    broken = {"verdict": "violates", "checks_violated": [check], "reason": f"broken {check}"}
    return [row | broken if fails(row) else row for row in rows]
