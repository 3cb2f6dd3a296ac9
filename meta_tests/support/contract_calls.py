"""Low-level calls that tests of the contract start from, and the recorded answers of a library."""

import gzip
import json
from functools import cache
from typing import Any

from places import GOLDEN
from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.examples import base_template

MP3 = "aclnnMaxPool3dWithArgmaxBackward"
MP2 = "aclnnMaxPool2dWithIndicesBackward"
MASK = "aclnnMaxPool2dWithMaskBackward"
AD2 = "aclnnAdaptiveMaxPool2dBackward"
AD3 = "aclnnAdaptiveMaxPool3dBackward"


@cache
def observed_rows() -> list[dict[str, Any]]:
    """Statuses of phase one of a library's host code; some with the number of the ``cause`` that decides them."""
    with gzip.open(GOLDEN / "observed_statuses.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [*map(json.loads, lines)]


def made(api: str, **fields: Any) -> ContractCall:
    """The base call of an API with fields of its template changed."""
    return base_template(api).changed(fields).call()
