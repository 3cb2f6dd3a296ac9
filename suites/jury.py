"""What a pytest process does with a block: have it judged, apply waivers, record rows, shrink what failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from poolproof.reports.schema import Row
from poolproof.reports.verdicts import FAILED
from poolproof.reports.waivers import Waivers
from poolproof.suites.case import Case
from poolproof.suites.contract_suite import ContractBlock
from poolproof.suites.generation import shrink
from poolproof.suites.isolation import AnyQuestion, Bench
from poolproof.suites.judge import Question
from poolproof.suites.plans import Block

SHRINK_SECONDS = 20.0
"""What one failure may cost to make smaller."""


@dataclass
class Tally:
    """What became of one block."""

    rows: int = 0
    failures: list[Row] = field(default_factory=list)

    def text(self, most: int = 3) -> str:
        """The failures for a person: each with its cause and the line that reruns it."""
        shown = "\n\n".join(failure_text(row) for row in self.failures[:most])
        more = len(self.failures) - most
        return f"{len(self.failures)} of {self.rows} cases failed\n\n{shown}" + (
            f"\n\nand {more} more" if more > 0 else ""
        )


class Jury:
    """Judges blocks and single cases on any backend, one bench each, until closed.

    ``environments`` maps backends to what they said about themselves; ``record`` takes every finished row;
    ``already_judged`` holds (block, case id) of cases that an interrupted run has rows for.
    """

    def __init__(
        self,
        scratch: Path,
        name: str,
        waivers: Waivers,
        environments: Mapping[str, Mapping[str, str]],
        record: Callable[[Row], None],
        timeout: float,
        shrinks: bool,
        already_judged: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        self._scratch = scratch
        self._name = name
        self._waivers = waivers
        self._environments = environments
        self._record = record
        self._timeout = timeout
        self._shrinks = shrinks
        self._already_judged = already_judged
        self._benches: dict[str, Bench] = {}
        self._shrunk: set[tuple[str, ...]] = set()

    def judge(self, block: Block | ContractBlock) -> Tally:
        """Judge every case of the block; all rows are recorded, failures with the smallest case that shows them."""
        questions = [asked for asked in block.questions() if (block.id, asked.id) not in self._already_judged]
        tally = Tally()
        for row in self._rows(block.backend, questions):
            tally.rows += 1
            if row["verdict"] in FAILED and isinstance(block, Block):
                row |= self._smaller(block, row)
            if row["verdict"] in FAILED:
                tally.failures.append(row)
            self._record(row)
        return tally

    def judge_one(self, question: AnyQuestion, backend: str) -> Row:
        """Judge and record a single question."""
        (row,) = self._rows(backend, [question])
        self._record(row)
        return row

    def close(self) -> None:
        for bench in self._benches.values():
            bench.close()

    def _rows(self, backend: str, questions: Sequence[AnyQuestion]) -> Iterable[Row]:
        for row in self._bench(backend).judge(questions):
            yield self._waivers.apply(row, self._environments.get(backend, {}))

    def _bench(self, backend: str) -> Bench:
        if backend not in self._benches:
            name = f"{self._name}-{backend}".replace("/", "_").replace(":", "_")
            self._benches[backend] = Bench(backend, self._scratch, name, self._timeout)
        return self._benches[backend]

    def _smaller(self, block: Block, row: Row) -> Row:
        """The column with the shrunk case, once per kind of failure.

        Asks the bench while `judge` is reading from it, which is sound after a failed row alone: the judge that
        answered it takes no more questions.
        """
        kind = (row["backend"], row["operator"], row["verdict"], *row["checks_violated"][:1])
        if not self._shrinks or kind in self._shrunk:
            return {}
        self._shrunk.add(kind)

        def still_fails(case: Case) -> bool:
            aspect = block.aspect
            question = Question(case, aspect.checks, aspect.id, block.id, aspect.repeats)
            (other,) = self._rows(row["backend"], [question])
            return other["verdict"] == row["verdict"] and set(row["checks_violated"][:1]) <= set(
                other["checks_violated"]
            )

        failing = Case.from_json(row["case"])
        return {
            "shrunk": shrink(block.strategy, block.count, block.seed, failing, still_fails, SHRINK_SECONDS).to_json()
        }


def failure_text(row: Row) -> str:
    """One failed row in a few lines: what, why, and the line that reruns it."""
    what = ", ".join(row["checks_violated"]) or row["verdict"]
    line = row.get("shrunk") or row["case"]
    title = f"{row['verdict']}: {what} ({row['backend']} {row['operator']} {row['dtype']}, case {row['case_id']})"
    return f"{title}\n  {row['reason']}\n  poolproof replay --backend {row['backend']} '{line}'"
