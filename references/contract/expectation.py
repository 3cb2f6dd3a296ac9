"""What a library should answer to a call: by its code, by its published page, and which of the two it follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from poolproof.references.contract.adaptive_backward import ADAPTIVE_2D_BACKWARD, ADAPTIVE_3D_BACKWARD
from poolproof.references.contract.adaptive_forward_2d import ADAPTIVE_2D
from poolproof.references.contract.adaptive_forward_3d import ADAPTIVE_3D
from poolproof.references.contract.call import ContractCall, ContractError
from poolproof.references.contract.reach import ASKED_OUTRIGHT
from poolproof.references.contract.rules import Contract, Products, Rule, require_values
from poolproof.references.contract.vocabulary import SIGNATURES, ReturnCode
from poolproof.references.contract.windowed_backward import MASK_BACKWARD, MAX_POOL_2D_BACKWARD, MAX_POOL_3D_BACKWARD
from poolproof.references.contract.windowed_forward import MASK, MAX_POOL_2D, MAX_POOL_3D
from poolproof.references.products import PRODUCTS, Product

_TABLES = (
    *(MAX_POOL_3D_BACKWARD, MAX_POOL_2D_BACKWARD, MASK_BACKWARD, ADAPTIVE_2D_BACKWARD, ADAPTIVE_3D_BACKWARD),
    *(MAX_POOL_3D, MAX_POOL_2D, MASK, ADAPTIVE_2D, ADAPTIVE_3D),
)


def contracts_of(products: Iterable[Product]) -> dict[str, Contract]:
    """The ordered clauses of each API for those products.

    `ContractError` names an API that has no table, or a product, a table and an API where the table has no value that
    the product needs.
    """
    known = tuple(products)
    contracts = {table.api: table.contract(known) for table in _TABLES}
    require_apis("contract", contracts)
    for name, values in ASKED_OUTRIGHT.items():
        require_values(known, values, name, "the whole contract")
    return contracts


def require_apis(what: str, given: Mapping[str, object]) -> None:
    """`ContractError` names an API of the family that has no ``what``."""
    for api in SIGNATURES:
        if api not in given:
            raise ContractError(f"{api} has no {what}")


CONTRACTS = contracts_of(PRODUCTS.values())


@dataclass(frozen=True)
class Answer:
    """One answer to a call.

    status
        What the refusing phase returns; 0 where both phases succeed.
    phase
        The phase that refuses; None where neither does.
    clause
        Id of the clause that decided; None where none did. An early success of an empty call has one too.
    crashes
        The library's code dies instead of returning ``status``.
    """

    status: ReturnCode
    phase: int | None = None
    clause: str | None = None
    crashes: bool = False

    @property
    def phase_one(self) -> ReturnCode:
        """What phase one returns."""
        return self.status if self.phase == 1 else ReturnCode.SUCCESS

    def matches(self, phase_one: int, phase_two: int | None = None) -> bool:
        """Whether these returns are this answer; a phase two that was not run contradicts nothing."""
        if phase_one != self.phase_one:
            return False
        if self.phase == 1 or phase_two is None:
            return True
        return phase_two == self.status


class Follows(StrEnum):
    """Which description of the contract a library's answer agrees with."""

    BOTH = "code and page"
    CODE = "code"
    PAGE = "page"
    EARLIER = "an earlier release"
    NEITHER = "neither"


@dataclass(frozen=True)
class Expectation:
    """What may come back from a call.

    code
        What the library's code answers.
    page
        What its published page promises, where that is another answer; None where the page agrees or says nothing.
    erratum
        The known disagreement behind ``page`` or ``earlier`` (a key of `ERRATA`).
    earlier
        What earlier releases of the library answer, where that is another answer.
    """

    code: Answer
    page: Answer | None = None
    erratum: str | None = None
    earlier: Answer | None = None

    @property
    def acceptable(self) -> tuple[Answer, ...]:
        """A library is right when it answers as the code does, as the page promises, or as an earlier release did."""
        return tuple(answer for answer in (self.code, self.page, self.earlier) if answer is not None)

    def followed(self, phase_one: int, phase_two: int | None = None) -> Follows:
        """Which of them a library's returns follow; ``phase_two`` is None where it was not run."""
        by_code = self.code.matches(phase_one, phase_two)
        by_page = by_code if self.page is None else self.page.matches(phase_one, phase_two)
        if by_code and by_page:
            return Follows.BOTH
        if by_code or by_page:
            return Follows.CODE if by_code else Follows.PAGE
        by_earlier = self.earlier is not None and self.earlier.matches(phase_one, phase_two)
        return Follows.EARLIER if by_earlier else Follows.NEITHER


