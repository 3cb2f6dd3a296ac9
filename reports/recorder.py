"""Pytest plugin: where the rows of a run go, how far it is, and what is said about it at its end.

Every process of a run (each xdist worker, or the only one) writes its own rows; the process that controls the run
keeps ``run.json``, shows progress, and at the end the summary and the page. Another plugin decides that there is a
run at all: it calls `begin` and `open_rows`.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest
from rich.console import Console

from poolproof.reports import tables, terminal
from poolproof.reports.environment import host_environment
from poolproof.reports.pages.run import write_run_page
from poolproof.reports.store import NotARun, RowWriter, compact_leftovers, finished_blocks, read_run, write_run
from poolproof.reports.waivers import Waivers

DEFAULT_FOLDER = Path("poolproof-report")

PROGRESS_SECONDS = 10.0
"""Time between two lines of progress."""


class CannotOpen(Exception):
    """The report folder cannot be used; the text says what to do."""


class _Run:
    """``run.json`` while the run lasts, and the progress of its workers."""

    def __init__(self, folder: Path, record: dict[str, Any], waivers: Waivers) -> None:
        self.folder = folder
        self.waivers = waivers
        self.record = record | {"started": time.time(), "finished": None, "host": host_environment()}
        self.done = self.failed = 0
        self._last_line = time.monotonic()
        write_run(folder, self.record)

    def progress(self) -> str | None:
        """A line about how far the run is, when it is time for one."""
        now = time.monotonic()
        if now - self._last_line < PROGRESS_SECONDS:
            return None
        self._last_line = now
        planned, elapsed = self.record["planned_cases"], time.time() - self.record["started"]
        rate = self.done / elapsed
        left = (planned - self.done) / rate if rate else 0.0
        return (
            f"{self.done:,} of {planned:,} cases, {self.failed:,} failed, {rate:,.0f} a second, {_duration(left)} left"
        )

    def finish(self, rows: pd.DataFrame, exit_status: int) -> None:
        self.record |= {
            "finished": time.time(),
            "exit_status": exit_status,
            "waivers": waiver_states(rows, self.waivers),
        }
        write_run(self.folder, self.record)


_RUN = pytest.StashKey[_Run]()
_ROWS = pytest.StashKey[RowWriter]()


def run_folder(given: Path | None, resume: bool) -> Path:
    """The folder a run may write to. `CannotOpen` when a named folder is in use or there is nothing to resume."""
    folder = given or DEFAULT_FOLDER
    if resume:
        try:
            read_run(folder)
        except NotARun as error:
            raise CannotOpen(f"nothing to resume: {error}") from error
        compact_leftovers(folder)
        return folder
    if folder.exists() and any(folder.iterdir()):
        if given is not None:
            raise CannotOpen(
                f"{folder} is not empty: name another --report folder, or go on with the run in it by --resume"
            )
        _check_is_run(folder)
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def what_is_done(folder: Path) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """(blocks judged to their end, (block, case id) of the rows in all others) of an interrupted run."""
    blocks = finished_blocks(folder)
    frame = (
        tables.load(folder, ["block", "case_id"])
        if (folder / "rows").is_dir()
        else pd.DataFrame(columns=["block", "case_id"])
    )
    rest = frame[~frame["block"].isin(blocks)]
    return blocks, frozenset(zip(rest["block"], rest["case_id"], strict=True))


def begin(config: pytest.Config, folder: Path, record: dict[str, Any], waivers: Waivers) -> None:
    """Open the run in the controlling process."""
    config.stash[_RUN] = _Run(folder, record, waivers)


def open_rows(config: pytest.Config, folder: Path, worker: str) -> None:
    """Make this process write its rows into the run in ``folder``."""
    config.stash[_ROWS] = RowWriter(folder, worker)


@pytest.fixture(scope="session")
def rows(request: pytest.FixtureRequest) -> RowWriter:
    """The writer of this process."""
    return request.config.stash[_ROWS]


@pytest.fixture
def count_cases(request: pytest.FixtureRequest) -> Callable[[int, int], None]:
    """Report (cases, failures) of the running test to the controlling process."""

    def count(cases: int, failures: int) -> None:
        request.node.user_properties.append(("poolproof", (cases, failures)))

    return count


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _progress.update(report)


class _Progress:
    """Prints lines of progress; pytest gives the hook above no config, hence a module-level holder."""

    def __init__(self) -> None:
        self._config: pytest.Config | None = None

    def attach(self, config: pytest.Config) -> None:
        self._config = config

    def update(self, report: pytest.TestReport) -> None:
        if self._config is None or report.when != "call" or _RUN not in self._config.stash:
            return
        run = self._config.stash[_RUN]
        for name, value in report.user_properties:
            if name == "poolproof":
                cases, failures = cast(tuple[int, int], value)
                run.done += cases
                run.failed += failures
        line = run.progress()
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if line and reporter is not None:
            reporter.write_line(f"\n{line}")


_progress = _Progress()


def pytest_sessionstart(session: pytest.Session) -> None:
    _progress.attach(session.config)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    writer = session.config.stash.get(_ROWS, None)
    if writer is not None:
        writer.close()
        del session.config.stash[_ROWS]


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    run = config.stash.get(_RUN, None)
    if run is None:
        return
    compact_leftovers(run.folder)
    frame = tables.load(run.folder)
    run.finish(frame, int(exitstatus))
    page = write_run_page(run.folder)
    terminalreporter.section("poolproof")
    writer = config.get_terminal_writer()
    width = writer.fullwidth if writer.hasmarkup else max(writer.fullwidth, 140)
    text = StringIO()
    terminal.show(frame, run.record, Console(file=text, width=width, force_terminal=writer.hasmarkup))
    writer.write(text.getvalue())
    terminalreporter.write_line(f"\nrows and evidence: {run.folder}, page: {page}")


def waiver_states(frame: pd.DataFrame, waivers: Waivers) -> list[dict[str, Any]]:
    """Each waiver with how many cases it covered and whether it is used, unused or expired."""
    uses: Counter[str] = Counter()
    for ids in frame["waivers"].dropna():
        uses.update(ids)
    expired = {waiver.id for waiver in waivers.expired}
    states = []
    for waiver in waivers.all:
        state = "expired" if waiver.id in expired else "used" if uses[waiver.id] else "unused"
        states.append(
            {
                "id": waiver.id,
                "state": state,
                "uses": uses[waiver.id],
                "reason": waiver.reason,
                "owner": waiver.owner,
                "expires": waiver.expires.isoformat(),
            }
        )
    return states


def _check_is_run(folder: Path) -> None:
    """Never delete a folder that is not a run of ours."""
    try:
        read_run(folder)
    except NotARun as error:
        raise CannotOpen(f"{folder} is not empty and {error}: name another --report folder") from error


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
