"""Questions that no block draws, each from a line of JSON that holds all of it.

An ad-hoc question is named on a command line or stands in a list of cases, and is judged by the claims of all aspects;
a further case of a diagnosis is judged by those of the aspect that failed.
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
"""The block of a question that was named by itself. Rows without any block are of calls that were not planned."""

CLAIMS: dict[str, Aspect] = {**CASE_ASPECTS, EVERYTHING.id: EVERYTHING, LISTED.id: LISTED, NEIGHBOURS: AUXILIARY}
"""What a further case may be held to."""


@dataclass(frozen=True)
class SingleBlock(Block):
    """A single question to a backend: of a line, or of a block whose cases are judged one by one."""

    question: Question
    asked_backend: str

    @property
    def id(self) -> str:
        """The name of its test: a list may have a case twice, in different places."""
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
    """Parse a row of a list, a low-level call, a way through the phases, a sequence or a case, told apart by fields.

    `CaseError` or `ContractError` says what is wrong with a line.
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
        case _:  # or none at all, which this says
            return Case.from_json(line)


def line_question(line: str, product: Product | None, subjects: Iterable[Subject] = ()) -> Question:
    """Make the question of a line for a backend of ``product``, which may have none, and of these subjects.

    `CaseError` or `ContractError` says what is wrong with the line, or that the backend has no contract.
    """
    match parse_line(line):
        case Entry() as entry:
            asked = entry.case and (entry.case.operator, entry.case.dtype)
            fitting = (each for each in subjects if (each.operator.name, each.dtype) == asked and not each.unsupported)
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
    """Make the question of a case that no plan draws, of one of the aspects `BESIDE_PLAN`.

    It is held to the ``claims`` of another aspect; KeyError for one that is not about cases.
    """
    held = CLAIMS[claims]
    own = Aspect(aspect, held.claim, held.checks, held.repeats)
    return CaseQuestion(case, own, block_beside_plan(aspect, claims))


def further_question_of(row: Row) -> CaseQuestion:
    """Return the question of the row of a case that no plan draws; `BadInput` if it has none."""
    try:
        return further_question(Case.from_json(row["case"]), held_to(row["aspect"], row["block"]), row["aspect"])
    except (CaseError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"its case or its block is none: {error}") from error
