"""The selection of a run: a part of a plan on some backends, or single cases, and what of it has to be judged.

It is recorded in ``run.json``, and read from there on any machine: no backend is loaded, for what the backends declared
is part of the record. Of pytest, it knows the ids of tests and nothing else.
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
"""The tests that judge what is planned, each under the id of a block, of a part of it, or of a question."""

_SEEDED = re.compile(FURTHER_SEED)
"""The end of the name of a block of a further seed."""

MOST_SHARDS = 10_000

T = TypeVar("T")


def tested_block(node_id: str) -> str:
    """Return the id of the block or question that a test judges; empty for other tests."""
    found = _PLANNED.search(node_id)
    return found[1] if found else ""


@dataclass(frozen=True)
class Shard:
    """The ``number``-th of ``of`` parts of a plan, counted from 1, for sessions that know nothing of each other.

    Its part follows from the plan, the backends and these numbers alone, and takes about as long as any other.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse a text such as ``2/4``; `BadInput` for anything else."""
        found = re.fullmatch(r"(\d{1,5})/(\d{1,5})", text, re.ASCII)
        shard = cls(*map(int, found.groups())) if found else None
        if shard is None or not 1 <= shard.number <= shard.of <= MOST_SHARDS:
            raise BadInput(f"--shard {text}: a shard is I/N, the I-th of N parts, from 1/N to N/N: 2/4")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def names(self, costs: Mapping[str, float]) -> frozenset[str]:
        """Choose this shard's names, by the costs of all; `BadInput` if some shard would get none."""
        if len(costs) < self.of:
            raise BadInput(f"--shard {self}: the options leave {len(costs):,} parts to deal out: take fewer shards")
        return balance(costs, self.of)[self.number - 1]


def balance(costs: Mapping[str, float], parts: int) -> list[frozenset[str]]:
    """Divide names into parts of about the same cost: the costly first, each to the cheapest part so far.

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
    """A part of a plan: its ``aspects``, ``operators`` and ``dtypes``; of the last two, none stands for all.

    If ``lines`` name single cases, nothing else is planned. A ``shard`` has its part of what is left, of which ``only``
    some blocks and single questions may be selected by id.
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
        """Return the options that leave less of the plan."""
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
                {name: Survey.from_record(name, said) for name, said in record["backends"].items()},
                replace(PLANS[record["plan"]], cases=_number_of_cases(record["cases"])),
                int(record["seed"]),
                tuple(record["aspects"]),
                tuple(record["operators"]),
                tuple(record["dtypes"]),
                tuple(record["lines"]),
                Shard.parse(record["shard"]) if "shard" in record else None,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadInput(f"what was asked is not recorded as this suite does: {error!r}") from error
        unknown = [*(set(selection.aspects) - set(ASPECTS)), *(set(selection.operators) - set(OPERATORS))]
        if unknown:
            raise BadInput(f"what was asked names {unknown[0]!r}, which this suite does not have")
        return selection

    @classmethod
    def of_run(cls, run: Mapping[str, Any]) -> Self:
        """Read what a run had to judge, as a selection of tests left it; `BadInput` if it does not say."""
        if "selection" not in run:
            raise BadInput("the run does not say what was asked of it")
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
        """Return the unsupported subjects, which the first of several shards reports."""
        is_first = self.shard is None or self.shard.number == 1
        return [subject for subject in self.subjects() if subject.unsupported is not None and is_first]

    def blocks(self) -> list[Block]:
        """Return the single questions, or the blocks of the plan."""
        return self._blocks

    def selected(self) -> list[Block]:
        """Return those of the blocks that a selection of tests has left."""
        return [block for block in self._blocks if self.only is None or block.id in self.only]

    def further(self, seed: int) -> list[Block]:
        """Return the drawn blocks of a further seed, which no plan counts; their names end with it."""
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
        found: list[Block] = [*{single.id: single for single in singles}.values(), *planned]
        if self.shard is None:
            return found
        own = self.shard.names({block.id: block.cost for block in found})
        return [block for block in found if block.id in own]

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
        """Return the ids that ``-k``, node ids or the like leave of the plan; None if they leave everything.

        What an interrupted run has ``begun`` stays mandatory. An id that the plan does not have shows that ids cannot
        be relied on: then nothing is left out.
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
"""Backend and block of rows; the block without a name holds what the backend does not support."""

Redrawn = tuple[Row, Question | None]
"""Columns that describe a question, and the question; None for what is not supported."""


@dataclass(frozen=True)
class PlannedRows:
    """The ``count`` rows that a run has to have in a block: of its first questions, or of what is not supported.

    ``labels`` are columns of all of them.
    """

    count: int
    labels: Row
    blocks: tuple[Block, ...] = ()
    unsupported: tuple[Subject, ...] = ()

    def questions(self) -> list[Question]:
        """Draw the questions again; `BadInput` if one cannot be read."""
        drawn = [each for block in self.blocks for each in _read(partial(block.prefix, self.count))]
        return drawn[: self.count]

    def rows(self) -> list[Redrawn]:
        drawn: list[Redrawn] = [(not_supported(subject), None) for subject in self.unsupported]
        return drawn or [(asked.describe() | self.labels, asked) for asked in self.questions()]


def planned_rows(run: Mapping[str, Any], recorded: Mapping[Key, int]) -> dict[Key, PlannedRows]:
    """Return by block what a run has to have; `BadInput` if it does not say.

    Of blocks of further seeds, and of all blocks if the run's budget was used up, these are as many of the first as
    there are ``recorded`` rows.
    """
    selection = Selection.of_run(run)
    unsupported, blocks = defaultdict[Key, list[Subject]](list), defaultdict[Key, list[Block]](list)
    for subject in selection.unsupported() if "narrowed" not in run else ():
        unsupported[subject.backend, ""].append(subject)
    for block in _blocks_of(selection, recorded):
        blocks[block.backend, block.row_block].append(block)
    planned = {key: PlannedRows(len(found), {}, unsupported=tuple(found)) for key, found in unsupported.items()}
    for (backend, name), found in blocks.items():
        count = sum(block.count for block in found)
        if is_used_up(run) or _SEEDED.search(name):
            count = min(count, recorded.get((backend, name), 0))
        labels = {"backend": backend, "product": selection.surveys[backend].product_name}
        planned[backend, name] = PlannedRows(count, labels, tuple(found))
    return planned


def _blocks_of(selection: Selection, names: Collection[Key]) -> Iterator[Block]:
    """Yield what is planned, then the blocks of the further seeds that (backend, block) name."""
    yield from _read(selection.selected)
    for seed in sorted({int(found[1]) for _, name in names if (found := _SEEDED.search(name))}):
        yield from (block for block in selection.further(seed) if (block.backend, block.id) in names)


def _read(draw: Callable[[], Sequence[T]]) -> Sequence[T]:
    """Draw something; `BadInput` if a case in the record cannot be read."""
    try:
        return draw()
    except (CaseError, ContractError) as error:
        raise BadInput(f"a case that was asked cannot be read: {error}") from error


def mandatory(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the groups that a complete run has judged; `BadInput` if it does not say."""
    return Selection.of_run(run).mandatory()
