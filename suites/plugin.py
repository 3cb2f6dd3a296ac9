"""Pytest plugin: the options of a conformance run, its blocks, the runner that judges them, and the end of the run.

The controlling process surveys the backends once and passes the result to the workers. A worker loads a backend only
when it has something to judge. ``poolproof run``, the conftest.py of a clone and `poolproof.suites.pytest_stub` load
this plugin. It does nothing in sessions that do not collect this package, such as those of poolproof's own tests.
"""

from __future__ import annotations

import os
import pickle
import platform
import sys
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from html import escape
from importlib import import_module
from math import inf
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from poolproof.backends.base import WORKER_VARIABLE
from poolproof.reports.progress import Progress, Waiting
from poolproof.reports.recorder import FAILURES, Ending, Recorder, cases_of
from poolproof.reports.rows.evidence import evidence_path
from poolproof.reports.rows.failures import failure_text, replay_line
from poolproof.reports.rows.io_errors import CannotGoOn, CannotWrite, environment_errors
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import DEFAULT_FOLDER
from poolproof.reports.rows.text import safe, visible
from poolproof.reports.rows.verdicts import FAILED, Overall
from poolproof.suites.cases.case import Case
from poolproof.suites.isolation.environment import set_kernels, set_libraries
from poolproof.suites.isolation.guardian import die_with
from poolproof.suites.isolation.worker import Worker
from poolproof.suites.judging.budget import share
from poolproof.suites.judging.question import Question
from poolproof.suites.opening import CANNOT_START, Begun, Session, begin, stop
from poolproof.suites.options import add_options
from poolproof.suites.parts import part
from poolproof.suites.plan.blocks import Block
from poolproof.suites.plan.lines import SingleBlock
from poolproof.suites.plan.plans import Subject, not_supported
from poolproof.suites.plan.search import Search, searches
from poolproof.suites.run.interrupts import ignore_termination, keep_interrupts, put_off_interrupt
from poolproof.suites.run.runner import MOST_EVIDENCE, PROCESSES, SHRINK_SECONDS, BlockResult, Runner
from poolproof.suites.run.searching import Judging, Memory, prepared, register_profiles
from poolproof.suites.run.time_budget import KEPT_BLOCKS, BlockPart, parts

_MOST_KINDS = 6
"""Kinds of failures that are shown at once, one failure each."""

_SKIPPED_AFTER = {"block", "search", "further_seed"}
"""Parameters of the tests that no session begins after its deadline."""

_STOPPED = "the session cannot go on"
_OUTPUT = "poolproof_fault"
_JUDGED = pytest.StashKey[BlockResult]()
_ENDED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(lambda title: parser.getgroup(f"poolproof: {title}").addoption)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register what controls a conformance session, and what judges in this process."""
    if not _is_conformance_session(config):
        _refuse_a_copy(config)
        return
    worker = getattr(config, "workerinput", None)
    keep_interrupts()
    set_libraries(config.getoption("aclnn_library") or ())
    set_kernels(config.getoption("sources"), config.getoption("model"))
    beside = (config.getoption("report") or DEFAULT_FOLDER).parent / ".hypothesis" / "examples"
    register_profiles(config.getoption("hypothesis_database") or beside)
    settings.load_profile(config.getoption("plan"))  # --hypothesis-profile is loaded later
    try:
        if worker is not None:
            _stay_with(*worker["poolproof_controller"])
            os.environ[WORKER_VARIABLE] = worker["workerid"].removeprefix("gw")
            session = pickle.loads(b64decode(worker["poolproof"]))
            share(session.memory_budget, worker["workercount"])
            config.pluginmanager.register(JudgingPlugin(config, session, {}))
        else:
            if config.getoption("maxschedchunk", 0) is None:
                config.option.maxschedchunk = 1  # the last blocks are the longest: xdist's chunks leave workers idle
            config.pluginmanager.register(ControllingPlugin(config, begin(config)))
    except CannotWrite as error:
        stop(str(error))


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Name the suite's tests alike wherever it is installed, for ``--junitxml`` and the like."""
    if module_path.parent != Path(__file__).parent:
        return None
    return pytest.Module.from_parent(parent, path=module_path, nodeid=f"{__package__}.{module_path.stem}")


