"""The selection of a run: a part of a plan on some backends, or single cases.

``run.json`` records it. It can be read on any machine without a backend, because the record has the backends'
declarations. Of pytest, this module knows only the ids of tests.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, Self, TypeVar

from poolproof.references.contract.call import ContractError
from poolproof.references.operators import OPERATORS
from poolproof.reports.rows.checks import FURTHER_SEED
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import is_used_up
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.case import CaseError
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.aspects import ASPECTS
from poolproof.suites.plan.blocks import Block, ContractBlock, DrawnBlock
from poolproof.suites.plan.lines import SingleBlock, line_question
from poolproof.suites.plan.plans import MOST_CASES, PLANS, Group, Plan, Subject, Survey, blocks, not_supported

_PLANNED = re.compile(r"::(?:test_conformance|test_case)\[(.+?)(?:@\d+)?\]?\Z", re.DOTALL)
"""Tests of planned work: by the id of a block, of a part of it, or of a question."""

_SEEDED = re.compile(FURTHER_SEED)
"""The end of the name of a block of a further seed."""

MOST_SHARDS = 10_000

T = TypeVar("T")


def tested_block(node_id: str) -> str:
    """Return the id of the block or question that a test judges; empty for other tests."""
    match = _PLANNED.search(node_id)
    return match[1] if match else ""


@dataclass(frozen=True)
class Shard:
    """The ``number``-th of ``of`` parts of a plan, counted from 1, for independent sessions.

    It depends only on the plan, the backends and these numbers. All shards take about the same time.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse a text such as ``2/4``; raise `BadInput` for anything else."""
        match = re.fullmatch(r"(\d{1,5})/(\d{1,5})", text, re.ASCII)
        shard = cls(*map(int, match.groups())) if match else None
        if shard is None or not 1 <= shard.number <= shard.of <= MOST_SHARDS:
            raise BadInput(f"--shard {text}: a shard is I/N, the I-th of N parts, such as 2/4")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def names(self, costs: Mapping[str, float]) -> frozenset[str]:
        """Choose this shard's names, from the costs of all; raise `BadInput` if some shard would get none."""
        if len(costs) < self.of:
            raise BadInput(f"--shard {self}: the options select only {len(costs):,} parts: use fewer shards")
        return balance(costs, self.of)[self.number - 1]


def balance(costs: Mapping[str, float], parts: int) -> list[frozenset[str]]:
    """Divide names into parts of about the same cost: the most costly first, each to the cheapest part so far.

    No part costs more than 4/3 of the optimum's largest (Graham, 1969: longest processing time first).
    """
    groups: list[set[str]] = [set() for _ in range(parts)]
    loads = [(0.0, part) for part in range(parts)]
    for name in sorted(costs, key=lambda name: (-costs[name], name)):
        load, part = heapq.heappop(loads)
        groups[part].add(name)
        heapq.heappush(loads, (load + costs[name], part))
    return [frozenset(names) for names in groups]


