"""How well the contract predicts statuses that were observed on a library.

    python studies/observed_statuses.py FILE

FILE holds one JSON object a line (.jsonl, or .jsonl.gz): ``product``, the fields of a call
(`poolproof.references.contract.call`) and ``status``, what phase one returned, or ``crash:SIGNAL`` where the process
died. Optional: ``artefact``, not null where the status is owed to the way it was observed and is not scored; and
``status_tiling`` with ``tiling`` (a list of [operator, 0 or 1, key]), the status of the same call with operators'
tilings run inside phase one, and which of them refused. Exits with 1 where anything disagrees.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from poolproof.references.contract import Answer, ContractCall, expectations, predict
from poolproof.references.products import PRODUCTS

_CALL = ("api", "tensors", "lists", "ceilMode", "null_outputs")


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, compressed or not."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as lines:
        yield from map(json.loads, lines)


def disagreements(row: dict[str, Any]) -> Iterator[tuple[str, bool, str]]:
    """(what was compared, whether it agrees, the two sides) of one row; nothing of an artefact."""
    if row.get("artefact") is not None:
        return
    product, call = PRODUCTS[row["product"]], ContractCall.from_record({name: row[name] for name in _CALL})
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


def main(path: Path) -> int:
    """Print every disagreement and the agreement of each comparison; 1 where there is any."""
    total, agreed = Counter[str](), Counter[str]()
    for number, row in enumerate(read_rows(path), start=1):
        for comparison, agrees, sides in disagreements(row):
            total[comparison] += 1
            agreed[comparison] += agrees
            if not agrees:
                print(f"line {number}, {row['product']} {row['api']}: {sides}")
    for comparison, rows in total.items():
        print(f"{comparison}: {agreed[comparison]} of {rows} agree ({agreed[comparison] / rows:.2%})")
    return int(agreed != total)


def _spoken(answer: Answer) -> str:
    if answer.crashes:
        return f"a crash by {answer.clause} (else {answer.status})"
    return f"{answer.status} by {answer.clause} in phase {answer.phase}" if answer.clause else "success"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python studies/observed_statuses.py FILE")
    sys.exit(main(Path(sys.argv[1])))