def _stay_with(controller: int, host: str) -> None:
    """End this xdist worker with its controlling process, at once if that has already ended.

    xdist ends a worker on another machine, or one that is a grandchild of the controlling process.
    """
    if os.getppid() == controller:
        die_with(controller)
    elif host == platform.node() and not Path(f"/proc/{controller}").exists():
        os._exit(1)


def _is_conformance_session(config: pytest.Config) -> bool:
    is_named = any(argument.startswith(__package__) for argument in config.args)
    return is_named or any(path.is_relative_to(Path(__file__).parent) for path in _paths(config))


def _paths(config: pytest.Config) -> list[Path]:
    return [(config.invocation_params.dir / argument.partition("::")[0]).resolve() for argument in config.args]


def _refuse_a_copy(config: pytest.Config) -> None:
    """End a session over the tests of a clone if another copy is installed: they could not run."""
    for path in _paths(config):
        for folder in (path, path.parent):
            if all((folder / name).exists() for name in ("plugin.py", "judging/case_question.py")):
                how = "judge with pytest --pyargs poolproof.suites, or install the clone with pip install -e"
                stop(f"{folder} is a copy of the suite that is installed in {Path(__file__).parent}: {how}")


class JudgingPlugin:
    """Creates the session's tests, and judges them by one runner.

    Each process of a session has one; that of xdist's controlling process finds no tests. ``loaded`` maps names of
    backends to processes that have loaded them.
    """

    def __init__(self, config: pytest.Config, session: Session, loaded: Mapping[str, Worker]) -> None:
        worker = getattr(config, "workerinput", {})
        self.name: str = worker.get("workerid", "main")
        self._workers: int = worker.get("workercount", 1)
        self._config, self._session, self._loaded = config, session, loaded
        self._draw = lru_cache(KEPT_BLOCKS)(methodcaller("questions"))
        self._recorder = Recorder(session.folder, self.name, self._stop)
        self._pytest: pytest.Session | None = None

    def _stop(self, fault: str) -> None:
        """Start no more tests here; xdist passes a worker's fault to the controlling process."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[_OUTPUT] = fault
        if self._pytest is not None:
            self._pytest.shouldstop = _STOPPED

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._pytest = session

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        for name in self._parameters.keys() & metafunc.fixturenames:
            values = self._parameters[name]
            metafunc.parametrize(name, values, ids=[getattr(each, "id", each) for each in values])

    @cached_property
    def _parameters(self) -> dict[str, Sequence[Any]]:
        """What the session's tests are of, by the name of their parameter."""
        session, selection, to_do = self._session, self._session.selection, self._session.to_do()
        planned = [block for block in to_do if not isinstance(block, SingleBlock)]
        parameters: dict[str, Sequence[Any]] = {
            "block": sorted(planned, key=lambda block: block.aspect.id),
            "single": [block for block in to_do if isinstance(block, SingleBlock)],
            "unsupported": selection.unsupported(),
            "search": [each for each in searches(selection) if each.id not in session.done.blocks],
            "further_seed": (),
        }
        if session.budget is not None:
            parameters["block"] = list(parts(planned, Counter(block for block, _ in session.done.cases)))
            cases = sum(block.count for block in selection.blocks() if block.is_drawn)
            parameters["further_seed"] = session.budget.further_seeds(selection.seed, cases, self._workers)
        return parameters

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Ignore the searches, which a fleet cannot judge: each case depends on the one before."""
        left_out = self._config.getoption("no_search") or self._config.getoption("ray") is not None
        return True if left_out and collection_path == Path(__file__).with_name("test_search.py") else None

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        """Remove empty parametrizations, for each of which pytest would report a skipped item.

        Further seeds come last; ``-k`` does not deselect them.
        """
        kept = [item for item in items if "NOTSET" not in item.name]
        further = [item for item in kept if "further_seed" in getattr(item, "fixturenames", ())]
        items[:] = [item for item in kept if item not in further]
        yield
        items += further

    @cached_property
    def _runner(self) -> Runner:
        make = partial(self._runner_maker(self._workers), keeps_going=self._config.getoption("keep_going"))
        with environment_errors():
            return make(self._session.folder, self.name, record=self._recorder.rows.append, loaded=self._loaded)

    def _runner_maker(self, runners: int) -> Callable[..., Runner]:
        """Return a factory of runners from a folder, ``name``, ``record`` and ``loaded``, for one of ``runners``."""
        session, option = self._session, self._config.getoption
        return partial(
            Runner,
            waive=session.waive,
            timeout=option("case_timeout"),
            shrinks=not option("no_shrink"),
            done=session.done,
            most_evidence=max(1, MOST_EVIDENCE // runners),
            shrink_seconds=min(SHRINK_SECONDS, session.budget.seconds / 20 if session.budget else SHRINK_SECONDS),
            until=session.budget.until if session.budget else inf,
        )

    @pytest.fixture
    def judge(self, request: pytest.FixtureRequest) -> BlockTest:
        return BlockTest(self._session, self._runner, self._recorder, request.node, self._draw)

    @pytest.fixture
    def judge_case(self, request: pytest.FixtureRequest, search: Search) -> Iterator[Callable[[Case], Row]]:
        """Return a judge of a search's cases, which follow from ``--seed`` unless Hypothesis has its own seed."""
        session = self._session
        is_seeded = self._config.getoption("hypothesis_seed", None) is not None
        request.node.obj = prepared(request.function, search, None if is_seeded else session.selection.seed)
        judging = Judging(search, self._runner, session.done, session.budget.reason if session.budget else "")
        request.node.stash[_JUDGED] = judging.result
        if settings.default is not None and isinstance(settings.default.database, Memory):
            settings.default.database.judging = judging
        yield judging.judge
        judging.record()
        if _ENDED in request.node.stash:  # else it was interrupted, or cut off by the budget
            self._recorder.rows.finish_block(search.id)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Function) -> bool | None:
        """Skip what the budget leaves out without fixtures and phases: they take seconds for thousands of tests."""
        budget = self._session.budget
        if budget is None or not budget.is_over or not _SKIPPED_AFTER & {*item.fixturenames}:
            return None
        where = str(item.path), item.location[1] or 0, f"Skipped: {budget.reason}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "skipped", where, "call")
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        error = call.excinfo.value if call.excinfo else None
        if isinstance(error, CannotGoOn):
            self._recorder.note(error)
            report.longrepr = _STOPPED
        if report.when == "call" and isinstance(error, pytest.fail.Exception | None):
            item.stash[_ENDED] = True
        if report.when == "call" and (result := item.stash.get(_JUDGED, None)) is not None:
            report.judged = result.progress
            _attach(self._config, report, self._session.folder, result.failures)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        if isinstance(excinfo.value, CannotWrite):
            self._recorder.note(excinfo.value)
            raise pytest.exit.Exception(self._recorder.fault, returncode=Overall.COULD_NOT_RUN) from None

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, object, object]:
        """Settle what was judged; close the run after other plugins have finished, whatever they raise."""
        with self._recorder.noting():
            self._settle(exitstatus)
        try:
            with self._recorder.noting():
                return (yield)
            return None
        finally:
            with self._recorder.noting():
                self._recorder.rows.close()
            self._close(session)

    def _settle(self, exitstatus: int) -> None:  # noqa: ARG002
        ignore_termination()
        if "_runner" in vars(self):
            self._runner.close()

    def _close(self, session: pytest.Session) -> None:
        """Do nothing: the controlling process closes the run."""


