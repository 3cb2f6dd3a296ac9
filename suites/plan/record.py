"""The record of a run's plan in ``run.json``, from which any machine can redraw the run's questions.

No backend is loaded: what the backends declared is part of the record.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from poolproof.backends.abilities import Abilities
from poolproof.references.contract import ContractError
from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.case import CaseError
from poolproof.suites.isolation.sandbox import Survey
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.aspects import ASPECTS
from poolproof.suites.plan.plans import MOST_EXTENSION, Plan, Subject, not_supported
from poolproof.suites.plan.selection import Selection
from poolproof.suites.plan.shard import Shard
from poolproof.suites.run.diagnosis import further_question_of

Redrawn = tuple[str, str, list[tuple[Row, tuple[str, ...]]]]
"""Backend, block, and for each question of the block the columns that describe it and the checks that judge it if it
conforms. The block without a name holds what the backend does not support."""


class NotDrawable(BadInput):
    """A record from which the questions cannot be redrawn; the text says what is missing or wrong."""


def to_record(selection: Selection) -> dict[str, Any]:
    """Convert a selection to JSON."""
    return {
        "plan": selection.plan.name,
        "cases": selection.plan.cases,
        "seed": selection.seed,
        "aspects": list(selection.aspects),
        "operators": list(selection.operators),
        "dtypes": list(selection.dtypes),
        "lines": list(selection.lines),
        **({"shard": str(selection.shard)} if selection.shard else {}),
        "backends": {name: _survey_record(survey) for name, survey in selection.surveys.items()},
    }


def from_record(record: Mapping[str, Any]) -> Selection:
    """Read a selection; `NotDrawable` says what is wrong with its record."""
    try:
        selection = Selection(
            {name: _survey(name, said) for name, said in record["backends"].items()},
            Plan(str(record["plan"]), int(record["cases"]), ""),
            int(record["seed"]),
            tuple(record["aspects"]),
            tuple(record["operators"]),
            tuple(record["dtypes"]),
            tuple(record["lines"]),
            Shard.parse(record["shard"]) if "shard" in record else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotDrawable(f"what was asked is not recorded as this suite does: {error!r}") from error
    unknown = [*(set(selection.aspects) - set(ASPECTS)), *(set(selection.operators) - set(OPERATORS))]
    if unknown:
        raise NotDrawable(f"what was asked names {unknown[0]!r}, which this suite does not have")
    return selection


def redraw(run: Mapping[str, Any]) -> Iterator[Redrawn]:
    """Redraw everything that a run had to judge; `NotDrawable` if it does not say."""
    selection = _selection(run)
    if "narrowed" not in run:
        yield from _unsupported(selection)
    for backend, block, questions in redraw_questions(run):
        labels = {"backend": backend, "product": _product_name(selection.surveys[backend])}
        yield backend, block, [(asked.describe() | labels, asked.expected_checks()) for asked in questions]


def redraw_further(row: Row) -> tuple[Row, tuple[str, ...]]:
    """Redraw the question of a further case: the columns that describe it and the checks that judge it."""
    question = further_question_of(row)
    return question.describe(), question.expected_checks()


def redraw_questions(
    run: Mapping[str, Any], wanted: Container[tuple[str, str]] | None = None
) -> Iterator[tuple[str, str, Sequence[Question]]]:
    """Redraw the (backend, block, questions) that a run had to judge, or those of the ``wanted`` (backend, block)."""
    tests = run.get("narrowed", {}).get("tests")
    kept = None if tests is None else frozenset(tests)
    try:
        selection = _selection(run)
        for name, backend, block, questions in _everything(selection, _asked(run, selection)):
            if (kept is None or name in kept) and (wanted is None or (backend, block) in wanted):
                yield backend, block, questions()
    except (CaseError, ContractError) as error:
        raise NotDrawable(f"a case that was asked cannot be read: {error}") from error


def _selection(run: Mapping[str, Any]) -> Selection:
    if "selection" not in run:
        raise NotDrawable("the run does not say what was asked of it")
    selection, extensions = from_record(run["selection"]), run.get("budget", {}).get("beyond", {})
    blocks = {block.id: block for block in selection.planned()} if extensions else {}
    for name, cases in extensions.items():
        if name not in blocks or not 0 < cases <= MOST_EXTENSION or blocks[name].extension() is None:
            raise NotDrawable(f"a time was spent on {cases:,} cases beyond {name!r}, which does not go on")
    return replace(selection, extensions=extensions)


def mandatory(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the groups that a complete run has judged; `NotDrawable` if it does not say."""
    selection = _selection(run)
    return selection.mandatory(run.get("narrowed", {}).get("tests"), _asked(run, selection))


