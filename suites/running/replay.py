"""From the line that a failure prints back to the question that it came from."""

from __future__ import annotations

from collections.abc import Iterable

from poolproof.references.products import Product
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.judging.contract import question_of, read_call
from poolproof.suites.judging.judge import Question
from poolproof.suites.running.plans import EVERYTHING
from poolproof.suites.running.sandbox import AnyQuestion


def given_questions(lines: Iterable[str], product: Product | None) -> list[AnyQuestion]:
    """The questions of some lines of JSON, cases or low-level calls, for a backend of ``product`` (None: of none).

    `CaseError` or `ContractError` says what is wrong with a line, or that the backend has no contract to ask about.
    """
    return [_question(line, product) for line in lines]


def check_lines(lines: Iterable[str]) -> None:
    """Tell of a wrong line before a backend is loaded: `CaseError` or `ContractError` says what is wrong with it."""
    for line in lines:
        if read_call(line) is None:
            Case.from_json(line)


def _question(line: str, product: Product | None) -> AnyQuestion:
    call = read_call(line)
    if call is None:
        case = Case.from_json(line)
        return Question(case, EVERYTHING.checks, EVERYTHING.id, "case", EVERYTHING.repeats, EVERYTHING.standards)
    if product is None:
        raise CaseError("a low-level call can only be put to a backend with a contract, such as aclnn")
    return question_of(call, product)
