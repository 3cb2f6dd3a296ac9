"""Pytest plugin: the options of a conformance run, its blocks, and the runner that judges them.

The controlling process surveys the backends once and passes the result to the workers; a worker loads a backend only
when it has something to judge. Sessions that do not collect this package (a project's own tests in the same
environment) are left alone.
"""

from __future__ import annotations

import os
import pickle
import platform
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from poolproof.backends.base import WORKER_VARIABLE
from poolproof.reports import recorder
from poolproof.reports.rows.failures import failure_text
from poolproof.reports.rows.io_errors import CannotWrite, environment_errors
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import RowWriter
from poolproof.reports.rows.text import safe
from poolproof.reports.rows.verdicts import FAILED, SKIPPED
from poolproof.suites.isolation.environment import set_kernels, set_libraries
from poolproof.suites.isolation.guardian import die_with
from poolproof.suites.isolation.worker import Worker
from poolproof.suites.judging.budget import share
from poolproof.suites.judging.question import Question
from poolproof.suites.opening import CANNOT_START, Session, begin, stop
from poolproof.suites.options import add_options
from poolproof.suites.plan.blocks import Block
from poolproof.suites.plan.lines import SingleBlock
from poolproof.suites.plan.plans import Subject, not_supported
from poolproof.suites.run import time_budget
from poolproof.suites.run.interrupts import ignore_termination, keep_interrupts, put_off_interrupt
from poolproof.suites.run.runner import MOST_EVIDENCE, SHRINK_SECONDS, BlockResult, Runner
from poolproof.suites.run.time_budget import Allotment, cheapest_first

if TYPE_CHECKING:
    from poolproof.suites.fleet.ray_pool import RayPool
    from poolproof.suites.fleet.session import Recording

