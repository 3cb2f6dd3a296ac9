"""What a pytest process does with a block: have it judged, apply waivers, record rows, shrink what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from poolproof.reports.rows.evidence import Meta, add_meta, evidence_path
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED
from poolproof.reports.waivers import Waivers
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import shrink
from poolproof.suites.judging.contract import ContractBlock
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.judge import Question
from poolproof.suites.judging.standalone import program
from poolproof.suites.running.plans import Block
from poolproof.suites.running.sandbox import AnyQuestion, Bench

SHRINK_SECONDS = 20.0
"""What one failure may cost to make smaller."""

MOST_EVIDENCE = 50
"""Files of evidence that a run keeps per backend, verdict and violated check; of each kind of failure at least one."""


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

    ``folder`` is that of the run, where violations leave evidence, ``most_evidence`` files for each kind of them.
    ``environments`` maps backends to what they said about themselves; ``record`` takes every finished row;
    ``already_judged`` holds (block, case id) of cases that an interrupted run has rows for.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        waivers: Waivers,
        environments: Mapping[str, Mapping[str, str]],
        record: Callable[[Row], None],
        timeout: float,
        shrinks: bool,
        already_judged: frozenset[tuple[str, str]] = frozenset(),
        most_evidence: int = MOST_EVIDENCE,
    ) -> None:
        self._folder = folder
        self._scratch = folder / "processes"
        self._scratch.mkdir(exist_ok=True)
        self._name = name
        self._waivers = waivers
        self._environments = environments
        self._record = record
        self._timeout = timeout
        self._shrinks = shrinks
        self._already_judged = already_judged
        self._most_evidence = most_evidence
        self._evidence: Counter[tuple[str, ...]] = Counter()
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
                self._explain(row)
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
        """The rows of questions whose violations leave evidence."""
        for row in self._judged(backend, with_evidence(questions, EvidenceFolder(self._folder, backend))):
            self._limit_evidence(row)
            yield row

    def _judged(self, backend: str, questions: Sequence[AnyQuestion]) -> Iterable[Row]:
        for row in self._bench(backend).judge(questions):
            yield self._waivers.apply(row, self._environments.get(backend, {}))

    def _limit_evidence(self, row: Row) -> None:
        """Remove the evidence of the row where the run has enough of its kind."""
        path = evidence_path(self._folder, row["case_id"], row["backend"])
        if not path.exists():
            return
        violated = row["checks_violated"]
        check = (row["backend"], row["verdict"], *violated[:1])
        kind = (row["backend"], row["verdict"], row["operator"], *violated)
        if self._evidence[check] >= self._most_evidence and self._evidence[kind]:
            path.unlink()
        self._evidence.update((check, kind))

    def _explain(self, row: Row) -> None:
        """Let the evidence of the row tell how to make the call of the shrunk case."""
        path = evidence_path(self._folder, row["case_id"], row["backend"])
        if row.get("shrunk") and path.exists():
            script = program(Case.from_json(row["shrunk"]), row["backend"])
            if script:
                add_meta(path, Meta(script=script))

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
        if not self._shrinks or kind in self._shrunk or block.aspect.listed:
            return {}
        self._shrunk.add(kind)

        def still_fails(case: Case) -> bool:
            aspect = block.aspect
            question = Question(case, aspect.checks, aspect.id, block.id, aspect.repeats)
            (other,) = self._judged(row["backend"], [question])
            return other["verdict"] == row["verdict"] and set(row["checks_violated"][:1]) <= set(
                other["checks_violated"]
            )

        failing = Case.from_json(row["case"])
        return {
            "shrunk": shrink(block.strategy, block.count, block.seed, failing, still_fails, SHRINK_SECONDS).to_json()
        }


def with_evidence(questions: Iterable[AnyQuestion], evidence: EvidenceFolder) -> list[AnyQuestion]:
    """The questions, those that can leave evidence with a place to put it."""
    return [replace(each, evidence=evidence) if isinstance(each, Question) else each for each in questions]


def failure_text(row: Row) -> str:
    """One failed row in a few lines: what, why, and the line that reruns it."""
    what = ", ".join(row["checks_violated"]) or row["verdict"]
    line = row.get("shrunk") or row["case"]
    title = f"{row['verdict']}: {what} ({row['backend']} {row['operator']} {row['dtype']}, case {row['case_id']})"
    return f"{title}\n  {row['reason']}\n  poolproof replay --backend {row['backend']} '{line}'"
