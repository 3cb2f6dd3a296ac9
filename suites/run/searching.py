"""The searches of a session: profiles of Hypothesis, remembered failures, and the judging of cases."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

from poolproof.reports.rows.io_errors import CannotGoOn, environment_errors
from poolproof.reports.rows.records import Done
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import derive_seed
from poolproof.suites.plan.search import EXAMPLES, Search
from poolproof.suites.run.runner import BlockResult, Runner


def register_profiles(database: Path) -> None:
    """Register a profile of Hypothesis for each plan; failing examples are remembered in a folder.

    Hypothesis does not shrink them: it leaves larger cases than ``smaller_case``.
    """
    for plan, examples in EXAMPLES.items():
        settings.register_profile(
            plan,
            max_examples=examples,
            database=Memory(database),
            deadline=None,
            phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.target),
            report_multiple_bugs=False,
            print_blob=False,
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )


def prepared(test: Callable[..., None], search: Search, seed_of_run: int | None) -> Callable[..., None]:
    """Return a test of Hypothesis for one search; its cases follow from its name and a seed, if there is one.

    It wraps the inner function anew: a seed turns the database off, and new settings turn it on again.
    """
    own = given(data=st.data())(test.hypothesis.inner_test)  # type: ignore[attr-defined]
    usual = settings.get_profile(settings.get_current_profile_name())
    if seed_of_run is not None:
        own = seed(derive_seed(seed_of_run, search.id))(own)
    return settings(usual, max_examples=search.examples or usual.max_examples, database=usual.database)(own)


class Memory(ExampleDatabase):
    """The failing examples of earlier runs; Hypothesis runs them first, and deletes those that pass."""

    judging: Judging | None = None
    """The judging of the current search."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._kept = DirectoryBasedExampleDatabase(folder)

    def fetch(self, key: bytes) -> Iterable[bytes]:
        return self._kept.fetch(key)

    def save(self, key: bytes, value: bytes) -> None:
        """Keep a failing example only: best-scoring ones would make a run depend on earlier runs."""
        if self.judging is not None and self.judging.has_failed:
            self._kept.save(key, value)

    def delete(self, key: bytes, value: bytes) -> None:
        if self.judging is not None and value in set(self._kept.fetch(key)):
            self.judging.note_mended()
        self._kept.delete(key, value)


@dataclass(eq=False)
class Judging:
    """Judges and records what Hypothesis proposes in one search, each case once."""

    search: Search
    runner: Runner
    done: Done
    over: str = ""
    """Reason to skip after the runner's deadline."""
    result: BlockResult = field(default_factory=BlockResult)
    has_failed: bool = False
    _known: dict[str, Row] = field(default_factory=dict)
    _unrecorded: Row | None = None
    _fault: CannotGoOn | None = None

    def __repr__(self) -> str:
        return repr(self.search)  # Hypothesis calls it for each case

    def judge(self, case: Case) -> Row:
        """Return the row of a case; a failing one is repeated and shrunk, like those of a plan."""
        if self._fault is not None:  # Hypothesis tries again after an exception
            raise self._fault
        if time.monotonic() >= self.runner.until:
            pytest.skip(self.over)
        try:
            with environment_errors():
                if case.id not in self._known:
                    self.record()
                    self._known[case.id] = self._judge(case)
        except CannotGoOn as error:
            self._fault = error
            raise
        row = self._known[case.id]
        self.has_failed = row["verdict"] in FAILED
        return row

    def _judge(self, case: Case) -> Row:
        question = self.search.question(case)
        row, *further = self.runner.ask(question, self.search.subject.backend, self.search.block)
        for each in (row, *further):
            self.result.add(each)
        if (question.block, case.id) not in self.done.cases:
            self._unrecorded = row
        return row

    def note_mended(self) -> None:
        """Note that the last case failed in an earlier run, if it passes now."""
        if self._unrecorded is not None and not self.has_failed:
            self._unrecorded["failed_before"] = True

    def record(self) -> None:
        """Record the last row: only now Hypothesis has reported whether it failed in an earlier run."""
        if self._unrecorded is not None:
            row, self._unrecorded = self._unrecorded, None
            self.runner.keep(row)
