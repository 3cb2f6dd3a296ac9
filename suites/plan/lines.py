"""Questions outside of blocks, each from a complete line of JSON.

An ad-hoc question comes from a command line or a case list, and the claims of all aspects judge it. A further case of a
diagnosis is judged by the claims of the aspect that failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from poolproof.references.contract.call import ContractCall
from poolproof.references.products import Product
from poolproof.reports.rows.checks import DIAGNOSIS, NEIGHBOURS, block_beside_plan, held_to
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.entry import Entry, read_entry
from poolproof.suites.judging.case_question import AUXILIARY, CaseQuestion, UnreadableRow
from poolproof.suites.judging.contract import contract_question
from poolproof.suites.judging.phases import PhaseQuestion, read_phase_question
from poolproof.suites.judging.question import Aspect, Question
from poolproof.suites.plan.aspects import CASE_ASPECTS, CONTRACT, EVERYTHING, LISTED, PHASES
from poolproof.suites.plan.blocks import Block
from poolproof.suites.plan.plans import Group, Subject

if TYPE_CHECKING:
    from poolproof.reports.rows.records import Done

AD_HOC = "case"
"""Block of a single named question. Rows without any block are of unplanned calls."""

CLAIMS: dict[str, Aspect] = {**CASE_ASPECTS, EVERYTHING.id: EVERYTHING, LISTED.id: LISTED, NEIGHBOURS: AUXILIARY}
"""Possible claims about a further case."""


@dataclass(frozen=True)
class SingleBlock(Block):
    """A single question to a backend: from a line, or from a block with cases that are judged one by one."""

    question: Question
    asked_backend: str

    @property
    def id(self) -> str:
        """Name of its test: a list may have a case twice, in different places."""
        return f"{self.backend}-{self.question.id if self.row_block == AD_HOC else self.row_block}"

    @property
    def backend(self) -> str:
        return self.asked_backend

    @property
    def row_block(self) -> str:
        return self.question.block

    @property
    def aspect(self) -> Aspect:  # type: ignore[override]
        return self.question.aspect

    def questions(self) -> list[Question]:
        return [self.question]

    def groups(self) -> dict[Group, int]:
        group = {"backend": self.backend, "aspect": self.aspect.id}
        if self.row_block != AD_HOC:  # lists are long
            described = self.question.describe()
            group |= {column: described[column] for column in ("operator", "dtype")}
        return {tuple(group.items()): 1}

    def is_done(self, done: Done) -> bool:
        return (self.backend, self.row_block, self.question.id) in done.recorded


def parse_line(line: str) -> Entry | ContractCall | PhaseQuestion | Case:
    """Parse a list row, low-level call, scenario, sequence or case, told apart by its fields.

    `CaseError` or `ContractError` is raised for an invalid line.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    match record:
        case {"list": _}:
            return read_entry(record)
        case {"api": _}:
            return ContractCall.from_record(record)
        case {"way": _} | {"sequence": _}:
            return read_phase_question(record, PHASES)
        case _:  # it raises the error of other lines
            return Case.from_json(line)


def line_question(line: str, product: Product | None, subjects: Iterable[Subject] = ()) -> Question:
    """Return the question of a line for a backend of ``product``, or None, with these subjects.

    `CaseError` or `ContractError` is raised for an invalid line, or if the backend has no contract.
    """
    match parse_line(line):
        case Entry() as entry:
            pair = entry.case and (entry.case.operator, entry.case.dtype)
            fitting = (each for each in subjects if (each.operator.name, each.dtype) == pair and not each.unsupported)
            entry = entry.within(tuple(each.index_dtype for each in fitting))
            if entry.case is None:
                return UnreadableRow(entry, LISTED, entry.place)
            return CaseQuestion(entry.case, LISTED, entry.place, entry=entry)
        case Case() as case:
            return CaseQuestion(case, EVERYTHING, AD_HOC)
        case PhaseQuestion() as question if question.is_drawn or product:
            return replace(question, block=AD_HOC)
        case ContractCall() as call if product:
            return contract_question(call, product, CONTRACT, AD_HOC)
    raise CaseError("a low-level call can only be put to a backend with a contract, such as aclnn")


def further_question(case: Case, claims: str, aspect: str = DIAGNOSIS) -> CaseQuestion:
    """Return the question of an unplanned case, of one of the aspects `BESIDE_PLAN`.

    The ``claims`` of another aspect judge it; KeyError if that is not about cases.
    """
    claimed = CLAIMS[claims]
    own = Aspect(aspect, claimed.claim, claimed.checks, claimed.repeats)
    return CaseQuestion(case, own, block_beside_plan(aspect, claims))


def further_question_of(row: Row) -> CaseQuestion:
    """Return the question of an unplanned case's row; raise `BadInput` if it has none."""
    try:
        return further_question(Case.from_json(row["case"]), held_to(row["aspect"], row["block"]), row["aspect"])
    except (CaseError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"its case or its block is none: {error}") from error
