"""Which low-level calls are legal, and what a library answers to those that are not, per API and product.

The contract is data: ordered tables of clauses, each with one sentence, its source, the status and phase in which
it shows, and how to break it. Where the library's published pages and its code disagree, both are recorded, and a
library is right when it follows either.
"""

from poolproof.references.contract.call import ContractCall, ContractError, TensorArgument
from poolproof.references.contract.errata import ERRATA
from poolproof.references.contract.examples import (
    legal_calls,
    supporting_products,
    violating_call,
    violating_pair,
)
from poolproof.references.contract.expectation import (
    Answer,
    Clause,
    Expectation,
    Follows,
    clauses,
    expectations,
    predict,
)
from poolproof.references.contract.running import may_ask, may_run
from poolproof.references.contract.vocabulary import OUT_POINTERS, SIGNATURES, ReturnCode, Signature

__all__ = [
    "ERRATA",
    "OUT_POINTERS",
    "SIGNATURES",
    "Answer",
    "Clause",
    "ContractCall",
    "ContractError",
    "Expectation",
    "Follows",
    "ReturnCode",
    "Signature",
    "TensorArgument",
    "clauses",
    "expectations",
    "legal_calls",
    "may_ask",
    "may_run",
    "predict",
    "supporting_products",
    "violating_call",
    "violating_pair",
]
