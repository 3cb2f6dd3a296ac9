"""What a run is asked for: a part of a plan on some backends, or single cases, and what of it has to be judged.

Knows the plan and the ids by which pytest's tests go, nothing else of pytest.
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
from poolproof.suites.judging.question import Question
from poolproof.suites.running.allotment import going_on
from poolproof.suites.running.aspects import ASPECTS, GIVEN, given_questions
from poolproof.suites.running.plans import PLANS, Block, Group, Plan, Subject, blocks
from poolproof.suites.running.serving import Survey
from poolproof.suites.running.sharding import Shard

TESTS = ("test_conformance", "test_case")
"""The tests that judge what is planned, each under the id of a block or of a question."""

NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Selection:
    """``aspects``, ``operators`` and ``dtypes`` choose from the plan; of the last two, none stands for all.

    Where ``lines`` name single cases, nothing else is planned. Of what is left, a ``shard`` has its part. ``beyond``
    says how many cases there are that no plan has, by the id of the block that they go on from.
    """

    surveys: Mapping[str, Survey]
    plan: Plan
    seed: int
    aspects: tuple[str, ...]
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    shard: Shard | None = None
    beyond: Mapping[str, int] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Without the blocks, which a worker makes sooner than it is sent them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def questions(self) -> dict[str, tuple[Question, str]]:
        """The single cases and the backend that each is put to, by id."""
        return {name: asked for name, asked in self._all_questions().items() if self._has(name)}

    def unanswered(self, asked: Collection[tuple[str, str, str]]) -> dict[str, tuple[Question, str]]:
        """Those of the single cases that no row answers; ``asked`` are (backend, block, case id) of all rows."""
        return {
            name: (question, backend)
            for name, (question, backend) in self.questions().items()
            if (backend, question.block, question.id) not in asked
        }

    def answered(self, asked: Collection[tuple[str, str, str]]) -> set[str]:
        """The ids of the others."""
        return (self.questions().keys() - self.unanswered(asked).keys()) if asked else set()

    def subjects(self) -> list[Subject]:
        """What the backends are asked about, or would be if they had it."""
        return [
            subject
            for surveyed in self.surveys.values()
            for subject in surveyed.subjects
            if (not self.operators or subject.operator.name in self.operators)
            and (not self.dtypes or subject.dtype in self.dtypes)
            and not self.lines
        ]

    def unsupported(self) -> list[Subject]:
        """What the backends do not have; of several shards, the first tells."""
        tells = self.shard is None or self.shard.number == 1
        return [subject for subject in self.subjects() if subject.unsupported is not None and tells]

    def blocks(self) -> list[Block]:
        planned = self.planned()
        return planned + [more for block in planned for more in going_on(block, self.beyond.get(block.id, 0))]

    def planned(self) -> list[Block]:
        """Those of the plan."""
        return [block for block in self._all_blocks if self._has(block.id)]

    def plan_cases(self) -> int:
        """The cases of the whole plan on these backends, of which this may choose some; more only where more of each
        kind are asked for.
        """
        usual = PLANS.get(self.plan.name, self.plan)
        plan = replace(self.plan, cases=max(self.plan.cases, usual.cases))
        whole = replace(self, plan=plan, aspects=tuple(ASPECTS), operators=(), dtypes=(), lines=(), shard=None)
        return sum(block.count for block in whole.planned())

    def mandatory(self, ids: Collection[str] | None = None, asked: Mapping[str, int] = NOTHING) -> list[dict[str, Any]]:
        """The groups of rows with the number of cases that a complete run judges in each.

        Of some blocks and single questions alone, where their ``ids`` are given; of the blocks in ``asked``, of so many
        of their first cases.
        """
        return _total(groups for name, groups in self._groups(asked).items() if ids is None or name in ids)

    def narrowed(self, node_ids: Iterable[str], begun: Collection[str]) -> list[str] | None:
        """The ids that ``-k``, node ids or the like have left of the plan; None if they left everything.

        What an interrupted run has ``begun`` is mandatory all the same. An id that is not one of the plan's is taken
        for a sign that ids are not what they are believed to be: then nothing is left out.
        """
        planned = {name.encode("unicode_escape").decode(): name for name in self._groups()}
        selected = {name for name in map(_planned_id, node_ids) if name}
        owed = [name for test, name in planned.items() if test in selected or name in begun]
        return owed if selected <= planned.keys() and len(owed) < len(planned) else None

    def _has(self, name: str) -> bool:
        return self.shard is None or name in self._dealt

    @cached_property
    def _dealt(self) -> frozenset[str]:
        """The ids of what this shard has."""
        assert self.shard is not None
        costs = dict.fromkeys(self._all_questions(), 1.0)
        costs |= {block.id: block.count * usual_cost(block.aspect.id) for block in self._all_blocks}
        return self.shard.names(costs)

    def _all_questions(self) -> dict[str, tuple[Question, str]]:
        return {
            f"{name}-{_named(question)}": (question, name)
            for name, surveyed in self.surveys.items()
            for question in given_questions(self.lines, surveyed.product, partial(_index_dtypes, surveyed))
        }

    @cached_property
    def _all_blocks(self) -> list[Block]:
        aspects = [ASPECTS[name] for name in self.aspects]
        return list(blocks(self.subjects(), aspects, self.plan, self.seed))

    def _groups(self, asked: Mapping[str, int] = NOTHING) -> dict[str, Mapping[Group, int]]:
        """Everything that is planned by its id, with the groups that its rows lie in."""
        given: dict[str, Mapping[Group, int]] = {
            name: {(("backend", backend), ("aspect", question.aspect.id), *_kind(question)): 1}
            for name, (question, backend) in self.questions().items()
        }
        return given | {block.id: block.groups(asked.get(block.id)) for block in self.blocks()}


def _named(question: Question) -> str:
    """What tells a question from the others that are asked of a backend: lists may have the same case twice."""
    return question.id if question.block == GIVEN else question.block


def _kind(question: Question) -> Group:
    """What tells the group of a row of a list from those of other rows: lists are long."""
    if question.block == GIVEN:
        return ()
    described = question.describe()
    return tuple((name, described[name]) for name in ("operator", "dtype"))


def _index_dtypes(surveyed: Survey, case: Case) -> tuple[str, ...]:
    """The dtypes of indices that a backend takes for the operator and dtype of a case."""
    return tuple(
        subject.index_dtype
        for subject in surveyed.subjects
        if (subject.operator.name, subject.dtype) == (case.operator, case.dtype) and subject.unsupported is None
    )


def _total(planned: Iterable[Mapping[Group, int]]) -> list[dict[str, Any]]:
    total: Counter[Group] = Counter()
    for groups in planned:
        total.update(groups)
    return [dict(group) | {"planned": count} for group, count in total.items()]


def _planned_id(node_id: str) -> str:
    """What a test stands for in a plan, empty if for nothing."""
    for test in TESTS:
        _, found, name = node_id.partition(f"::{test}[")
        if found:
            return name.removesuffix("]")
    return ""