@dataclass(frozen=True)
class BlockTest:
    """Judges the subject of a test, which fails with the replay lines of failures, or is skipped with the reason."""

    session: Session
    runner: Runner
    recorder: Recorder
    item: pytest.Item
    draw: Callable[[Block], Sequence[Question]]

    def block(self, block: Block | BlockPart) -> None:
        """Judge a block, or a part of it as far as the budget allows."""
        with environment_errors():
            if isinstance(block, BlockPart):
                result = self.runner.judge(block.block, block.questions(self.draw))
            else:
                result = self.runner.judge(block)
                self.recorder.rows.finish_block(block.id)
        self._conclude(result)

    def further_seed(self, seed: int) -> None:
        """Judge the drawn blocks of a further seed as far as the budget allows."""
        result = BlockResult()
        with environment_errors():
            for block in self.session.selection.further(seed):
                if block.id not in self.session.done.blocks and not result.is_cut:
                    result.merge(self.runner.judge(block))
                    if not result.is_cut:
                        self.recorder.rows.finish_block(block.id)
        self._conclude(result)

    def single(self, single: SingleBlock) -> None:
        with environment_errors():
            row, *further = self.runner.judge_one(single.question, single.backend)
        result = BlockResult()
        result.add(row)
        result.failures += [other for other in further if other["verdict"] in FAILED]
        self._conclude(result, "\n\n".join(map(failure_text, result.failures)))

    def _conclude(self, result: BlockResult, message: str = "") -> None:
        _conclude(self.item, result, message, self.session.budget.reason if self.session.budget else "")

    def unsupported(self, subject: Subject) -> None:
        """Record an unsupported subject, unless an interrupted session has."""
        assert subject.unsupported is not None
        key = subject.backend, subject.operator.name, subject.dtype, subject.index_dtype
        if key not in self.session.done.unsupported:
            self.recorder.rows.append(not_supported(subject))
        pytest.skip(safe(subject.unsupported))


