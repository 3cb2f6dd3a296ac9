"""Low-level calls that tests of the contract start from, and the recorded answers of a library."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from places import GOLDEN
from poolproof.references.contract import (
    SIGNATURES,
    ContractCall,
)
from poolproof.references.contract.examples import base_template
from poolproof.references.windows import Windowed

DATA = GOLDEN / "observed_statuses.jsonl.gz"
LATER_DATA = DATA.with_name("observed_statuses_2.jsonl.gz")
"""Of the forwards, and of views that leave their storage: rows with the number of the ``cause`` that decides them."""

CALL_FIELDS = ("api", "tensors", "lists", "ceilMode", "null_outputs")
BACKWARD_APIS = tuple(api for api in SIGNATURES if SIGNATURES[api].operator.is_backward)
WINDOWED_APIS = tuple(api for api in SIGNATURES if SIGNATURES[api].operator.windows is Windowed)

MP3 = "aclnnMaxPool3dWithArgmaxBackward"
MP2 = "aclnnMaxPool2dWithIndicesBackward"
MASK = "aclnnMaxPool2dWithMaskBackward"
AD2 = "aclnnAdaptiveMaxPool2dBackward"
AD3 = "aclnnAdaptiveMaxPool3dBackward"


def observed_rows(data: Path = DATA) -> list[dict[str, Any]]:
    with gzip.open(data, "rt") as lines:
        return [json.loads(line) for line in lines]


def observed_call(row: dict[str, Any]) -> ContractCall:
    return ContractCall.from_record({name: row[name] for name in CALL_FIELDS})


def made(api: str, **fields: Any) -> ContractCall:
    """The base call of an API with fields of its template changed."""
    return base_template(api).changed(fields).call()
