"""Low-level calls that tests of the contract start from, and the recorded answers of a library."""

import gzip
import json
from functools import cache
from typing import Any

from places import GOLDEN
from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.examples import base_template
from poolproof.references.contract.expectation import Response, contract_of
from poolproof.references.contract.vocabulary import ReturnCode
from poolproof.references.products import Product

MP3 = "aclnnMaxPool3dWithArgmaxBackward"
MP2 = "aclnnMaxPool2dWithIndicesBackward"
MASK = "aclnnMaxPool2dWithMaskBackward"
AD2 = "aclnnAdaptiveMaxPool2dBackward"
AD3 = "aclnnAdaptiveMaxPool3dBackward"


def predict(product: Product, call: ContractCall, *, tiling: bool = True) -> ReturnCode:
    """Predict the status of phase one by the library's code.

    Without ``tiling``, that of its host code where no operator's tiling runs.
    """
    for clause in contract_of(call.api).on(product):
        if clause.status is not None and (tiling or clause.stage != "tiling") and clause.decides(call, product):
            return Response(clause.status, clause.phase).phase_one
    return ReturnCode.SUCCESS


@cache
def observed_rows() -> list[dict[str, Any]]:
    """Statuses of phase one of a library's host code; some with the number of the ``cause`` that decides them."""
    with gzip.open(GOLDEN / "observed_statuses.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [*map(json.loads, lines)]


def made(api: str, **fields: Any) -> ContractCall:
    """The base call of an API with fields of its template changed."""
    return base_template(api).changed(fields).call()