def _attach(config: pytest.Config, report: pytest.TestReport, folder: Path, failures: Sequence[Row]) -> None:
    """Attach a replay line, evidence and a picture to what Allure or pytest-html, if active, report of a test.

    They are of one failing case, which left evidence if any did. pytest-html gets a link to the evidence.
    """
    in_allure, in_html = (config.getoption(name, None) for name in ("allure_report_dir", "htmlpath"))
    if not failures or not (in_allure or in_html):
        return
    from poolproof.reports.pages.run import picture_page

    paths = {evidence_path(folder, row["case_id"], row["backend"]).absolute(): row for row in failures}
    path = next(filter(Path.exists, paths), next(iter(paths)))
    line, page = replay_line(paths[path]), picture_page(folder, paths[path])
    if in_allure:
        allure = import_module("allure")
        allure.attach(line, "replay", allure.attachment_type.TEXT)
        if path.exists():
            allure.attach.file(path, "evidence", extension=path.suffix[1:])
        if page:
            allure.attach(page, "picture", allure.attachment_type.HTML)
    if in_html:
        extras = import_module("pytest_html.extras")
        frame = f'<iframe width="100%" height="400" srcdoc="{escape(page)}"></iframe>'
        own = [extras.text(line, "replay"), extras.url(path.as_uri(), "evidence"), extras.html(frame)]
        kept = own[: 3 if page else 2 if path.exists() else 1]
        report.extras = [*getattr(report, "extras", ()), *kept]  # type: ignore[attr-defined]


def _conclude(item: pytest.Item, result: BlockResult, message: str = "", reason: str = "") -> None:
    """End a test: it fails with the message or its failures, or is skipped, with the ``reason`` if it was cut off."""
    item.stash[_JUDGED] = result
    item.user_properties += result.properties
    if message or result.failures:
        pytest.fail(message or result.message(), pytrace=False)
    if skipped := (reason if result.is_cut else "") or result.skipped:
        pytest.skip(skipped)


