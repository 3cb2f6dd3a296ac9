"""Pytest plugin that records the rows of a run, shows its progress and reports on it at its end.

Every process of a run (each xdist worker, or the only one) writes its own rows; the process that controls the run keeps
``run.json``, shows progress, and at the end the summary and the page. Another plugin decides that there is a run at
all: it calls `begin` and `open_rows`.

What reports on a finished run is imported when one begins: most sessions of pytest never have one.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pytest

from poolproof.reports.ci import SERVICES
from poolproof.reports.progress import Progress
from poolproof.reports.rows import store
from poolproof.reports.rows.environment import host_environment, suite_identity
from poolproof.reports.rows.evidence import evidence_path, unclaimed
from poolproof.reports.rows.failures import evidence_kinds, judged_property
from poolproof.reports.rows.io_errors import CannotGoOn, CannotWrite, describe
from poolproof.reports.rows.records import begun_otherwise, first_difference
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import visible
from poolproof.reports.rows.verdicts import FAILED, BadInput, Overall
from poolproof.reports.waivers import Waivers, to_record

if TYPE_CHECKING:
    import pandas as pd

    from poolproof.reports.figures.digest import Digest

FAILURES = "failures.txt"
"""Name of the file in a run's folder that has what pytest says of its failing blocks."""

_MOST_KINDS = 6
"""Kinds of failures whose first is shown as it comes."""

_STOPPED = "the session cannot go on"
_OUTPUT = "poolproof_fault"


class ProcessRecorder:
    """Plugin of every process of a run: its ``rows``, and what ends its session and is nobody's verdict.

    That is a full disk, an adapter that does nothing but raise, or a hook of another plugin. The first such ``fault``,
    in one sentence, stops the tests and is the session's conclusion; rows recorded before it stand. That of an xdist
    worker is passed to the process that controls it.
    """

    def __init__(self, config: pytest.Config, folder: Path, worker: str) -> None:
        self.rows = store.RowWriter(folder, worker)
        self.fault = ""
        self._config = config
        self._session: pytest.Session | None = None

    def note(self, fault: Exception | str) -> None:
        """Stop the session for that reason, unless it has one already."""
        self.fault = self.fault or (fault if isinstance(fault, str) else sentence(fault))
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[_OUTPUT] = self.fault
        if self._session is not None:
            self._session.shouldstop = _STOPPED

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Note an error of the system inside, and go on behind."""
        try:
            yield
        except (CannotWrite, OSError) as error:
            self.note(error)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        error = call.excinfo.value if call.excinfo else None
        if isinstance(error, CannotGoOn):
            self.note(error)
            report.longrepr = _STOPPED
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        if isinstance(excinfo.value, CannotWrite):
            self.note(excinfo.value)
            raise pytest.exit.Exception(self.fault, returncode=Overall.COULD_NOT_RUN) from None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        fault = getattr(node, "workeroutput", {}).get(_OUTPUT)
        if fault:
            self.note(fault)

    @pytest.hookimpl(wrapper=True, trylast=True, specname="pytest_sessionfinish")
    def pytest_sessionfinish_of_plugins(self, session: pytest.Session) -> Generator[None, object, None]:
        """Close what this process recorded, and the run, behind all other plugins and whatever becomes of them."""
        try:
            yield
        except pytest.exit.Exception:
            raise
        except Exception as error:
            self.note(error)
        finally:
            with self.collecting():
                self.rows.close()
            run = self._config.stash.get(_RUN, None)
            if run is not None:
                session.exitstatus = run.finish(session.exitstatus, self)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Catch what all others raise at the end, the terminal's summary included: the run is closed by then."""
        try:
            return (yield)
        except pytest.exit.Exception:
            raise
        except Exception as error:
            self.note(error)
            raise pytest.exit.Exception(self.fault, returncode=Overall.COULD_NOT_RUN) from None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_unconfigure(self) -> Generator[None, object, object]:
        """Catch what others raise last of all: pytest shows nothing behind it."""
        try:
            return (yield)
        except Exception as error:
            self.note(error)
            sys.stderr.write(f"{self.fault}\n")
            if self._session is not None:
                self._session.exitstatus = Overall.COULD_NOT_RUN
            return None


