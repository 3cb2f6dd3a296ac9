"""The contract of low-level calls: which are legal, and how a library responds to those that are not.

The contract is data by API and product: ordered tables of clauses, each with one sentence, its source, its status and
phase, and how to break it. Where the library's published pages and its code disagree, both are recorded, and a library
is right when it follows either.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poolproof.references.contract.call import ContractCall, ContractError, TensorArgument
    from poolproof.references.contract.clause import ERRATA, Clause
    from poolproof.references.contract.examples import (
        legal_calls,
        supporting_products,
        violating_call,
        violating_pair,
    )
    from poolproof.references.contract.expectation import (
        Expectation,
        Follows,
        Response,
        all_clauses,
        expectations,
        may_ask,
        may_run,
        predict,
    )
    from poolproof.references.contract.vocabulary import OUT_POINTERS, SIGNATURES, ReturnCode, Signature

__all__ = [
    "ERRATA",
    "OUT_POINTERS",
    "SIGNATURES",
    "Clause",
    "ContractCall",
    "ContractError",
    "Expectation",
    "Follows",
    "Response",
    "ReturnCode",
    "Signature",
    "TensorArgument",
    "all_clauses",
    "expectations",
    "legal_calls",
    "may_ask",
    "may_run",
    "predict",
    "supporting_products",
    "violating_call",
    "violating_pair",
]


def __getattr__(name: str) -> Any:
    """Import what is used: the host of a backend makes calls, and knows none of the clauses."""
    for module in ("call", "clause", "examples", "expectation") if name in __all__ else ():
        found = vars(import_module(f"{__name__}.{module}"))
        if name in found:
            return found[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
