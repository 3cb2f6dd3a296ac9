"""The questions of a plan in an order that finds defects early: a few of every block before more of any.

Cases depend on operator, dtypes, aspect and seed alone, never on a backend or a defect. So they are drawn once, in a
few rounds of growing size, and serve every product and every defect that is still at large when a round begins.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from math import ceil
from multiprocessing import get_context
from typing import Any, cast

from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.aspects import CASE_ASPECTS, CONTRACT, PHASES
from poolproof.suites.plan.blocks import BLOCK_SIZE, Block, CaseBlock, ContractBlock, ListedBlock
from poolproof.suites.plan.plans import Plan, Survey, blocks

_FIRST_ROUNDS = (1_500, 5_000)
"""How many cases there are up to the end of the first rounds."""

_MOST_FIRST = 60
"""How many listed cases of a block come before all that is drawn."""

_BLOCKS_AT_ONCE = 20
"""How many blocks of varied and drawn low-level calls one round has for a product."""

LARGEST_ROUND = 20_000
"""Most cases that a later round draws: they are all kept until it is over."""

_Drawn = tuple[str, str, str, str, int, tuple[str, ...]]
"""What the cases of a block depend on, besides the seed: operator, dtypes, aspect, number; of listed ones the tags."""

_OfCases = CaseBlock | ListedBlock

_Asked = tuple[Case, int | None]
"""A case and how often it may be repeated, where it says so itself."""


@dataclass(frozen=True)
class Round:
    """Questions for each product, in the order in which they are put, and the block that each of them came from."""

    questions: dict[str, list[Question]] = field(repr=False)
    blocks: dict[str, Block] = field(repr=False)


def rounds(surveys: dict[str, Survey], plan: Plan, seed: int, workers: int) -> Iterator[Round]:
    """Yield the rounds of a plan on products, by the surveys of their backends."""
    aspects = [replace(aspect, standards=False) for aspect in CASE_ASPECTS.values()]
    phases = {product: list(blocks(survey.subjects, [PHASES], plan, seed)) for product, survey in surveys.items()}
    planned = {product: list(blocks(survey.subjects, aspects, plan, seed)) for product, survey in surveys.items()}
    contract = {product: list(blocks(survey.subjects, [CONTRACT], plan, seed)) for product, survey in surveys.items()}
    ways = {
        product: _in_turns(found, seed, lambda each: (each.cases[0].operator, each.scenario.id))
        for product, found in phases.items()
    }
    low_level = {
        product: _in_turns([block for block in found if block.clauses], seed, lambda each: (each.block, each.clause))
        for product, found in contract.items()
    }
    known: dict[str, Block] = {
        block.id: block for made in (planned, contract, phases) for found in made.values() for block in found
    }
    size = max((sum(block.count for block in found) for found in planned.values()), default=0)
    for part in _parts(size):
        drawn = _draw([block for found in planned.values() for block in found], plan, part, workers)
        asked = {}
        for product in surveys:
            beside = part.of_contract(low_level[product]), part.of_contract(ways[product])
            asked[product] = _spread([*_questions(planned[product], drawn), *beside], seed)
        yield Round(asked, known)
        if part.ends_first_rounds:
            yield from (Round(questions, known) for questions in _varied_rounds(contract, seed))


def _varied_rounds(planned: Mapping[str, Sequence[ContractBlock]], seed: int) -> Iterator[dict[str, list[Question]]]:
    """Yield the varied and drawn calls of the contract, some blocks at a time.

    There are tens of thousands, which would keep what finds most waiting, and each takes microseconds: so they come
    between the first rounds and the large ones.
    """
    others = {product: [block for block in found if not block.clauses] for product, found in planned.items()}
    others = {product: random.Random(seed).sample(found, len(found)) for product, found in others.items()}
    most = max(map(len, others.values()), default=0)
    for start in range(0, most, _BLOCKS_AT_ONCE):
        part = {product: found[start : start + _BLOCKS_AT_ONCE] for product, found in others.items()}
        yield {product: _spread([block.questions() for block in found], seed) for product, found in part.items()}


@dataclass(frozen=True)
class _Part:
    """The part of a plan of ``size`` cases that one round asks, from its ``start``-th to its ``end``-th case."""

    start: int
    end: int
    size: int

    @property
    def ends_first_rounds(self) -> bool:
        return self.end == min(self.size, _FIRST_ROUNDS[-1])

    def of_block(self, block: _OfCases, plan: Plan) -> tuple[int, int]:
        """Return the bounds of a block's cases: a hunt begins as a smaller plan would.

        Cases that are listed, not drawn, come first unless they cost much or are many.
        """
        aspect = block.aspect
        over = self._costly_over if aspect.costly else self._drawn_over
        if isinstance(block, ListedBlock):
            is_short = not aspect.costly and block.count <= _MOST_FIRST
            return self._bounds(block.count, (lambda cases: float(cases > 0)) if is_short else over)
        skipped = block.number * BLOCK_SIZE
        start, end = (min(max(bound - skipped, 0), block.count) for bound in self._bounds(aspect.count(plan), over))
        return start, end

    def of_contract(self, questions: Sequence[Question]) -> Sequence[Question]:
        return questions[slice(*self._bounds(len(questions), self._contract_over))]

    def _bounds(self, count: int, share_over: Callable[[int], float]) -> tuple[int, int]:
        """Round upwards, so that whatever has a case has one in its first round."""
        return ceil(count * share_over(self.start)), ceil(count * share_over(self.end))

    def _drawn_over(self, cases: int) -> float:
        return cases / self.size

    def _contract_over(self, cases: int) -> float:
        """Return the part of the contract that is asked: all of it in the first rounds."""
        return min(cases / min(self.size, _FIRST_ROUNDS[-1]), 1.0)

    def _costly_over(self, cases: int) -> float:
        """Return 0 until the first rounds are over, then 1: costly cases come last, when few defects are left."""
        return float(cases > _FIRST_ROUNDS[-1] or cases == self.size)


def _parts(size: int) -> Iterator[_Part]:
    later = range(_FIRST_ROUNDS[-1] + LARGEST_ROUND, size, LARGEST_ROUND)
    ends = [*(end for end in _FIRST_ROUNDS if end < size), *later, size]
    return (_Part(start, end, size) for start, end in pairwise([0, *ends]))


def _in_turns(planned: Sequence[Block], seed: int, group_of: Callable[[Any], tuple[str, str]]) -> list[Question]:
    """Order the low-level calls of a product: one of each clause and block, or of each operator and scenario, then a
    second of each.
    """
    asked = [question for block in planned for question in block.questions()]
    random.Random(seed).shuffle(asked)
    turns: defaultdict[tuple[str, str], Iterator[int]] = defaultdict(count)
    return sorted(asked, key=lambda question: next(turns[group_of(question)]))


def _draw(planned: Sequence[_OfCases], plan: Plan, part: _Part, workers: int) -> dict[_Drawn, list[_Asked]]:
    """Draw the cases of every block between two shares of its plan.

    The processes that draw end before the round begins: a process that has threads should not fork hunts.
    """
    bounds = {_key(block): (block, *part.of_block(block, plan)) for block in planned}
    wanted = {key: (block, start, end) for key, (block, start, end) in bounds.items() if start < end}
    if not wanted:
        return {}
    with ProcessPoolExecutor(workers, get_context("fork")) as pool:
        made = pool.map(_cases, *zip(*wanted.values(), strict=True), chunksize=8)
        return dict(zip(wanted, made, strict=True))


def _key(block: _OfCases) -> _Drawn:
    subject = block.subject
    tags = subject.tags if isinstance(block, ListedBlock) else ()
    return subject.operator.name, subject.dtype, subject.index_dtype, block.aspect.id, block.number, tags


def _cases(block: _OfCases, start: int, end: int) -> list[_Asked]:
    asked = cast(Sequence[CaseQuestion], block.prefix(end)[start:])
    return [(each.case, each.repeats) for each in asked]


def _questions(planned: Sequence[_OfCases], drawn: dict[_Drawn, list[_Asked]]) -> Iterator[list[Question]]:
    for block in planned:
        yield [CaseQuestion(case, block.aspect, block.id, repeats) for case, repeats in drawn.get(_key(block), ())]


def _spread(groups: Sequence[Sequence[Question]], seed: int) -> list[Question]:
    """Merge groups, each spread evenly over the whole, and backwards: Hypothesis draws the least of a
    block's cases first, which shows the least.
    """
    lots = random.Random(seed)
    placed = []
    for group in groups:
        shift = lots.random()
        placed += [((number + shift) / len(group), question) for number, question in enumerate(reversed(group))]
    return [question for _, question in sorted(placed, key=lambda pair: pair[0])]
