"""Statuses that were observed on a library, held against those of the contract and of the emulator.

A row holds ``product``, the fields of a call (`poolproof.references.contract.call`) and ``status``, what phase one
returned, or ``crash:SIGNAL`` where the process died. Optional: ``artefact``, not null where the status is due to the
way it was observed and is not scored; and ``status_tiling`` with ``tiling`` (a list of [operator, 0 or 1, key]), the
status of the same call with operators' tilings run inside phase one, and which of them refused.

Of the emulator, whose phase one runs tilings, a status with tiling counts where there is one. Where there is none, and
where the library or its tiling crashed, the contract knows the status that it would have given.
"""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import c_bool, c_uint64, c_void_p
from typing import Any

from contract_calls import predict
from emulator_driver import Emulator
from poolproof.backends.aclnn.prototypes import FORMATS
from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.expectation import Response, expectations
from poolproof.references.contract.vocabulary import DTYPES, SIGNATURES
from poolproof.references.products import PRODUCTS

Row = dict[str, Any]

UNTOUCHED = 0xDEAD

_CALL = ("api", "tensors", "lists", "ceilMode", "null_outputs")


def read_call(row: Row) -> ContractCall:
    return ContractCall.from_record({name: row[name] for name in _CALL})


def disagreements(row: Row) -> Iterator[tuple[str, bool, str]]:
    """Yield (what was compared, whether it agrees, the two sides) of one row; nothing of an artefact."""
    if row.get("artefact") is not None:
        return
    product, call = PRODUCTS[row["product"]], read_call(row)
    code = expectations(product, call).code
    if str(row["status"]).startswith("crash"):
        yield "crashes", code.crashes, f"observed {row['status']}, expected {_spoken(code)}"
    else:
        predicted = predict(product, call, tiling=False)
        agrees = predicted == row["status"] and not code.crashes
        yield "statuses", agrees, f"observed {row['status']}, predicted {predicted}; expected {_spoken(code)}"
    if isinstance(row.get("status_tiling"), int):
        refused = any(step[1] for step in row["tiling"])
        agrees = row["status_tiling"] == code.phase_one and refused == (code.status != 0)
        observed = f"{row['status_tiling']}, tiling {'refuses' if refused else 'passes'}"
        yield "with tiling", agrees, f"observed {observed}; expected {_spoken(code)}"


def _spoken(answer: Response) -> str:
    if answer.crashes:
        return f"a crash by {answer.clause} (else {answer.status})"
    return f"{answer.status} by {answer.clause} in phase {answer.phase}" if answer.clause else "success"


def score(emulator: Emulator, row: Row, title: str) -> Iterator[str]:
    """Names of what this row counts for, with the sides of what disagrees."""
    if row.get("artefact") is not None:
        yield "not scored: artefact of the recording"
        return
    status, touched, route = replay(emulator, row)
    expected = status_with_tiling(row)
    if str(row["status"]).startswith("crash"):
        yield f"the library crashed, the emulator returned {status}"
    if status == expected:
        yield "status agrees"
    else:
        yield f"status disagrees: {title}: {status} instead of {expected}: {emulator.message()}"
    if touched != (status == 0):
        yield "results written on failure, or not on success"
    if row.get("tiling") and status == 0:
        yield from compare_tiling(row, route, title)


def status_with_tiling(row: Row) -> int:
    """Return the expected status of phase one once its tilings run; the contract's if the row's is of another."""
    recorded = row.get("status_tiling")
    if isinstance(recorded, int):
        return recorded
    product, call, status = PRODUCTS[row["product"]], read_call(row), row["status"]
    is_other = isinstance(status, int) and predict(product, call, tiling=False) != status
    return status if is_other else expectations(product, call).code.phase_one


def compare_tiling(row: Row, route: str, title: str) -> Iterator[str]:
    """Tell whether the branch is the recorded one. A key that the library itself never runs is no disagreement."""
    op, refused, key = row["tiling"][-1]
    if refused:
        yield f"tiling refusal {'agrees' if route.startswith('refused') else 'disagrees'}"
    elif route.startswith(f"{op}: ") and f"; key {key};" in route:
        yield "tiling key agrees"
    else:
        yield f"tiling key disagrees: {title}: recorded {op} key {key}, emulator {route}"


def replay(emulator: Emulator, row: Row) -> tuple[int, bool, str]:
    """(status, whether both results were written, route) of the row's call."""
    tensors = {name: create(emulator, tensor) for name, tensor in row["tensors"].items()}
    lists = {
        name: None if values is None else emulator.create_list(values) for name, values in (row["lists"] or {}).items()
    }
    given = {**tensors, **lists, "ceilMode": c_bool(bool(row["ceilMode"]))}
    arguments = [given[argument.name] for argument in SIGNATURES[row["api"]].arguments]
    size = None if row["null_outputs"]["workspaceSize"] else c_uint64(UNTOUCHED)
    executor = None if row["null_outputs"]["executor"] else c_void_p()
    status = emulator.phase_one(row["api"], arguments, size, executor)
    touched = any((size is not None and size.value != UNTOUCHED, executor is not None and executor.value is not None))
    route = ""
    if executor is not None and executor.value is not None:
        route = emulator.poolproof_emulator_route(executor).decode()
        emulator.call("aclDestroyAclOpExecutor", executor)
    for tensor in tensors.values():
        emulator.call("aclDestroyTensor", tensor)
    for values in lists.values():
        emulator.call("aclDestroyIntArray", values)
    return status, touched, route


def create(emulator: Emulator, tensor: Row | None) -> c_void_p | None:
    if tensor is None:
        return None
    dtype, tag = DTYPES[tensor["dtype"]], FORMATS[tensor["format"]]
    return emulator.create_tensor(
        tensor["shape"], dtype, tensor["strides"], tensor["offset"], tag, tensor["storage"], None
    )