def sentence(error: Exception) -> str:
    if isinstance(error, CannotWrite | OSError):
        return f"{describe(error) if isinstance(error, OSError) else error}, and go on with --resume"
    if isinstance(error, CannotGoOn):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if any(map(Path(frame.filename).is_relative_to, _ROOMS))]
    is_own = bool(ours) and ours[-1].filename != __file__  # which calls the hooks of plugins
    last = ours[-1] if is_own else frames[-1]
    said = " ".join(traceback.format_exception_only(error)[-1].split())
    where = f"{said} ({Path(last.filename).name}, line {last.lineno}, in {last.name})"
    if is_own:
        return f"poolproof itself failed at the end of the session: {where}; rows are kept, for --resume to go on with"
    return f"a plugin failed at the end of the session: {where}; leave it out by -p no:NAME, and go on with --resume"


_ROOMS = tuple(Path(__file__).parents[1] / room for room in ("references", "backends", "suites", "reports"))


class CannotOpen(BadInput):
    """The report folder cannot be used; the text says what to do."""


class _Run:
    """Plugin of the controlling process: ``run.json`` while the run lasts, its progress, and its digest at the end.

    ``planned`` and ``to_do`` say how many cases each aspect has, and how many of them were left to do at its begin.
    """

    def __init__(self, config: pytest.Config, folder: Path, record: dict[str, Any], to_do: Mapping[str, int]) -> None:
        self._config = config
        self.folder = folder
        self.record = record
        self.digest: Digest | None = None
        self.remarks: list[str] = []
        self.annotations: list[str] = []
        self._kinds: set[str] = set()
        self.to_do, self.planned = Counter(to_do), _planned(record["mandatory"])
        until = record.get("budget", {}).get("until")
        self.until = None if until is None else until - time.time() + time.monotonic()
        self.progress = Progress(self.to_do, self.until)
        store.write_run(folder, self.record)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test that has ended, and print a line of progress when it is time for one."""
        if report.when != "call":
            return
        lines: list[str] = []
        for name, counts in report.user_properties:
            if name == "poolproof":
                cases, failed, firsts = cast("tuple[dict[str, int], int, dict[str, str]]", counts)
                self.progress.add(cases, failed, report.duration, getattr(report, "worker_id", "main"))
                for kind, line in firsts.items():
                    lines += [line] if kind not in self._kinds and len(self._kinds) < _MOST_KINDS else []
                    self._kinds.add(kind)
        if report.failed and _is_ours(report):
            with self._recorder.collecting(), (self.folder / FAILURES).open("a", encoding="utf-8") as file:
                file.write(visible(f"FAILED {report.nodeid}\n{report.longreprtext}\n\n"))
        lines += filter(None, [self.progress.line()])
        if lines and (reporter := self._config.pluginmanager.get_plugin("terminalreporter")) is not None:
            reporter.write_line("\n" + "\n".join(lines))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None, object, object]:
        """Keep what is in `FAILURES` from pytest's own lists of failures, unless it is to be verbose."""
        stats = terminalreporter.stats
        failed = stats.get("failed")
        if failed and not self._is_verbose:
            stats["failed"] = [report for report in failed if not _is_ours(report)]
        try:
            return (yield)
        finally:
            if failed:
                stats["failed"] = failed

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Say what the run says behind all that others print: its conclusion is the last line."""
        result = yield
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if self.digest is None or reporter is None or reporter.no_summary:
            return result
        from poolproof.reports.terminal import run as terminal
        from poolproof.reports.terminal.painting import SafeConsole

        reporter.section("poolproof")
        writer = self._config.get_terminal_writer()
        width = writer.fullwidth if writer.hasmarkup else max(writer.fullwidth, 140)
        text = StringIO()
        shown = SafeConsole(file=text, width=width, force_terminal=writer.hasmarkup)
        files = f"rows, evidence, summary.md and junit.xml: {self.folder}, page: {self.folder / 'index.html'}"
        lines = [files, *self.remarks]
        if (self.folder / FAILURES).exists() and not self._is_verbose:
            lines.insert(1, f"every failing case with its replay line: {self.folder / FAILURES} (or -v)")
        terminal.show(
            self.digest, shown, self._recorder.fault, lines, whole=self._is_verbose, status=session.exitstatus
        )
        for line in self.annotations:  # a service obeys them as they are
            writer.line(line)
        writer.write(text.getvalue())
        return result

    @property
    def _is_verbose(self) -> bool:
        return bool(self._config.option.verbose > 0)

    @property
    def _recorder(self) -> ProcessRecorder:
        return self._config.stash[_RECORDER]

    def finish(self, pytest_status: int, recorder: ProcessRecorder) -> int:
        """Close the run, publish it, tell the CI service, and return the exit status of the session.

        The rows decide. Where they have nothing against the implementation, pytest's status still counts, for other
        tests may run in the same session; finding nothing to do, all having been done before, does not. A fault of the
        system outweighs all: something is not on record, or not published.
        """
        from poolproof.reports.ci.services import annotate
        from poolproof.reports.figures.digest import read_digest
        from poolproof.reports.pages.publishing import publish

        with recorder.collecting():
            _tidy(self.folder)
        with recorder.collecting():
            self.record["finished"] = time.time()
            store.write_run(self.folder, self.record)
        with recorder.collecting():
            self.digest = read_digest(self.folder)
            with recorder.collecting():
                publish(self.digest, self.folder)
            annotate(self.digest, self._config.getoption("ci"), os.environ, self.annotations.append)
        if pytest_status == pytest.ExitCode.INTERRUPTED and not recorder.fault:
            self.remarks.append("interrupted: what was judged is kept, and the rest is judged by")
            self.remarks.append(resuming_line(self.record["arguments"]))
        if self.digest is None or recorder.fault or pytest_status == pytest.ExitCode.INTERNAL_ERROR:
            return Overall.COULD_NOT_RUN
        overall = self.digest.conclusion.overall
        done_before = pytest_status == pytest.ExitCode.NO_TESTS_COLLECTED
        return overall if overall or done_before else pytest_status


def resuming_line(arguments: Sequence[str]) -> str:
    """Return the command that goes on with a run, from the ``arguments`` of pytest that began it."""
    begun = [argument for argument in arguments if argument != "--resume"]
    shown = ["poolproof", "run", *begun[2:]] if begun[:2] == ["--pyargs", "poolproof.suites"] else ["pytest", *begun]
    return shlex.join([*shown, "--resume"])


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("poolproof")
    group.addoption(
        "--strict-waivers",
        action="store_true",
        help="a waiver that has expired, matches no case or is needed no longer makes the run violate",
    )
    group.addoption(
        "--ci",
        choices=("auto", *SERVICES),
        default="auto",
        help="the CI service to write annotations and a job summary for (default: the one this runs in)",
    )


_RUN = pytest.StashKey[_Run]()
_RECORDER = pytest.StashKey[ProcessRecorder]()


@dataclass(frozen=True)
class Done:
    """Work that an interrupted run has behind it: the blocks that were judged to their end.

    Of the rows in all others ``cases`` are (block, case id), ``recorded`` (backend, block, case id). ``unsupported``
    are (backend, operator, dtype, index dtype) of what was noted as not supported, ``unplanned`` (backend, case id) of
    the calls of no block, which a planned one triggered. ``evidence`` counts what failures left, by `evidence_kinds`.
    """

    blocks: frozenset[str] = frozenset()
    cases: frozenset[tuple[str, str]] = frozenset()
    unsupported: frozenset[tuple[str, str, str, str]] = frozenset()
    unplanned: frozenset[tuple[str, str]] = frozenset()
    recorded: frozenset[tuple[str, str, str]] = frozenset()
    evidence: Mapping[tuple[str, ...], int] = field(default_factory=dict)


def run_folder(given: Path | None, resume: bool) -> Path:
    """Return the folder a run may write to, locked until this process ends.

    `CannotOpen` when another session writes to it, when a named folder is in use, or when there is nothing to resume.
    """
    folder = given or store.DEFAULT_FOLDER
    if resume:
        try:
            store.read_run(folder)
        except store.NotARun as error:
            raise CannotOpen(f"nothing to resume: {error}") from error
    else:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"{folder} is no folder for a run ({error.strerror})"
            raise CannotOpen(f"{reason}: name another --report folder") from error
    store.lock(folder)
    if not resume and any(folder.iterdir()):
        if given is not None:
            raise CannotOpen(f"{folder} is not empty: name another --report folder, or go on with its run by --resume")
        try:
            store.read_run(folder)  # only runs are ever deleted
        except store.NotARun as error:
            raise CannotOpen(f"{folder} is not empty and {error}: name another --report folder") from error
        for path in folder.iterdir():  # the folder itself carries the lock
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    return folder


def finished_work(folder: Path) -> Done:
    """Read from the rows in a folder what is done; nothing in a new one."""
    if not (folder / "rows").is_dir():
        return Done()
    from poolproof.reports.figures import tables

    def distinct(rows: pd.DataFrame, *names: str) -> frozenset[Any]:
        return frozenset(rows[list(names)].itertuples(index=False, name=None))

    blocks, has_failed = store.finished_blocks(folder), store.having("verdict", FAILED)
    failed = store.read_rows(folder, ["backend", "case_id", "operator", "verdict", "checks_violated"], has_failed)
    left = (row for row in failed.to_pylist() if evidence_path(folder, row["case_id"], row["backend"]).exists())
    rows = tables.load(folder, ["block", "case_id", "backend", "operator", "dtype", "index_dtype"])
    rest = rows[rows["block"].notna() & ~rows["block"].isin(blocks)]
    return Done(
        blocks,
        cases=distinct(rest, "block", "case_id"),
        unsupported=distinct(rows[rows["block"].isna()], "backend", "operator", "dtype", "index_dtype"),
        unplanned=distinct(rows[rows["block"] == ""], "backend", "case_id"),
        recorded=distinct(rest, "backend", "block", "case_id"),
        evidence=Counter(kind for row in left for kind in evidence_kinds(row)),
    )


def spent(folder: Path) -> tuple[float, float]:
    """Return the seconds of all budgets that earlier sessions of the run in a folder had, and those that they took."""
    try:
        before = store.read_run(folder).get("budget", {})
    except store.NotARun:
        before = {}
    return before.get("seconds", 0.0), before.get("took", 0.0)


def require_same_run(folder: Path, record: Mapping[str, Any]) -> None:
    """Raise `CannotOpen` about the first difference between a run and the one in the folder that it would resume."""
    before = store.read_run(folder)
    as_begun = f"begin in another --report folder, or go on as it was begun: {resuming_line(before['arguments'])}"
    for name in ("suite", "selection", "backends"):
        if found := first_difference(name, before.get(name), record.get(name)):
            path, was, now = found
            raise CannotOpen(f"{folder} holds a run whose {path} is {was!r}, and now it would be {now!r}: {as_begun}")
    was, given = ({waiver["id"]: waiver for waiver in one["waivers"]} for one in (before, record))
    changed = begun_otherwise(was, given, lambda waiver: f"waiver {waiver['id']!r}", "given")
    if changed:
        raise CannotOpen(f"{folder} holds a run that was begun {changed}: {as_begun}")


def try_imports() -> None:
    """Raise `CannotOpen` where what the end of a run needs cannot be imported: it would lose what was judged."""
    try:
        for name in ("figures.digest", "pages.publishing", "terminal.run", "ci.services"):
            import_module(f"poolproof.reports.{name}")
    except ImportError as error:
        raise CannotOpen(f"a run could not be told at its end: {error}; install versions that go together") from error


def begin(
    config: pytest.Config, folder: Path, record: Mapping[str, Any], waivers: Waivers, to_do: Mapping[str, int]
) -> None:
    """Open the run in the controlling process.

    ``record`` says what is run on what: plan, seed, arguments, backends and mandatory (`coverage.MandatoryGroup`).
    ``to_do`` says how many cases of each aspect are left to do. A resumed run keeps its id and its start.
    """
    record = {**record, "suite": suite_identity(), "waivers": [*map(to_record, waivers.all)]}
    identity = {"id": uuid4().hex, "started": time.time()}
    if config.getoption("resume"):
        require_same_run(folder, record)
        before = store.read_run(folder)
        identity = {name: before[name] for name in identity}
        _tidy(folder)
    added = {
        "finished": None,
        "host": host_environment(),
        "waivers_judged_on": waivers.today.isoformat(),
        "strict_waivers": config.getoption("strict_waivers"),
    }
    config.stash[_RUN] = run = _Run(config, folder, {**record, **identity, **added}, to_do)
    config.pluginmanager.register(run)


def _tidy(folder: Path) -> None:
    """Make parts of the journals of processes that are gone, and remove the evidence of what has no row."""
    store.compact_leftovers(folder)
    for path in unclaimed(folder):
        path.unlink()


def narrow(config: pytest.Config, tests: Sequence[str], mandatory: Sequence[Mapping[str, Any]]) -> None:
    """Narrow the run to the ``mandatory`` groups of the selected ``tests``, and show it wherever the run is shown."""
    run = config.stash[_RUN]
    selected = _planned(mandatory)
    run.progress = Progress(run.to_do - (run.planned - selected), run.until)
    run.record |= {
        "mandatory": list(mandatory),
        "narrowed": {"selected": selected.total(), "planned": run.planned.total(), "tests": list(tests)},
    }
    store.write_run(run.folder, run.record)


def spend(config: pytest.Config, seconds: float, is_used_up: bool) -> None:
    """Record how many seconds of the budget the session used, and whether they are all that there were."""
    budget = config.stash[_RUN].record["budget"]
    budget |= {"took": budget["took"] + seconds, "until": time.time() if is_used_up else None}


def add_probes(config: pytest.Config, probes: Mapping[str, Any]) -> None:
    """Record the accounts of a probe that were taken, by backend, at the end of a run."""
    run = config.stash[_RUN]
    run.record["probes"] = run.record["probes"] | probes
    store.write_run(run.folder, run.record)


def open_rows(config: pytest.Config, folder: Path, worker: str) -> None:
    """Make this process write its rows into the run in ``folder``. `CannotWrite` where that cannot be."""
    config.stash[_RECORDER] = recorder = ProcessRecorder(config, folder, worker)
    config.pluginmanager.register(recorder)


def rows_of(config: pytest.Config) -> store.RowWriter:
    return config.stash[_RECORDER].rows


@pytest.fixture(scope="session")
def rows(request: pytest.FixtureRequest) -> store.RowWriter:
    return rows_of(request.config)


@pytest.fixture
def count_cases(request: pytest.FixtureRequest) -> Callable[[Mapping[str, int], Sequence[Row]], None]:
    """Report (cases of each aspect, failures) of the running test to the controlling process."""

    def count(cases: Mapping[str, int], failures: Sequence[Row]) -> None:
        request.node.user_properties.append(judged_property(cases, failures))

    return count


def _is_ours(report: pytest.TestReport) -> bool:
    return any(name == "poolproof" for name, _ in report.user_properties)


def _planned(mandatory: Sequence[Mapping[str, Any]]) -> Counter[str]:
    planned = Counter[str]()
    for group in mandatory:
        planned[group["aspect"]] += group["planned"]
    return planned