def plan_cases(run: Mapping[str, Any]) -> int:
    """Count the cases of the whole plan that the run is a part of; `NotDrawable` if it does not say."""
    return _selection(run).plan_cases()


def _asked(run: Mapping[str, Any], selection: Selection) -> dict[str, int]:
    """Return how many cases a budget left of blocks; `NotDrawable` if that is impossible."""
    parts = run.get("budget", {}).get("asked", {})
    counts = {block.id: (block.min_cases, block.count) for block in selection.blocks() if block.id in parts}
    for name, (part, count) in parts.items():
        if name not in counts:
            raise NotDrawable(f"a budget was spent on {name!r}, which is no block of the plan")
        min_cases, total = counts[name]
        if count != total or not min_cases <= part < count:
            raise NotDrawable(
                f"a budget left {part:,} of {count:,} cases of {name}; at least {min_cases:,} of {total:,} are expected"
            )
    return {name: part for name, (part, _) in parts.items()}


def _everything(selection: Selection, asked: Mapping[str, int]) -> Iterator[tuple[str, str, str, Any]]:
    """Yield (id, backend, block, function that makes the questions)."""
    for name, (question, backend) in selection.questions().items():
        yield name, backend, question.block, partial(list, [question])
    for block in selection.blocks():
        part = asked.get(block.id)
        questions = block.questions if part is None else partial(block.prefix, part)
        yield block.id, block.subject.backend, block.id, questions


def _unsupported(selection: Selection) -> Iterator[Redrawn]:
    """Yield what the backends do not support, in the block without a name."""
    by_backend: dict[str, list[tuple[Row, tuple[str, ...]]]] = {}
    for subject in selection.unsupported():
        by_backend.setdefault(subject.backend, []).append((not_supported(subject), ()))
    for backend, rows in by_backend.items():
        yield backend, "", rows


def _product_name(survey: Survey) -> str:
    return survey.product.name if survey.product else ""


def _survey_record(survey: Survey) -> dict[str, Any]:
    first = survey.subjects[0]
    return {
        "product": _product_name(survey),
        "tags": list(first.tags),
        "on_streams": first.on_streams,
        "in_phases": first.in_phases,
        "abilities": {subject.operator.name: subject.abilities.to_record() for subject in survey.subjects},
        "subjects": [[*_pair(subject), subject.unsupported, subject.makes_indices] for subject in survey.subjects],
    }


def _pair(subject: Subject) -> tuple[str, str, str]:
    return subject.operator.name, subject.dtype, subject.index_dtype


def _survey(name: str, said: Mapping[str, Any]) -> Survey:
    product, tags = PRODUCTS[said["product"]] if said["product"] else None, tuple(said["tags"])
    parts = bool(said["on_streams"]), bool(said["in_phases"])
    able = {operator: Abilities.from_record(record) for operator, record in said["abilities"].items()}
    subjects = [
        Subject(name, OPERATORS[operator], dtype, index_dtype, unsupported, tags, product, *parts, made, able[operator])
        for operator, dtype, index_dtype, unsupported, made in said["subjects"]
    ]
    return Survey({}, subjects, product)