class ControllingPlugin(JudgingPlugin):
    """Controls the run: passes the session to workers or a fleet, shows its progress, and ends it."""

    def __init__(self, config: pytest.Config, begun: Begun) -> None:
        super().__init__(config, begun.session, begun.loaded)
        self._pool, self._folder, self._to_do = begun.pool, begun.folder, Counter[str]()
        for block in begun.session.to_do():
            self._to_do[block.aspect.id] += block.count
        self._ending = Ending(begun.folder, self._recorder)
        self._until = begun.session.budget.until if begun.session.budget else None
        self._progress = Progress(self._to_do, self._until)
        self._kinds: set[str] = set()
        self._nodes: list[Any] = []
        self._has_lost_workers = False
        self._waiting: Waiting | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        super().pytest_sessionstart(session)
        with suppress(OSError):  # stdout is not a file
            self._waiting = Waiting(self._folder.path / PROCESSES, sys.stdout.fileno())

    @property
    def _terminal(self) -> Any:
        return self._config.pluginmanager.get_plugin("terminalreporter")

    @property
    def _is_verbose(self) -> bool:
        return bool(self._config.option.verbose > 0)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["poolproof"] = b64encode(pickle.dumps(self._session)).decode()
        node.workerinput["poolproof_controller"] = (os.getpid(), platform.node())
        self._nodes.append(node)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        self._has_lost_workers |= error is not None
        if fault := getattr(node, "workeroutput", {}).get(_OUTPUT):
            self._recorder.note(fault)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._narrow(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Take the ids from a worker: the controlling process collects nothing itself."""
        self._narrow(ids)

    def _narrow(self, node_ids: Iterable[str]) -> None:
        """Reduce the mandatory groups to those that a selection of tests leaves of the plan."""
        selection, done = self._session.selection, self._session.done
        ended = {block.id for block in selection.blocks() if block.is_done(done)}
        left = selection.narrowed(node_ids, ended | {block for block, _ in done.cases})
        if left is not None:
            mandatory = replace(selection, only=frozenset(left)).mandatory()
            self._progress = Progress(self._to_do - (self._folder.planned - cases_of(mandatory)), self._until)
            self._folder.narrow(left, mandatory)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> object | None:
        """Let one worker judge all parts of a block, in order, if there is a budget."""
        if self._session.budget is None:
            return None
        from poolproof.suites.run.lanes import Lanes

        return Lanes(config, log, self._session.selection.blocks())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count an ended test, and print a line of progress if one is due."""
        if not hasattr(report, "judged"):
            return
        cases, failed, firsts = report.judged
        self._progress.add(cases, failed, report.duration, getattr(report, "worker_id", "main"))
        lines: list[str] = []
        for kind, line in firsts.items():
            lines += [line] if kind not in self._kinds and len(self._kinds) < _MOST_KINDS else []
            self._kinds.add(kind)
        if report.failed:
            with self._recorder.noting(), (self._folder.path / FAILURES).open("a", encoding="utf-8") as file:
                file.write(visible(f"FAILED {report.nodeid}\n{report.longreprtext}\n\n"))
        lines += filter(None, [self._progress.line()])
        if lines and self._terminal is not None:
            self._terminal.write_line("\n" + "\n".join(lines))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        config, run, pool = self._config, self._session, self._pool
        self._folder.update(plan_cases=run.selection.plan_cases())  # while xdist's workers start
        if pool is None or config.option.collectonly or not session.items:
            return None
        settings = part("poolproof.suites.fleet.node:RunSettings")(
            make=self._runner_maker(pool.size),
            environments={name: survey.environment for name, survey in run.selection.surveys.items()},
            memory=0 if config.getoption("memory_budget") is None else run.memory_budget,
            sharing=pool.sharing,
        )
        try:
            pool.begin(settings)
            judge_session = part("poolproof.suites.fleet.session:judge_session")
            judge_session(session, pool, self._recording(), self._report, run.done.cases)
        except CANNOT_START as error:
            stop(error.args[0])
        return True

    def _report(self, work: Any, judge: int) -> None:
        """Report a test that judges of the fleet ran."""
        item = work.item
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        call = pytest.CallInfo.from_call(lambda: _conclude(item, work.result, work.error), "call")
        call.start, call.duration = call.stop - work.seconds, work.seconds
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        report.worker_id = f"fleet{judge}"
        item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _settle(self, exitstatus: int) -> None:
        """Diagnose, and end the workers of an interrupted session: SIGTERM reaches only the controlling process."""
        super()._settle(exitstatus)
        if self._waiting is not None:
            self._waiting.close()
        if (budget := self._session.budget) is not None:
            is_used_up = budget.is_over and exitstatus != pytest.ExitCode.INTERRUPTED and not self._has_lost_workers
            self._folder.spend(time.monotonic() - budget.began, is_used_up)
        self._diagnose(exitstatus)
        if self._pool is not None:
            recording = self._recording()
            for batch in self._pool.end_judges():
                recording.take(batch)
        put_off_interrupt()
        for node in self._nodes if exitstatus == pytest.ExitCode.INTERRUPTED else ():
            process = getattr(getattr(node.gateway, "_io", None), "popen", None)  # xdist ends remote workers
            if process is not None and process.poll() is None:
                process.terminate()

    def _close(self, session: pytest.Session) -> None:
        self._ending.publish(self._config.getoption("ci"), session.exitstatus == pytest.ExitCode.INTERRUPTED)
        session.exitstatus = self._ending.status(session.exitstatus)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None, object, object]:
        """Hide what is in `FAILURES` from pytest's own lists of failures, unless verbose."""
        stats = terminalreporter.stats
        failed = stats.get("failed")
        if failed and not self._is_verbose:
            stats["failed"] = [report for report in failed if not hasattr(report, "judged")]
        with self._recorder.noting():
            yield
        if failed:
            stats["failed"] = failed
        return None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_unconfigure(self) -> Generator[None, object, object]:
        """Print the conclusion last, with a fault of the last other plugin."""
        with self._recorder.noting():
            yield
        if self._pytest is not None:
            if self._recorder.fault:
                self._pytest.exitstatus = Overall.COULD_NOT_RUN
            self._ending.show(self._terminal, self._pytest.exitstatus, self._is_verbose)
        return None

    def _diagnose(self, exitstatus: int) -> None:
        """Judge further cases to narrow down failures, if all of the run was judged."""
        config, run = self._config, self._session
        resumed = exitstatus == pytest.ExitCode.OK and config.getoption("resume")
        if not (exitstatus == pytest.ExitCode.TESTS_FAILED or resumed):
            return
        latest = run.budget.until if run.budget else inf
        seconds = min(config.getoption("diagnose"), latest - time.monotonic())
        if seconds <= 0.0:
            return
        from poolproof.suites.run.diagnosis import diagnose, probe_sums  # imports all code that searches for conditions

        say = self._terminal.write_line if self._terminal is not None else print
        with self._further() as judge:
            diagnose(run.folder, judge, run.selection, seconds, run.done, say, latest)
        if self._pool is None and not config.getoption("probe") and time.monotonic() < latest:
            self._folder.update(probes=self._folder.record["probes"] | probe_sums(run.folder, say, latest))

    @contextmanager
    def _further(self) -> Iterator[Callable[[Question, str], Row]]:
        """Return the judge of further cases: the fleet, if there is one, else a runner of this process."""
        if self._pool is not None:
            yield partial(part("poolproof.suites.fleet.session:judge_further"), self._pool, self._recording())
            return
        make = partial(self._runner_maker(1), most_evidence=1, shrinks=False)
        with closing(make(self._session.folder, "diagnosis", record=self._recorder.rows.append)) as runner:
            yield lambda question, backend: runner.judge_one(question, backend, repeats=False)[0]

    def _recording(self) -> Any:
        return part("poolproof.suites.fleet.session:Recording")(self._session.folder, self._recorder.rows)
