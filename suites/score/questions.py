"""What a plan asks, in an order that finds defects early: a little of every block before more of any.

Cases depend on operator, dtypes, aspect and seed alone, never on a backend or a defect. So they are drawn once, in a
few rounds of growing size, and serve every product and every defect that is still at large when a round begins.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing import get_context

from poolproof.suites.case import Case
from poolproof.suites.contract_suite import contract_blocks
from poolproof.suites.isolation import AnyQuestion, Survey
from poolproof.suites.judge import Question
from poolproof.suites.plans import ASPECTS, Block, Plan, blocks

_FIRST_ROUNDS = (1_500, 5_000)
"""How many cases there are up to the end of the first rounds."""

LARGEST_ROUND = 20_000
"""Most cases that a later round draws: they are all kept until it is over."""

_Drawn = tuple[str, str, str, str, int]
"""What the cases of a block depend on, besides the seed: operator, dtypes, aspect, number."""


@dataclass(frozen=True)
class Round:
    """Questions for each product, in the order in which they are put, and the block that each of them came from."""

    questions: dict[str, list[AnyQuestion]]
    blocks: dict[str, Block] = field(repr=False)


def rounds(surveys: dict[str, Survey], plan: Plan, seed: int, workers: int) -> Iterator[Round]:
    """The rounds of a plan on products, each named with what its backend says of itself."""
    planned = {
        product: list(blocks(survey.cells, list(ASPECTS.values()), plan, seed)) for product, survey in surveys.items()
    }
    contract = {product: _contract_questions(surveys[product], seed) for product in surveys}
    size = max((sum(block.count for block in found) for found in planned.values()), default=0)
    for start, end in pairwise(_boundaries(size)):
        drawn = _draw([block for found in planned.values() for block in found], start, end, workers)
        yield Round(
            {
                product: _spread([*_questions(planned[product], drawn), _part(contract[product], start, end)], seed)
                for product in surveys
            },
            {block.id: block for found in planned.values() for block in found},
        )


def _boundaries(size: int) -> list[float]:
    """Shares of a plan of ``size`` cases at which rounds begin and end."""
    ends = [
        *(end for end in _FIRST_ROUNDS if end < size),
        *range(_FIRST_ROUNDS[-1] + LARGEST_ROUND, size, LARGEST_ROUND),
    ]
    return [0.0, *(end / size for end in ends), 1.0]


def _contract_questions(survey: Survey, seed: int) -> list[AnyQuestion]:
    """Everything the contract suite asks of a product, shuffled."""
    backend = survey.cells[0].backend
    asked: list[AnyQuestion] = [
        question for block in contract_blocks(backend, survey.product, []) for question in block.questions()
    ]
    random.Random(seed).shuffle(asked)
    return asked


def _draw(planned: Sequence[Block], start: float, end: float, workers: int) -> dict[_Drawn, list[Case]]:
    """The cases of every block between two shares of its plan.

    The processes that draw end before the round begins: a process that has threads should not fork racers.
    """
    parts: dict[_Drawn, tuple[Block, int, int]] = {}
    for block in planned:
        parts[_key(block)] = (block, *_bounds(block.count, start, end))
    wanted = {key: part for key, part in parts.items() if part[1] < part[2]}
    if not wanted:
        return {}
    with ProcessPoolExecutor(workers, get_context("fork")) as pool:
        made = pool.map(_cases, *zip(*wanted.values(), strict=True), chunksize=8)
        return dict(zip(wanted, made, strict=True))


def _key(block: Block) -> _Drawn:
    cell = block.cell
    return cell.operator.name, cell.dtype, cell.index_dtype, block.aspect.id, block.number


def _bounds(count: int, start: float, end: float) -> tuple[int, int]:
    """Rounded upwards, so that every block has a case in the first round."""
    return -int(-count * start // 1), -int(-count * end // 1)


def _cases(block: Block, start: int, end: int) -> list[Case]:
    return Block(block.cell, block.aspect, block.number, end, block.seed).cases()[start:]


def _questions(planned: Sequence[Block], drawn: dict[_Drawn, list[Case]]) -> Iterator[list[AnyQuestion]]:
    for block in planned:
        aspect = block.aspect
        yield [
            Question(case, aspect.checks, aspect.id, block.id, aspect.repeats) for case in drawn.get(_key(block), ())
        ]


def _part(questions: Sequence[AnyQuestion], start: float, end: float) -> list[AnyQuestion]:
    low, high = _bounds(len(questions), start, end)
    return list(questions[low:high])


def _spread(groups: Sequence[Sequence[AnyQuestion]], seed: int) -> list[AnyQuestion]:
    """All groups merged, each of them spread evenly over the whole, and backwards: Hypothesis draws the least of a
    block's cases first, which shows the least.
    """
    lots = random.Random(seed)
    placed = []
    for group in groups:
        shift = lots.random()
        placed += [((number + shift) / len(group), question) for number, question in enumerate(reversed(group))]
    return [question for _, question in sorted(placed, key=lambda pair: pair[0])]
