"""How soon seeded defects are found in the plan's order, evenly (--budget), where most is new (--minutes), and by the
same with as much time for each block, whatever it shows.

    python studies/minutes.py [--seconds 20] [--every 4] [--seeds 0] [--contract] [--answers FILE]

Every so many of the seeded defects is sought on the product where it is at home, all operators, in processes of their
own, one way after the other, each for so many seconds of CPU time: drawing, judging, and what a way takes to choose. A
find counts if the honest emulator passes the same question. The aspect of the contract is left out but for
``--contract``, and with it the defects that only it could find: its first round alone takes as long as that of all
others three times. So is the defect that hangs. Answers are kept in a file, and what it holds is not sought again.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from poolproof.backends.emulator.defects import Defect, defects
from poolproof.references.core.compiled import compile_all
from poolproof.reports.rows.verdicts import FAILED
from poolproof.score.hunt import HONEST, Say, answers, backend_name, load
from poolproof.suites.isolation.sandbox import survey
from poolproof.suites.judging.asked import Asked
from poolproof.suites.judging.budget import allow_free_memory
from poolproof.suites.running.allotment import Allotment, Budget
from poolproof.suites.running.aspects import ASPECTS, CONTRACT
from poolproof.suites.running.behaviour import behaviours
from poolproof.suites.running.plans import PLANS, Block
from poolproof.suites.running.processes import Ended, Overdue, Process
from poolproof.suites.running.selection import Selection
from poolproof.suites.running.ways import EVENLY, WHERE_MOST_IS_NEW, Way

WAYS: dict[str, Way | None] = {
    "the plan's order": None,
    "--budget": EVENLY,
    "as much time for each": replace(WHERE_MOST_IS_NEW, learns=False),
    "--minutes": WHERE_MOST_IS_NEW,
}
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


@dataclass
class _Portions:
    """Portions of blocks as a way gives them, by the CPU time of this process."""

    blocks: Sequence[Block]
    way: Way | None
    budget: Budget
    folder: Path

    def __iter__(self) -> Iterator[tuple[Block, Sequence[Asked], Any]]:
        """A block, some questions of it, and what is to be called with what they showed once they are judged."""
        if self.way is None:
            for block in EVENLY.ordered(self.blocks):
                yield block, block.questions(), lambda _: None
            return
        allotment = Allotment(self.folder, self.blocks, self.budget, 1, time.process_time)
        for block in self.way.ordered(self.blocks):
            for portion in allotment.first(block):
                yield from self._asked(allotment, portion)
        while (portion := allotment.next()) is not None:
            yield from self._asked(allotment, portion)

    def _asked(self, allotment: Allotment, portion: Any) -> Iterator[tuple[Block, Sequence[Asked], Any]]:
        begun = time.process_time()
        block, start, stop = portion
        took = lambda shown: allotment.took(portion, stop - start, time.process_time() - begun, shown)  # noqa: E731
        yield block, block.first(stop)[start:], took


def seek(product: str, defect: str, way: Way | None, blocks: Sequence[Block], seconds: float, say: Say) -> None:
    """Say each question before it is judged, and at the end the number of cases and whether the last one violates."""
    backend = load(product, defect)
    begun, cases = time.process_time(), 0
    with TemporaryDirectory() as folder:
        for block, questions, took in _Portions(blocks, way, Budget(seconds, begun, way or EVENLY), Path(folder)):
            shown = []
            for question in questions:
                cases += 1
                row = question.judge(backend)
                spent = time.process_time() - begun
                if row["verdict"] in FAILED or spent > seconds:
                    say((spent, cases, block.aspect.id, question if row["verdict"] in FAILED else None))
                    return
                if way is not None and way.learns:
                    shown.append(behaviours(row))
            took(shown)
    say((time.process_time() - begun, cases, "", None))


def sought(defect: Defect, seed: int, way: str, blocks: Sequence[Block], seconds: float) -> Answer:
    product = defect.products[0]
    process = Process.forked(partial(seek, product, defect.id, WAYS[way], blocks, seconds))
    try:
        said = process.receive(PATIENCE)
    finally:
        process.end()
    match said:
        case Ended():
            return Answer(defect.id, seed, way, process.cpu_seconds, 0, "its process died")
        case Overdue():
            return Answer(defect.id, seed, way, None, 0, "overdue")
    spent, cases, aspect, question = said
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
    """A line for each way, of the defects and seeds that all ways have sought."""
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