CountCases = Callable[[Mapping[str, int], Sequence[Row]], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(lambda title: parser.getgroup(f"poolproof: {title}").addoption)


def pytest_configure(config: pytest.Config) -> None:
    """Register what controls a conformance session, and what judges in this process."""
    if not _is_conformance_session(config):
        _refuse_a_copy(config)
        return
    worker = getattr(config, "workerinput", None)
    keep_interrupts()
    set_libraries(config.getoption("aclnn_library") or ())
    set_kernels(config.getoption("sources"), config.getoption("model"))
    loaded: Mapping[str, Worker] = {}
    if worker is not None:
        _stay_with(*worker["poolproof_controller"])
        os.environ[WORKER_VARIABLE] = worker["workerid"].removeprefix("gw")
        session = pickle.loads(b64decode(worker["poolproof"]))
        share(session.memory_budget, worker["workercount"])
    else:
        if config.getoption("maxschedchunk", 0) is None:
            config.option.maxschedchunk = 1  # the last blocks are the longest: xdist's chunks would leave workers idle
        session, loaded, pool = begin(config)
        config.pluginmanager.register(ControllingPlugin(config, session, pool))
    judging = JudgingPlugin(config, session, loaded)
    config.pluginmanager.register(judging)
    try:
        recorder.open_rows(config, session.folder, judging.name)
    except CannotWrite as error:
        stop(str(error))


def _stay_with(controller: int, host: str) -> None:
    """Make this xdist worker end with its controlling process, at once if that is gone already.

    A worker on another machine, or behind another process, is left to xdist.
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
    """End a session over the tests of a clone while another copy of the suite is installed: they could not run."""
    for path in _paths(config):
        for folder in (path, path.parent):
            if all((folder / name).exists() for name in ("plugin.py", "judging/case_question.py")):
                how = "judge with pytest --pyargs poolproof.suites, or install the clone with pip install -e"
                stop(f"{folder} is a copy of the suite that is installed in {Path(__file__).parent}: {how}")


def _runner_maker(config: pytest.Config, session: Session, most_evidence: int, shrinks: bool) -> Callable[..., Runner]:
    """Return what makes a runner of a folder, ``name``, ``record`` and ``loaded`` workers."""
    return partial(
        Runner,
        waive=session.waive,
        timeout=config.getoption("case_timeout"),
        shrinks=shrinks,
        already_judged=session.done.cases,
        already_unplanned=session.done.unplanned,
        already_left=session.done.evidence,
        most_evidence=max(1, most_evidence),
        shrink_seconds=min(SHRINK_SECONDS, session.budget.slice_seconds if session.budget else SHRINK_SECONDS),
        until=session.budget.until if session.budget else inf,
    )


class JudgingPlugin:
    """Makes tests of what the session has left to judge, and judges them by one runner; ``loaded`` are its workers.

    A session has one in each process that judges. xdist's controlling process has one that finds no tests.
    """

    def __init__(self, config: pytest.Config, session: Session, loaded: Mapping[str, Worker]) -> None:
        worker = getattr(config, "workerinput", {})
        self.name: str = worker.get("workerid", "main")
        self._workers: int = worker.get("workercount", 1)
        self._config, self._session, self._loaded = config, session, loaded
        self._allotment: Allotment | None = None

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        session, done, selection = self._session, self._session.done, self._session.selection
        to_do = [block for block in selection.blocks() if not block.is_done(done.blocks, done.recorded)]
        planned = [block for block in to_do if not isinstance(block, SingleBlock)]
        planned = cheapest_first(planned) if session.budget else sorted(planned, key=lambda block: block.aspect.id)
        asked: dict[str, Sequence[Any]] = {
            "block": planned,
            "single": [block for block in to_do if isinstance(block, SingleBlock)],
            "unsupported": selection.unsupported(),
            "time_slice": range(session.budget.slices * self._workers if session.budget else 0),
        }
        for name in asked.keys() & metafunc.fixturenames:
            metafunc.parametrize(name, asked[name], ids=[getattr(each, "id", each) for each in asked[name]])

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        """Leave out empty parametrizations, for each of which pytest would report a skipped item.

        Time slices of a budget come last; ``-k`` does not deselect them.
        """
        kept = [item for item in items if "NOTSET" not in item.name]
        slices = [item for item in kept if "time_slice" in getattr(item, "fixturenames", ())]
        items[:] = [item for item in kept if item not in slices]
        yield
        items += slices

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Allot the budget, if there is one, to the blocks that were collected."""
        if self._session.budget is not None:
            calls = [getattr(item, "callspec", None) for item in session.items]
            blocks = [call.params["block"] for call in calls if call is not None and "block" in call.params]
            self._allotment = Allotment(self._session.folder, blocks, self._session.budget, self._workers)

    @cached_property
    def _runner(self) -> Runner:
        shrinks = not self._config.getoption("no_shrink")
        make = _runner_maker(self._config, self._session, MOST_EVIDENCE // self._workers, shrinks)
        record = recorder.rows_of(self._config).append
        with environment_errors():
            keeps_going = self._config.getoption("keep_going")
            return make(
                self._session.folder, name=self.name, record=record, loaded=self._loaded, keeps_going=keeps_going
            )

    @pytest.fixture
    def judge(self, rows: RowWriter, count_cases: CountCases) -> BlockTest:
        return BlockTest(self._session, self._runner, self._allotment, rows, count_cases)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        ignore_termination()
        if "_runner" in vars(self):
            self._runner.close()


@dataclass(frozen=True)
class BlockTest:
    """Judges what a test is about: the test fails with the reproducers of failures, or is skipped with the reason."""

    session: Session
    runner: Runner
    allotment: Allotment | None
    rows: RowWriter
    count_cases: CountCases

    def block(self, block: Block) -> None:
        """Judge a block, or within a budget its first cases."""
        with environment_errors():
            if self.allotment is not None:
                result = self.allotment.judge_first(block, self.runner)
            else:
                result = self.runner.judge(block)
                self.rows.finish_block(block.id)
        self._conclude(result)

    def time_slice(self) -> None:
        assert self.allotment is not None
        with environment_errors():
            result = self.allotment.judge_slice(self.runner)
        self._conclude(result)

    def _conclude(self, result: BlockResult) -> None:
        self.count_cases(result.aspects, result.failures)
        if result.failures:
            pytest.fail(result.message(), pytrace=False)

    def single(self, single: SingleBlock) -> None:
        with environment_errors():
            rows = self.runner.judge_one(single.question, single.backend)
        failed = [row for row in rows if row["verdict"] in FAILED]
        self.count_cases({single.aspect.id: 1}, failed)
        if failed:
            pytest.fail("\n\n".join(map(failure_text, failed)), pytrace=False)
        if rows[0]["verdict"] in SKIPPED:
            pytest.skip(safe(rows[0]["reason"]))

    def unsupported(self, subject: Subject) -> None:
        """Record what the backend does not support, unless an interrupted session has."""
        assert subject.unsupported is not None
        key = subject.backend, subject.operator.name, subject.dtype, subject.index_dtype
        if key not in self.session.done.unsupported:
            self.rows.append(not_supported(subject))
        pytest.skip(safe(subject.unsupported))


class ControllingPlugin:
    """Controls the run: passes the session to workers or a fleet, and settles at its end what it had to judge."""

    def __init__(self, config: pytest.Config, session: Session, pool: RayPool | None) -> None:
        self._config, self._session, self._pool = config, session, pool
        self._nodes: list[Any] = []
        self._left: frozenset[str] | None = None
        """The ids that a selection of tests leaves of the plan, if it leaves some out."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["poolproof"] = b64encode(pickle.dumps(self._session)).decode()
        node.workerinput["poolproof_controller"] = (os.getpid(), platform.node())
        self._nodes.append(node)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._narrow(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Take the ids from a worker: the process that controls them collects nothing itself."""
        self._narrow(ids)

    def _narrow(self, node_ids: Iterable[str]) -> None:
        """Reduce what is mandatory to what a selection of tests leaves of the plan."""
        selection, done = self._session.selection, self._session.done
        ended = {block.id for block in selection.blocks() if block.is_done(done.blocks, done.recorded)}
        left = selection.narrowed(node_ids, ended | {block for block, _ in done.cases})
        if left is not None:
            self._left = frozenset(left)
            recorder.narrow(self._config, left, replace(selection, only=self._left).mandatory())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        config, run, pool = self._config, self._session, self._pool
        if pool is None or config.option.collectonly or not session.items:
            return None
        from poolproof.suites.fleet.node import RunSettings
        from poolproof.suites.fleet.session import judge_session

        settings = RunSettings(
            make=_runner_maker(config, run, MOST_EVIDENCE // pool.size, shrinks=not config.getoption("no_shrink")),
            environments={name: survey.environment for name, survey in run.selection.surveys.items()},
            memory=0 if config.getoption("memory_budget") is None else run.memory_budget,
            sharing=pool.sharing,
        )
        try:
            pool.begin(settings)
            judge_session(session, pool, self._recording(), run.done.cases)
        except CANNOT_START as error:
            stop(error.args[0])
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Diagnose, and interrupt the workers with the session: SIGTERM reaches the controlling process alone."""
        self._allot()
        self._diagnose(exitstatus)
        if self._pool is not None:
            recording = self._recording()
            for batch in self._pool.end_judges():
                recording.take(batch)
        put_off_interrupt()
        for node in self._nodes if exitstatus == pytest.ExitCode.INTERRUPTED else ():
            process = getattr(getattr(node.gateway, "_io", None), "popen", None)  # a remote one is ended by xdist
            if process is not None and process.poll() is None:
                process.terminate()

    def _allot(self) -> None:
        """Reduce what is mandatory to what was judged within the budget."""
        run, left = self._session, self._left
        if run.budget is None:
            return
        blocks = [
            block
            for block in run.selection.blocks()
            if block.id not in run.done.blocks and (left is None or block.id in left)
        ]
        parts = time_budget.partial_counts(run.folder, blocks)
        extensions = time_budget.extension_counts(run.folder, blocks)
        asked = {name: part for name, (part, _) in parts.items()}
        spent = replace(run.selection, only=left, asked=asked, extensions=extensions)
        recorder.allot(self._config, parts, extensions, spent.mandatory(), time.monotonic() - run.budget.began)

    def _diagnose(self, exitstatus: int) -> None:
        """Judge further cases to narrow down what is wrong, if all of the run was judged."""
        config, run = self._config, self._session
        resumed = exitstatus == pytest.ExitCode.OK and config.getoption("resume")
        if not (exitstatus == pytest.ExitCode.TESTS_FAILED or resumed):
            return
        latest = run.budget.until if run.budget else inf
        seconds = min(config.getoption("diagnose"), latest - time.monotonic())
        if seconds <= 0.0:
            return
        from poolproof.suites.run.diagnosis import diagnose, probe_sums  # with all that looks for conditions

        reporter = config.pluginmanager.get_plugin("terminalreporter")
        say = reporter.write_line if reporter is not None else print
        with self._further() as judge:
            diagnose(run.folder, judge, run.selection.subjects(), seconds, run.done, say, latest)
        if self._pool is None and not config.getoption("probe") and time.monotonic() < latest:
            recorder.add_probes(config, probe_sums(run.folder, say, latest))

    @contextmanager
    def _further(self) -> Iterator[Callable[[Question, str], Row]]:
        """Open the judge of further cases: the fleet, if there is one, else a runner of this process."""
        if self._pool is not None:
            from poolproof.suites.fleet.session import judge_further

            yield partial(judge_further, self._pool, self._recording())
            return
        make = _runner_maker(self._config, self._session, most_evidence=1, shrinks=False)
        record = recorder.rows_of(self._config).append
        with closing(make(self._session.folder, name="diagnosis", record=record, loaded={})) as runner:
            yield lambda question, backend: runner.judge_one(question, backend, repeats=False)[0]

    def _recording(self) -> Recording:
        from poolproof.suites.fleet.session import Recording

        return Recording(self._session.folder, recorder.rows_of(self._config))
