"""The selection of a run: a part of a plan on some backends, or single cases, and what of it has to be judged.

Of pytest, it knows the ids of tests and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

from poolproof.reports.rows.costs import usual_cost
from poolproof.suites.cases.case import Case
from poolproof.suites.isolation.sandbox import Survey
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.aspects import AD_HOC, ASPECTS, ad_hoc_questions
from poolproof.suites.plan.plans import PLANS, Block, Group, Plan, Subject, blocks
from poolproof.suites.plan.shard import Shard
from poolproof.suites.run.allotment import extend

TESTS = ("test_conformance", "test_case")
"""The tests that judge what is planned, each under the id of a block or of a question."""

NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Selection:
    """A part of a plan: its ``aspects``, ``operators`` and ``dtypes``; of the last two, none stands for all.

    If ``lines`` name single cases, nothing else is planned. A ``shard`` has its part of what is left. ``extensions``
    are the numbers of cases beyond the plan, by the id of the block that they extend.
    """

    surveys: Mapping[str, Survey]
    plan: Plan
    seed: int
    aspects: tuple[str, ...]
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    shard: Shard | None = None
    extensions: Mapping[str, int] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the cached blocks: a worker makes them faster than it could unpickle them."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def questions(self) -> dict[str, tuple[Question, str]]:
        """Return the single cases, each with its backend, by id."""
        return {name: asked for name, asked in self._all_questions().items() if self._has(name)}

    def unanswered(self, asked: Collection[tuple[str, str, str]]) -> dict[str, tuple[Question, str]]:
        """Return the single cases without a row; ``asked`` are (backend, block, case id) of all rows."""
        return {
            name: (question, backend)
            for name, (question, backend) in self.questions().items()
            if (backend, question.block, question.id) not in asked
        }

    def answered(self, asked: Collection[tuple[str, str, str]]) -> set[str]:
        """Return the ids of the single cases with a row."""
        return (self.questions().keys() - self.unanswered(asked).keys()) if asked else set()

    def subjects(self) -> list[Subject]:
        """Return the selected subjects, supported or not."""
        return [
            subject
            for surveyed in self.surveys.values()
            for subject in surveyed.subjects
            if (not self.operators or subject.operator.name in self.operators)
            and (not self.dtypes or subject.dtype in self.dtypes)
            and not self.lines
        ]

    def unsupported(self) -> list[Subject]:
        """Return the unsupported subjects, which the first of several shards reports."""
        is_first = self.shard is None or self.shard.number == 1
        return [subject for subject in self.subjects() if subject.unsupported is not None and is_first]

    def blocks(self) -> list[Block]:
        planned = self.planned()
        return planned + [more for block in planned for more in extend(block, self.extensions.get(block.id, 0))]

    def planned(self) -> list[Block]:
        """Return the blocks of the plan, without extensions."""
        return [block for block in self._all_blocks if self._has(block.id)]

    def plan_cases(self) -> int:
        """Count the cases of the whole plan on these backends, or of a larger one if more cases are selected."""
        usual = PLANS.get(self.plan.name, self.plan)
        plan = replace(self.plan, cases=max(self.plan.cases, usual.cases))
        whole = replace(self, plan=plan, aspects=tuple(ASPECTS), operators=(), dtypes=(), lines=(), shard=None)
        return sum(block.count for block in whole.planned())

    def mandatory(self, ids: Collection[str] | None = None, asked: Mapping[str, int] = NOTHING) -> list[dict[str, Any]]:
        """Count the cases that a complete run judges, by group.

        ``ids`` restrict them to some blocks and single questions, ``asked`` restricts blocks to so many first cases.
        """
        total: Counter[Group] = Counter()
        for name, groups in self._groups(asked).items():
            if ids is None or name in ids:
                total.update(groups)
        return [dict(group) | {"planned": count} for group, count in total.items()]

    def narrowed(self, node_ids: Iterable[str], begun: Collection[str]) -> list[str] | None:
        """Return the ids that ``-k``, node ids or the like leave of the plan; None if they leave everything.

        What an interrupted run has ``begun`` stays mandatory. An id that the plan does not have shows that ids cannot
        be relied on: then nothing is left out.
        """
        planned = {name.encode("unicode_escape").decode(): name for name in self._groups()}
        selected = {name for name in map(_planned_id, node_ids) if name}
        kept = [name for test, name in planned.items() if test in selected or name in begun]
        return kept if selected <= planned.keys() and len(kept) < len(planned) else None

    def _has(self, name: str) -> bool:
        return self.shard is None or name in self._shard_ids

    @cached_property
    def _shard_ids(self) -> frozenset[str]:
        assert self.shard is not None
        costs = dict.fromkeys(self._all_questions(), 1.0)
        costs |= {block.id: block.count * usual_cost(block.aspect.id) for block in self._all_blocks}
        return self.shard.names(costs)

    def _all_questions(self) -> dict[str, tuple[Question, str]]:
        return {
            f"{name}-{_question_id(question)}": (question, name)
            for name, surveyed in self.surveys.items()
            for question in ad_hoc_questions(self.lines, surveyed.product, partial(_index_dtypes, surveyed))
        }

    @cached_property
    def _all_blocks(self) -> list[Block]:
        aspects = [ASPECTS[name] for name in self.aspects]
        return list(blocks(self.subjects(), aspects, self.plan, self.seed))

    def _groups(self, asked: Mapping[str, int] = NOTHING) -> dict[str, Mapping[Group, int]]:
        """Return the groups of everything planned, by id."""
        single: dict[str, Mapping[Group, int]] = {
            name: {(("backend", backend), ("aspect", question.aspect.id), *_kind(question)): 1}
            for name, (question, backend) in self.questions().items()
        }
        return single | {block.id: block.groups(asked.get(block.id)) for block in self.blocks()}


def _question_id(question: Question) -> str:
    """Identify a question among those of its backend: lists may have a case twice."""
    return question.id if question.block == AD_HOC else question.block


def _kind(question: Question) -> Group:
    """Return the columns by which the rows of lists are grouped: lists are long."""
    if question.block == AD_HOC:
        return ()
    described = question.describe()
    return tuple((name, described[name]) for name in ("operator", "dtype"))


def _index_dtypes(surveyed: Survey, case: Case) -> tuple[str, ...]:
    """Return the dtypes of indices that a backend takes for the operator and dtype of a case."""
    return tuple(
        subject.index_dtype
        for subject in surveyed.subjects
        if (subject.operator.name, subject.dtype) == (case.operator, case.dtype) and subject.unsupported is None
    )


def _planned_id(node_id: str) -> str:
    """Return the plan's id of a test, empty if it has none."""
    for test in TESTS:
        _, found, name = node_id.partition(f"::{test}[")
        if found:
            return name.removesuffix("]")
    return ""
