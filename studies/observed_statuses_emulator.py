"""Holds the emulator's phase one against recorded statuses of the operator library.

usage: python studies/observed_statuses_emulator.py FILE

FILE is gzipped JSON, one call a line: product, api, tensors (shape, dtype, format, strides, offset, storage; null
for a null pointer), lists, ceilMode, null_outputs, status, artefact, status_tiling, tiling. Rows with an artefact
are not scored. Where a call was also recorded with tiling run inside phase one, as a device does, that status counts,
unless that tiling crashed. Where the library itself crashed, the contract's status for the call is 161001.

A few tiling keys differ, and should: the library asks for overlap without the dilation and then takes the template for
windows that never share a cell. The emulator does so only with POOLPROOF_EMULATOR_DEFECTS=dilation_blind_overlap, and
then every key agrees.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from ctypes import c_bool, c_uint64, c_void_p
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "meta_tests"))

from emulator_driver import BACKWARD, DTYPES, FORMATS, Emulator, fresh
from poolproof.backends.emulator import library

UNTOUCHED = 0xDEAD
NULL_POINTER = 161001


def main(path: Path) -> int:
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    counts: Counter[str] = Counter()
    for product in dict.fromkeys(row["product"] for row in rows):
        with fresh(library(), product, DISABLE_L2_CACHE="1") as emulator:
            for row in rows:
                if row["product"] == product:
                    counts.update(score(emulator, row))
    for name, count in sorted(counts.items()):
        print(f"{count:6} {name}")
    return int(counts["status disagrees"] > 0)


def score(emulator: Emulator, row: dict[str, Any]) -> Iterator[str]:
    """Names of what this row counts for; disagreements are printed."""
    if row["artefact"]:
        yield "not scored: artefact of the recording"
        return
    status, touched, route = replay(emulator, row)
    expected = row["status"] if isinstance(row["status_tiling"], str | None) else row["status_tiling"]
    if isinstance(expected, str):
        yield f"the library crashed, the emulator returned {status}"
        expected = NULL_POINTER
    yield "status agrees" if status == expected else "status disagrees"
    if status != expected:
        print(f"{row['id']}: {status} instead of {expected}: {emulator.message()}")
    if touched != (status == 0):
        yield "results written on failure, or not on success"
    if row["tiling"] and status == 0:
        yield from compare_tiling(row, route)


def compare_tiling(row: dict[str, Any], route: str) -> Iterator[str]:
    """Whether the branch is the recorded one. A key that the library itself never runs is no disagreement."""
    op, refused, key = row["tiling"][-1]
    if refused:
        yield f"tiling refusal {'agrees' if route.startswith('refused') else 'disagrees'}"
    elif route.startswith(f"{op}: ") and f"; key {key};" in route:
        yield "tiling key agrees"
    else:
        yield "tiling key disagrees"
        print(f"{row['id']}: recorded {op} key {key}, emulator {route}")


def replay(emulator: Emulator, row: dict[str, Any]) -> tuple[int, bool, str]:
    """(status, whether both results were written, route) of the row's call."""
    tensors = [create(emulator, row["tensors"][name]) for name in BACKWARD]
    lists = [None if values is None else emulator.create_list(values) for values in (row["lists"] or {}).values()]
    attributes = [*lists, c_bool(row["ceilMode"])] if row["lists"] else []
    size = None if row["null_outputs"]["workspaceSize"] else c_uint64(UNTOUCHED)
    executor = None if row["null_outputs"]["executor"] else c_void_p()
    status = emulator.phase_one(row["api"], [*tensors[:3], *attributes, tensors[3]], size, executor)
    touched = any((size is not None and size.value != UNTOUCHED, executor is not None and executor.value is not None))
    route = ""
    if executor is not None and executor.value is not None:
        route = emulator.poolproof_emulator_route(executor).decode()
        emulator.call("aclDestroyAclOpExecutor", executor)
    for tensor in tensors:
        emulator.call("aclDestroyTensor", tensor)
    for values in lists:
        emulator.call("aclDestroyIntArray", values)
    return status, touched, route


def create(emulator: Emulator, tensor: dict[str, Any] | None) -> c_void_p | None:
    if tensor is None:
        return None
    dtype, tag = DTYPES[tensor["dtype"]], FORMATS[tensor["format"]]
    return emulator.create_tensor(
        tensor["shape"], dtype, tensor["strides"], tensor["offset"], tag, tensor["storage"], None
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
