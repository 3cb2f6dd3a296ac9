"""Expected responses to a call, by the library's code and by its published page; which of them a response follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from math import prod

from poolproof.references.contract.call import ContractCall, ContractError, TensorArgument
from poolproof.references.contract.clause import COMPLETE_TABLES, Clause, Contract, require_values
from poolproof.references.contract.clauses import adaptive, windowed
from poolproof.references.contract.facts import mask_shape
from poolproof.references.contract.vocabulary import MASK_APIS, SIGNATURES, ReturnCode
from poolproof.references.products import PRODUCTS, Product

_TABLES = (
    *(windowed.MAX_POOL_3D_BACKWARD, windowed.MAX_POOL_2D_BACKWARD, windowed.MASK_BACKWARD),
    *(adaptive.ADAPTIVE_2D_BACKWARD, adaptive.ADAPTIVE_3D_BACKWARD),
    *(windowed.MAX_POOL_3D, windowed.MAX_POOL_2D, windowed.MASK_FORWARD, adaptive.ADAPTIVE_2D, adaptive.ADAPTIVE_3D),
)


def contracts_of(products: Iterable[Product]) -> dict[str, Contract]:
    """Order the clauses of each API for those products.

    `ContractError` names an API without a table, or a product without a value in a table that it needs.
    """
    known = tuple(products)
    contracts = {table.api: table.placed(known) for table in _TABLES}
    require_apis("contract", contracts)
    for name, values in COMPLETE_TABLES.items():
        require_values(known, values, name, "the whole contract")
    return contracts


def require_apis(what: str, given: Mapping[str, object]) -> None:
    """Raise `ContractError` for an API of the family that has no ``what``."""
    for api in SIGNATURES:
        if api not in given:
            raise ContractError(f"{api} has no {what}")


CONTRACTS = contracts_of(PRODUCTS.values())


@dataclass(frozen=True)
class Response:
    """One response to a call.

    Attributes:
        status: Status of the refusing phase; 0 if both phases succeed.
        phase: The phase that refuses, if one does.
        clause: Id of the clause that decided, if one did. An early success of an empty call has one too.
        crashes: The library's code crashes instead of returning ``status``.
    """

    status: ReturnCode
    phase: int | None = None
    clause: str | None = None
    crashes: bool = False

    @property
    def phase_one(self) -> ReturnCode:
        return self.status if self.phase == 1 else ReturnCode.SUCCESS

    def matches(self, phase_one: int, phase_two: int | None = None) -> bool:
        """Compare with the returned statuses; None stands for a phase two that did not run, which matches anything."""
        return phase_one == self.phase_one and (self.phase == 1 or phase_two in (None, self.status))


class Follows(StrEnum):
    """What a library's response agrees with."""

    BOTH = "code and page"
    CODE = "code"
    PAGE = "page"
    EARLIER = "an earlier release"
    NEITHER = "neither"


@dataclass(frozen=True)
class Expectation:
    """The acceptable responses to a call.

    Attributes:
        code: The response of the library's code.
        page: The response that its published page promises, if different.
        earlier: The response of earlier releases of the library, if different.
    """

    code: Response
    page: Response | None = None
    earlier: Response | None = None

    @property
    def acceptable(self) -> tuple[Response, ...]:
        """The responses of code, page and earlier release: a library may give any of them."""
        return tuple(response for response in (self.code, self.page, self.earlier) if response is not None)

    def followed(self, phase_one: int, phase_two: int | None = None) -> Follows:
        """Name the description that the returned statuses follow; ``phase_two`` is None if it did not run."""
        by_code = self.code.matches(phase_one, phase_two)
        by_page = by_code if self.page is None else self.page.matches(phase_one, phase_two)
        if by_code and by_page:
            return Follows.BOTH
        if by_code or by_page:
            return Follows.CODE if by_code else Follows.PAGE
        by_earlier = self.earlier is not None and self.earlier.matches(phase_one, phase_two)
        return Follows.EARLIER if by_earlier else Follows.NEITHER


