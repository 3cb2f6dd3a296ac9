"""Cases until seeded defects are found, in the plan's order and by --budget, with equal time for every block.

    python studies/minutes.py [--seconds 20] [--every 4] [--seeds 0] [--contract] [--answers FILE]

Every so many of the seeded defects is sought on the product where it is at home, all operators, in processes of their
own, one way after the other, each for so many seconds of CPU time: drawing, judging, and what it takes to choose. A
find counts if the honest emulator passes the same question. The aspect of the contract is left out but for
``--contract``, and with it the defects that only it could find: its first round alone takes as long as that of all
others three times. So is the defect that hangs. Answers are kept in a file, and what it holds is not sought again.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from poolproof.backends.emulator.defects import Defect, defects
from poolproof.references.kernels.compiled import compile_all
from poolproof.reports.rows.verdicts import FAILED
from poolproof.score.hunt import HONEST, answers, backend_name, emulator, in_forks
from poolproof.suites.isolation.survey import survey
from poolproof.suites.judging.budget import allow_free_memory
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.aspects import ASPECTS, CONTRACT
from poolproof.suites.plan.blocks import Block
from poolproof.suites.plan.plans import PLANS
from poolproof.suites.plan.selection import Selection
from poolproof.suites.run.time_budget import Allotment, Budget, Portion, cheapest_first

WAYS = ("the plan's order", "--budget")
PATIENCE = 240.0
"""Seconds that one seeker may take on a busy machine."""

Place = tuple[int, int]
"""The number of a block, and of a question in it."""


@dataclass(frozen=True)
class Answer:
    """``seconds`` until the defect was found, after so many cases; None where it was not."""

    defect: str
    seed: int
    way: str
    seconds: float | None
    cases: int
    aspect: str = ""


def portions(blocks: Sequence[Block], budget: Budget, folder: Path) -> Iterator[tuple[Block, Sequence[Question]]]:
    """Blocks with some of their questions as a budget gives them, by the CPU time of this process."""
    allotment = Allotment(folder, blocks, budget, 1, time.process_time)

    def given() -> Iterator[Portion]:
        for block in cheapest_first(blocks):
            yield from allotment.first_portions(block)
        while (portion := allotment.next_portion()) is not None:
            yield portion

    for portion in given():
        begun = time.process_time()
        block, start, stop = portion
        yield block, block.prefix(stop)[start:]
        allotment.record_time(portion, stop - start, time.process_time() - begun)


def in_order(blocks: Sequence[Block]) -> Iterator[tuple[Block, Sequence[Question]]]:
    """Blocks with all of their questions as a run without a budget asks them."""
    return ((block, block.questions()) for block in sorted(blocks, key=lambda block: block.aspect.id))


Sought = tuple[float, int, str, Question | None]
"""Seconds that were spent, cases, and the aspect and the question of the last of them where that violates."""


def seek(product: str, defect: str, way: str, blocks: Sequence[Block], seconds: float) -> Sought:
    begun, cases = time.process_time(), 0
    with TemporaryDirectory() as folder, emulator(product, defect, PATIENCE) as sandbox:
        budget = Budget(seconds, begun, extends_plan=True)
        for block, questions in in_order(blocks) if way != "--budget" else portions(blocks, budget, Path(folder)):
            for question in questions:
                cases += 1
                (row,) = sandbox.judge([question])
                spent = time.process_time() - begun
                if row["verdict"] in FAILED or spent > seconds:
                    return spent, cases, block.aspect.id, question if row["verdict"] in FAILED else None
    return time.process_time() - begun, cases, "", None


def sought(defect: Defect, seed: int, way: str, blocks: Sequence[Block], seconds: float) -> Answer:
    product = defect.products[0]
    ((_, (spent, cases, aspect, question)),) = in_forks(
        deque([partial(seek, product, defect.id, way, blocks, seconds)]), 1
    )
    if question is None:
        return Answer(defect.id, seed, way, None, cases)
    honest = next(answers(product, HONEST, [question], PATIENCE))
    if honest["verdict"] in FAILED:
        return Answer(defect.id, seed, way, None, cases, f"disputed: {aspect}")
    return Answer(defect.id, seed, way, round(spent, 2), cases, aspect)


def blocks_of(product: str, seed: int, aspects: Sequence[str]) -> list[Block]:
    name = backend_name(product)
    return Selection({name: survey(name)}, PLANS["smoke"], seed, tuple(aspects)).blocks()


def table(found: Sequence[Answer]) -> Iterator[str]:
    """Yield a line for each way, of the defects and seeds that all ways have sought."""
    by_way = {way: {(each.defect, each.seed): each for each in found if each.way == way} for way in WAYS}
    common = set.intersection(*(set(each) for each in by_way.values()))
    for way, answered in by_way.items():
        seconds = [answered[key].seconds for key in sorted(common)]
        there = [each for each in seconds if each is not None]
        if there:
            median = statistics.median([float("inf") if each is None else each for each in seconds])
            yield f"{way:22} {len(there):4} of {len(seconds)}, half of all within {median:5.1f} s of CPU time"


@click.command()
@click.option("--seconds", default=20.0, help="Of CPU time, for each defect and way.")
@click.option("--every", default=4, help="Seek the first of every so many defects.")
@click.option("--seeds", default="0", help="Of the plan.")
@click.option("--contract", is_flag=True, help="With the aspect of the contract.")
@click.option("--answers", "path", type=Path, default=Path("minutes.jsonl"), help="Where answers are kept.")
def main(seconds: float, every: int, seeds: str, contract: bool, path: Path) -> None:
    allow_free_memory()
    compile_all()
    aspects = [name for name in ASPECTS if contract or name != CONTRACT.id]
    found = [Answer(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(each.defect, each.seed, each.way) for each in found}
    for seed in map(int, seeds.split(",")):
        blocks: dict[str, list[Block]] = {}
        for defect in list(defects().values())[::every]:
            if defect.group in (("hang",) if contract else ("hang", "validation")):
                continue
            product = defect.products[0]
            if product not in blocks:
                blocks[product] = blocks_of(product, seed, aspects)
            for way in WAYS:
                if (defect.id, seed, way) not in known:
                    found.append(sought(defect, seed, way, blocks[product], seconds))
                    with path.open("a") as file:
                        file.write(json.dumps(asdict(found[-1])) + "\n")
    for line in table(found):
        click.echo(line)


if __name__ == "__main__":
    main()