@dataclass(frozen=True)
class Selection:
    """A part of a plan; no ``operators`` or ``dtypes`` stand for all of them.

    Attributes:
        lines: Single cases; if there are any, nothing else is planned.
        shard: Selects its part of the rest.
        only: Ids of the selected blocks and single questions; None for all.
    """

    surveys: Mapping[str, Survey]
    plan: Plan
    seed: int
    aspects: tuple[str, ...]
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    shard: Shard | None = None
    only: frozenset[str] | None = None

    def to_record(self) -> dict[str, Any]:
        return {
            "plan": self.plan.name,
            "cases": self.plan.cases,
            "seed": self.seed,
            "aspects": list(self.aspects),
            "operators": list(self.operators),
            "dtypes": list(self.dtypes),
            "lines": list(self.lines),
            "options": self.options,
            **({"shard": str(self.shard)} if self.shard else {}),
            "backends": {name: survey.to_record() for name, survey in self.surveys.items()},
        }

    @property
    def options(self) -> list[str]:
        """Return the options that reduce the plan."""
        chosen = {"operator": self.operators, "dtype": self.dtypes}
        chosen |= {"aspect": self.aspects} if {*self.aspects} < {*ASPECTS} else {}
        is_less = self.plan.cases < PLANS.get(self.plan.name, self.plan).cases
        words = [f"--{name} {value}" for name, values in chosen.items() for value in values]
        return words + [f"--cases {self.plan.cases}"] * is_less

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read a selection; `BadInput` says what is wrong with its record."""
        try:
            selection = cls(
                {name: Survey.from_record(name, survey) for name, survey in record["backends"].items()},
                replace(PLANS[record["plan"]], cases=_number_of_cases(record["cases"])),
                int(record["seed"]),
                tuple(record["aspects"]),
                tuple(record["operators"]),
                tuple(record["dtypes"]),
                tuple(record["lines"]),
                Shard.parse(record["shard"]) if "shard" in record else None,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadInput(f"the recorded selection cannot be read: {error!r}") from error
        unknown = [*(set(selection.aspects) - set(ASPECTS)), *(set(selection.operators) - set(OPERATORS))]
        if unknown:
            raise BadInput(f"the recorded selection names {unknown[0]!r}, which this poolproof does not have")
        return selection

    @classmethod
    def of_run(cls, run: Mapping[str, Any]) -> Self:
        """Read the selection of a run, with its selection of tests; raise `BadInput` if it has no record."""
        if "selection" not in run:
            raise BadInput("the run has no record of its selection")
        tests = run.get("narrowed", {}).get("tests")
        return replace(cls.from_record(run["selection"]), only=None if tests is None else frozenset(tests))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the cached blocks: a worker makes them faster than it could unpickle them."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def subjects(self) -> list[Subject]:
        return [
            subject
            for surveyed in self.surveys.values()
            for subject in surveyed.subjects
            if (not self.operators or subject.operator.name in self.operators)
            and (not self.dtypes or subject.dtype in self.dtypes)
            and not self.lines
        ]

    def unsupported(self) -> list[Subject]:
        """Return the unsupported subjects; of several shards, only the first reports them."""
        is_first = self.shard is None or self.shard.number == 1
        return [subject for subject in self.subjects() if subject.unsupported is not None and is_first]

    def blocks(self) -> list[Block]:
        """Return the single questions, or the blocks of the plan."""
        return self._blocks

    def selected(self) -> list[Block]:
        """Return the blocks that the selection of tests left."""
        return [block for block in self._blocks if self.only is None or block.id in self.only]

    def further(self, seed: int) -> list[Block]:
        """Return the drawn blocks of a further seed, which no plan counts; their names end with the seed."""
        drawn = (each for each in replace(self, seed=seed).selected() if isinstance(each, DrawnBlock | ContractBlock))
        return [replace(block, suffix=f"+{seed}") for block in drawn if block.is_drawn]

    @cached_property
    def _blocks(self) -> list[Block]:
        singles = (
            SingleBlock(line_question(line, surveyed.product, surveyed.subjects), name)
            for name, surveyed in self.surveys.items()
            for line in self.lines
        )
        planned = blocks(self.subjects(), [ASPECTS[name] for name in self.aspects], self.plan, self.seed)
        available: list[Block] = [*{single.id: single for single in singles}.values(), *planned]
        if self.shard is None:
            return available
        own = self.shard.names({block.id: block.cost for block in available})
        return [block for block in available if block.id in own]

    def plan_cases(self) -> int:
        """Count the cases of the whole plan on these backends, or of a larger one if more cases are selected."""
        usual = PLANS.get(self.plan.name, self.plan)
        plan = replace(self.plan, cases=max(self.plan.cases, usual.cases))
        return sum(block.count for block in Selection(self.surveys, plan, self.seed, tuple(ASPECTS)).blocks())

    def mandatory(self) -> list[dict[str, Any]]:
        """Count the cases that a complete run judges, by group."""
        total: Counter[Group] = Counter()
        for block in self.selected():
            total.update(block.groups())
        return [dict(group) | {"planned": count} for group, count in total.items()]

    def narrowed(self, node_ids: Iterable[str], begun: Collection[str]) -> list[str] | None:
        """Return the ids that ``-k``, node ids or similar options leave of the plan; None if they leave all.

        Blocks that an interrupted run has ``begun`` stay mandatory. If an id is not in the plan, ids are not reliable,
        and nothing is left out.
        """
        planned = {block.id.encode("unicode_escape").decode(): block.id for block in self.blocks()}
        selected = {*map(tested_block, node_ids)} - {""}
        kept = [name for test, name in planned.items() if test in selected or name in begun]
        return kept if selected <= planned.keys() and len(kept) < len(planned) else None


def _number_of_cases(number: int) -> int:
    if not 0 < number <= MOST_CASES:
        raise ValueError(f"plans have 1 to {MOST_CASES:,} cases, not {number:,}")
    return number


Key = tuple[str, str]
"""(Backend, block) of rows; the empty block holds what the backend does not support."""

Redrawn = tuple[Row, Question | None]
"""(Columns that describe a question, the question); the question is None for an unsupported subject."""


@dataclass(frozen=True)
class PlannedRows:
    """The ``count`` rows that a run must have in a block: of its first questions, or of unsupported subjects.

    ``labels`` are columns of all of them.
    """

    count: int
    labels: Row
    blocks: tuple[Block, ...] = ()
    unsupported: tuple[Subject, ...] = ()

    def questions(self) -> list[Question]:
        """Draw the questions again; raise `BadInput` if one cannot be read."""
        drawn = [each for block in self.blocks for each in _read(partial(block.prefix, self.count))]
        return drawn[: self.count]

    def rows(self) -> list[Redrawn]:
        drawn: list[Redrawn] = [(not_supported(subject), None) for subject in self.unsupported]
        return drawn or [(question.describe() | self.labels, question) for question in self.questions()]


def planned_rows(run: Mapping[str, Any], recorded: Mapping[Key, int]) -> dict[Key, PlannedRows]:
    """Return block -> rows that a run must have; raise `BadInput` if it has no record.

    Blocks of further seeds, and all blocks if the budget was used up, need only as many rows as are ``recorded``.
    """
    selection = Selection.of_run(run)
    unsupported, blocks = defaultdict[Key, list[Subject]](list), defaultdict[Key, list[Block]](list)
    for subject in selection.unsupported() if "narrowed" not in run else ():
        unsupported[subject.backend, ""].append(subject)
    for block in _blocks_of(selection, recorded):
        blocks[block.backend, block.row_block].append(block)
    planned = {key: PlannedRows(len(members), {}, unsupported=tuple(members)) for key, members in unsupported.items()}
    for (backend, name), members in blocks.items():
        count = sum(block.count for block in members)
        if is_used_up(run) or _SEEDED.search(name):
            count = min(count, recorded.get((backend, name), 0))
        labels = {"backend": backend, "product": selection.surveys[backend].product_name}
        planned[backend, name] = PlannedRows(count, labels, tuple(members))
    return planned


def _blocks_of(selection: Selection, names: Collection[Key]) -> Iterator[Block]:
    """Yield the planned blocks, then those of further seeds among ``names``, which are (backend, block)."""
    yield from _read(selection.selected)
    for seed in sorted({int(match[1]) for _, name in names if (match := _SEEDED.search(name))}):
        yield from (block for block in selection.further(seed) if (block.backend, block.id) in names)


def _read(draw: Callable[[], Sequence[T]]) -> Sequence[T]:
    """Draw something; raise `BadInput` if a recorded case cannot be read."""
    try:
        return draw()
    except (CaseError, ContractError) as error:
        raise BadInput(f"a recorded case cannot be read: {error}") from error


def mandatory(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the groups that a complete run judges; raise `BadInput` if it has no record."""
    return Selection.of_run(run).mandatory()