def contract_of(api: str) -> Contract:
    """Return the contract of an API; raise `ContractError` if there is none."""
    if api not in CONTRACTS:
        raise ContractError(f"there is no contract of {api!r}; there are those of {', '.join(CONTRACTS)}")
    return CONTRACTS[api]


def find_clause(clause_id: str) -> Clause:
    """Return a clause by its id; raise `ContractError` if there is none."""
    for contract in CONTRACTS.values():
        if clause_id in contract.by_id:
            return contract.by_id[clause_id]
    raise ContractError(f"there is no clause {clause_id!r}")


def all_clauses(api: str | None = None) -> tuple[Clause, ...]:
    """List every clause, or those of one API, in the order of the library's checks."""
    chosen = CONTRACTS.values() if api is None else (contract_of(api),)
    return tuple(clause for contract in chosen for clause in contract.clauses)


def expectations(product: Product, call: ContractCall) -> Expectation:
    """Return the response of the library's code, and that of its published page if different."""
    deciding = (clause for clause in contract_of(call.api).on(product) if clause.decides(call, product))
    code, changed, first = Response(ReturnCode.SUCCESS), None, []
    for clause in deciding:
        first.append(clause)
        if clause.status is not None:
            code, changed = _response(clause, clause.status), clause.earlier
            break
    page = _by_page(chain(first, deciding))
    agrees = page is None or (page.status, page.phase) == (code.status, code.phase)
    return Expectation(code, None if agrees else page, replace(code, status=changed.status) if changed else None)


def _by_page(deciding: Iterable[Clause]) -> Response | None:
    """Return the page's response, None if it is silent. Pages define no order of checks, so the code's applies."""
    for clause in deciding:
        reading = clause.page.reading if clause.page else "agrees"
        if reading == "silent":
            return None
        if reading == "refuses":
            return Response(ReturnCode.INVALID_PARAMETER, 1, clause.id)
        if clause.status is not None and reading == "agrees":
            return _response(clause, clause.status)
    return Response(ReturnCode.SUCCESS)


def _response(clause: Clause, status: ReturnCode) -> Response:
    phase = None if status is ReturnCode.SUCCESS else clause.phase
    return Response(status, phase, clause.id, clause.crashes)


def may_ask(call: ContractCall, expected: Expectation) -> bool:
    """Check whether a generated call may be made.

    It may not if the library's code is known to crash; the clause's own example tests that. It may not either if
    tensors agree on a negative length and pass, because no source defines the outcome.
    """
    accepted = any(response.phase != 1 for response in expected.acceptable)
    tensors = (tensor for tensor in call.tensors.values() if tensor is not None)
    return not expected.code.crashes and not (accepted and any(min(tensor.shape, default=1) < 0 for tensor in tensors))


def may_run(call: ContractCall, expected: Expectation) -> bool:
    """Check whether phase two may follow a successful phase one.

    Code or page must let the call through phase one. Every element must be in its storage, because phase one ignores
    contiguous tensors and outputs. A mask must be long enough, because the mask backward does not check that.
    """
    if all(response.phase == 1 for response in expected.acceptable):
        return False
    if not all(tensor is not None and lies_in_storage(tensor) for tensor in call.tensors.values()):
        return False
    return call.api not in MASK_APIS or prod(call.tensor("indices").shape) >= prod(mask_shape(call))


def lies_in_storage(tensor: TensorArgument) -> bool:
    """Check whether every element is inside the storage; false for a negative length."""
    if tensor.is_empty:
        return True
    reaches = [(length - 1) * stride for length, stride in zip(tensor.shape, tensor.strides, strict=True)]
    first = tensor.offset + sum(min(reach, 0) for reach in reaches)
    last = tensor.offset + sum(max(reach, 0) for reach in reaches)
    return min(tensor.shape, default=1) > 0 and first >= 0 and last < prod(tensor.storage)
