"""The questions that a run had to judge, redrawn from its ``run.json`` on any machine."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from poolproof.references.contract.call import ContractError
from poolproof.reports.rows.schema import Row
from poolproof.suites.cases.case import CaseError
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.lines import further_question_of
from poolproof.suites.plan.plans import not_supported
from poolproof.suites.plan.selection import NotDrawable, Selection

Redrawn = tuple[str, str, list[tuple[Row, tuple[str, ...]]]]
"""Backend, block, and for each question of the block the columns that describe it and the checks that judge it if it
conforms. The block without a name holds what the backend does not support."""


def redraw(run: Mapping[str, Any]) -> Iterator[Redrawn]:
    """Redraw everything that a run had to judge; `NotDrawable` if it does not say."""
    selection = Selection.of_run(run)
    for name in selection.surveys if "narrowed" not in run else ():
        rows = [not_supported(subject) for subject in selection.unsupported() if subject.backend == name]
        if rows:
            yield name, "", [(row, ()) for row in rows]
    for backend, block, questions in redraw_questions(run):
        labels = {"backend": backend, "product": selection.surveys[backend].product_name}
        yield backend, block, [(asked.describe() | labels, asked.expected_checks()) for asked in questions]


def redraw_further(row: Row) -> tuple[Row, tuple[str, ...]]:
    """Redraw the question of a further case: the columns that describe it and the checks that judge it."""
    question = further_question_of(row)
    return question.describe(), question.expected_checks()


def redraw_questions(
    run: Mapping[str, Any], wanted: Container[tuple[str, str]] | None = None
) -> Iterator[tuple[str, str, Sequence[Question]]]:
    """Redraw the (backend, block, questions) that a run had to judge, or those of the ``wanted`` (backend, block)."""
    try:
        selection = Selection.of_run(run)

        def is_wanted(name: str, backend: str, block: str) -> bool:
            is_selected = selection.only is None or name in selection.only
            return is_selected and (wanted is None or (backend, block) in wanted)

        for name, (question, backend) in selection.questions().items():
            if is_wanted(name, backend, question.block):
                yield backend, question.block, [question]
        for block in selection.blocks():
            if is_wanted(block.id, block.subject.backend, block.id):
                part = selection.asked.get(block.id)
                yield block.subject.backend, block.id, block.questions() if part is None else block.prefix(part)
    except (CaseError, ContractError) as error:
        raise NotDrawable(f"a case that was asked cannot be read: {error}") from error


def mandatory(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the groups that a complete run has judged; `NotDrawable` if it does not say."""
    return Selection.of_run(run).mandatory()


def plan_cases(run: Mapping[str, Any]) -> int:
    """Count the cases of the whole plan that the run is a part of; `NotDrawable` if it does not say."""
    return Selection.of_run(run).plan_cases()