@dataclass(frozen=True)
class Clause:
    """One clause as data, for a table: a rule with its API and id, without its predicate.

    ``status`` is the code's, None where only the page makes the clause. ``page`` says how the published page reads:
    ``agrees``, ``refuses`` (with ``page_status``), ``allows`` or ``silent``. ``earlier_status`` is that of releases
    before a change, None where nothing is known to have changed.
    """

    id: str
    api: str
    products: Products
    statement: str
    source: str
    status: ReturnCode | None
    phase: int
    stage: str
    page: str
    page_status: ReturnCode | None
    earlier_status: ReturnCode | None
    erratum: str | None
    crashes: bool

    @property
    def is_early_success(self) -> bool:
        return self.status is ReturnCode.SUCCESS


def contract_of(api: str) -> Contract:
    """The contract of an API; `ContractError` where there is none."""
    if api not in CONTRACTS:
        raise ContractError(f"there is no contract of {api!r}; there are those of {', '.join(CONTRACTS)}")
    return CONTRACTS[api]


def find_rule(clause: str) -> tuple[Contract, Rule]:
    """The rule behind a clause id; `ContractError` where there is none."""
    for contract in CONTRACTS.values():
        if clause in contract.named:
            return contract, contract.named[clause]
    raise ContractError(f"there is no clause {clause!r}")


def clauses(api: str | None = None) -> tuple[Clause, ...]:
    """Every clause, or those of one API, in the order in which the library checks them."""
    chosen = CONTRACTS.values() if api is None else (contract_of(api),)
    return tuple(_clause(contract, rule) for contract in chosen for rule in contract.rules)


def predict(product: Product, call: ContractCall, *, tiling: bool = True) -> ReturnCode:
    """What phase one returns by the library's code.

    Without ``tiling``, what its host code returns where no operator's tiling runs.
    """
    rules = contract_of(call.api).named_on(product)
    chosen = {clause: rule for clause, rule in rules.items() if tiling or rule.stage != "tiling"}
    return _by_code(chosen, product, call).phase_one


def expectations(product: Product, call: ContractCall) -> Expectation:
    """What the library's code answers, and what its published page promises where that differs."""
    rules = contract_of(call.api).named_on(product)
    code = _by_code(rules, product, call)
    page, erratum = _by_page(_deciding(rules, product, call, code))
    changed = rules[code.clause].earlier if code.clause else None
    earlier = replace(code, status=changed.status) if changed else None
    if page is not None and (page.status, page.phase) != (code.status, code.phase):
        return Expectation(code, page, erratum, earlier)
    return Expectation(code, None, changed.erratum if changed else None, earlier)


Rules = Mapping[str, Rule]


def _by_code(rules: Rules, product: Product, call: ContractCall) -> Answer:
    for clause, rule in rules.items():
        if rule.status is not None and rule.decides(call, product):
            return _answer(clause, rule, rule.status)
    return Answer(ReturnCode.SUCCESS)


def _deciding(rules: Rules, product: Product, call: ContractCall, code: Answer) -> Iterator[tuple[str, Rule]]:
    """All rules that decide the call, in order; the code's were asked already, up to the one that gave its answer."""
    asked = True
    for clause, rule in rules.items():
        if asked and rule.status is not None:
            asked = clause != code.clause
            if not asked:
                yield clause, rule
        elif rule.decides(call, product):
            yield clause, rule


def _by_page(deciding: Iterable[tuple[str, Rule]]) -> tuple[Answer | None, str | None]:
    """The page's answer, None where it is silent, and the erratum behind it.

    Pages name no order of checks, so the code's is taken. Behind an answer that an earlier clause of the code would
    have prevented stands the erratum of that clause, which the page waives.
    """
    waived: str | None = None
    for clause, rule in deciding:
        reading, erratum = (rule.page.reading, rule.page.erratum) if rule.page else ("agrees", None)
        if reading == "silent":
            return None, None
        if rule.page and reading == "refuses":
            return Answer(rule.page.status, 1, clause), erratum
        if rule.status is not None and reading == "agrees":
            return _answer(clause, rule, rule.status), waived
        waived = waived or erratum
    return Answer(ReturnCode.SUCCESS), waived


def _answer(clause: str, rule: Rule, status: ReturnCode) -> Answer:
    phase = None if status is ReturnCode.SUCCESS else rule.phase
    return Answer(status, phase, clause, rule.crashes)


def _erratum(rule: Rule) -> str | None:
    behind = rule.page or rule.earlier
    return behind.erratum if behind else None


def _clause(contract: Contract, rule: Rule) -> Clause:
    return Clause(
        id=contract.id(rule),
        api=contract.api,
        products=rule.products,
        statement=rule.sentence(),
        source=rule.source,
        status=rule.status,
        phase=rule.phase,
        stage=rule.stage,
        page=rule.page.reading if rule.page else "agrees",
        page_status=rule.page.status if rule.page and rule.page.reading == "refuses" else None,
        earlier_status=rule.earlier.status if rule.earlier else None,
        erratum=_erratum(rule),
        crashes=rule.crashes,
    )
