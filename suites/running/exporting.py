"""Cases of ours for the tools of others: those that a format has words for, and the others by what it has none for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from poolproof.reports.rows.plugins import raised
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.lists import FORMATS, ListFormat, NotExpressible, read_lists
from poolproof.suites.running.aspects import CASE_ASPECTS
from poolproof.suites.running.plans import Plan, Subject, blocks

AGAIN = "the same case again"


def written(chosen: ListFormat, cases: Iterable[Case]) -> tuple[list[object], Counter[str]]:
    """(rows of the cases that the format has words for, how many others there are by what it has none for)."""
    rows: list[object] = []
    left_out: Counter[str] = Counter()
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            left_out[AGAIN] += 1
            continue
        seen.add(case.id)
        try:
            rows.append(chosen.carrying(chosen.write(case, len(rows)), case))
        except NotExpressible as reason:
            left_out[str(reason)] += 1
    return rows, left_out


@contextmanager
def faults_told(name: str) -> Iterator[None]:
    """What the format of a package raises, as `BadInput`; what one of ours raises is a fault of this suite."""
    try:
        yield
    except Exception as error:
        if name in FORMATS:
            raise
        raise BadInput(f"case list format {name!r} cannot write these cases: {raised(error)}") from error


def spelled_cases(lines: Iterable[str]) -> Iterator[Case]:
    """The cases of lines of JSON; `BadInput` is the first that is none."""
    for line in lines:
        try:
            yield Case.from_json(line)
        except CaseError as error:
            raise BadInput(str(error)) from error


def listed_cases(paths: Iterable[Path]) -> Iterator[Case]:
    """The cases of lists; `BadInput` is the first row that is none."""
    for entry in read_lists(paths):
        if entry.case is None:
            raise BadInput(entry.fault)
        yield entry.case


def planned_cases(subjects: Sequence[Subject], aspects: Iterable[str], plan: Plan, seed: int) -> Iterator[Case]:
    """The cases of a plan; calls of a contract are none."""
    for block in blocks(subjects, [CASE_ASPECTS[name] for name in aspects or CASE_ASPECTS], plan, seed):
        yield from (question.case for question in block.questions())
