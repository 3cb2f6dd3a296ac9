"""Small case lists in the formats of others, made for tests: none is a copy of anybody's."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def tensor(name: str, shape: Sequence[int], values: Any, dtype: str = "fp32") -> Row:
    return {"name": name, "type": "tensor", "required": True, "dtype": dtype, "shape": shape, "range_values": values}


def attributes(name: str, values: Sequence[int]) -> list[Row]:
    return [{"name": name, "type": "attrs", "dtype": "int", "shape": None, "range_values": value} for value in values]


def atk_windowed(
    number: int = 0,
    operator: str = "MaxPool2dWithIndicesBackward",
    shape: Sequence[int] = (2, 3, 6, 4),
    pooled: Sequence[int] = (2, 3, 3, 2),
    dtype: str = "fp32",
    gradient: Any = (-5, 5),
    values: Any = (-5, 5),
    acc: Any = "single_bm",
) -> Row:
    """A window of two cells along each axis, side by side."""
    rank = len(shape) - 2
    given = {"kernelSize": 2, "stride": 2, "padding": 0, "dilation": 1}
    return {
        "id": number,
        "aclnn_name": operator,
        "standard": {"acc": acc, "perf": "not_key"},
        "inputs": [
            tensor("gradOutput", pooled, _listed(gradient), dtype),
            tensor("self", shape, _listed(values), dtype),
            tensor("indices", [7], [-1, 1], "int32"),
            *(attributes(name, [value] * rank) for name, value in given.items()),
            {"name": "ceilMode", "type": "attr", "dtype": "bool", "shape": None, "range_values": False},
        ],
    }


def atk_adaptive(number: int, operator: str, shape: Sequence[int], pooled: Sequence[int], dtype: str = "fp16") -> Row:
    """An adaptive backward, which is told no attributes."""
    return {
        "id": number,
        "aclnn_name": f"aclnn{operator}",
        "standard": {"acc": {"single_bm": {"type": "high_precision"}}},
        "inputs": [
            tensor("gradOutput", pooled, [-7, 7], dtype),
            tensor("self", shape, {"name": "nd", "mean": [-1, 1], "std": [1, 3]}, dtype),
            tensor("indices", pooled, ["null"], "int32"),
        ],
    }


def _listed(given: Any) -> Any:
    return list(given) if isinstance(given, tuple) else given


def ttk(**changes: str) -> dict[str, str]:
    """A row of the 2-D gradient's kernel, channels last, with some of its cells changed."""
    shapes = ((2, 6, 4, 3), (2, 3, 2, 3), (2, 3, 2, 3))
    attributes = {
        "ksize": [2, 2],
        "strides": [2, 2],
        "pads": [0, 0],
        "dtype": 3,
        "dilation": [1, 1],
        "ceil_mode": False,
        "data_format": "NHWC",
    }
    row = {
        "testcase_name": "small_nan",
        "op_name": "max_pool_grad_with_argmax_v3",
        "input_dtypes": str(("float16", "float16", "int32")),
        "attributes": str(attributes),
        "input_shapes": str(shapes),
        "input_data_ranges": "((nan, nan), (0, 0.5), (0, 0))",
        "precision_tolerances": "((0.001, 0.001),)",
        "absolute_precision": "1e-08",
    }
    return row | changes


def write_atk(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps(rows))
    return path


def write_ttk(path: Path, *rows: Mapping[str, str]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(ttk()))
        writer.writeheader()
        writer.writerows(rows)
    return path
