"""Export of cases to other tools, as far as a format can express them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from poolproof.reports.rows.plugins import raised
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.lists import FORMATS, ListFormat, NotExpressible, read_lists
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import Plan, Subject, blocks

DUPLICATE = "the same case again"


def export_rows(chosen: ListFormat, cases: Iterable[Case]) -> tuple[list[object], Counter[str]]:
    """Return (rows of the cases that the format can express, number of the others by reason)."""
    rows: list[object] = []
    left_out: Counter[str] = Counter()
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            left_out[DUPLICATE] += 1
            continue
        seen.add(case.id)
        try:
            rows.append(chosen.carrying(chosen.write(case, len(rows)), case))
        except NotExpressible as reason:
            left_out[str(reason)] += 1
    return rows, left_out


@contextmanager
def format_errors(name: str) -> Iterator[None]:
    """Turn what a package's format raises into `BadInput`; what a built-in one raises is a fault of this suite."""
    try:
        yield
    except Exception as error:
        if name in FORMATS:
            raise
        raise BadInput(f"case list format {name!r} cannot write these cases: {raised(error)}") from error


def parsed_cases(lines: Iterable[str]) -> Iterator[Case]:
    """Parse lines of JSON; `BadInput` at the first that is not a case."""
    for line in lines:
        try:
            yield Case.from_json(line)
        except CaseError as error:
            raise BadInput(str(error)) from error


def listed_cases(paths: Iterable[Path]) -> Iterator[Case]:
    """Read case lists; `BadInput` at the first row that is not a case."""
    for entry in read_lists(paths):
        if entry.case is None:
            raise BadInput(entry.fault)
        yield entry.case


def planned_cases(subjects: Sequence[Subject], aspects: Iterable[str], plan: Plan, seed: int) -> Iterator[Case]:
    """Draw the cases of a plan, which calls of a contract are not."""
    for block in blocks(subjects, [CASE_ASPECTS[name] for name in aspects or CASE_ASPECTS], plan, seed):
        yield from (question.case for question in block.questions())
