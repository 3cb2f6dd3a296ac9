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
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from poolproof.backends.base import WORKER_VARIABLE
from poolproof.reports import recorder
from poolproof.reports.rows.failures import failure_text
from poolproof.reports.rows.io_errors import CannotWrite, environment_errors
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import RowWriter
from poolproof.reports.rows.text import visible, without_commands
from poolproof.reports.rows.verdicts import FAILED, SKIPPED
from poolproof.suites.isolation.environment import set_kernels, set_libraries
from poolproof.suites.isolation.guardian import die_with
from poolproof.suites.judging.budget import share
from poolproof.suites.judging.question import Question
from poolproof.suites.opening import BAD_INPUT, FLEET, LOADED, UNAVAILABLE, Session, begin, stop
from poolproof.suites.options import add_options
from poolproof.suites.plan.blocks import Block
from poolproof.suites.plan.plans import Subject, not_supported
from poolproof.suites.run import time_budget
from poolproof.suites.run.interrupts import ignore_termination, keep_interrupts
from poolproof.suites.run.runner import MOST_EVIDENCE, SHRINK_SECONDS, BlockResult, Runner
from poolproof.suites.run.time_budget import Allotment, BudgetRunner, cheapest_first

CountCases = Callable[[Mapping[str, int], int], None]

_SESSION = pytest.StashKey[Session]()
_WORKERS = pytest.StashKey[list[Any]]()

_LEFT = pytest.StashKey[list[str]]()
"""The ids that a selection of tests leaves of the plan, if it leaves some out."""


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def _stay_with(controller: int, host: str) -> None:
    """Make this xdist worker end with its controlling process, at once if that is gone already.

    A worker on another machine, or behind another process, is left to xdist.
    """
    if os.getppid() == controller:
        die_with(controller)
    elif host == platform.node() and not Path(f"/proc/{controller}").exists():
        os._exit(1)


def pytest_configure(config: pytest.Config) -> None:
    if not _is_conformance_session(config):
        _refuse_a_copy(config)
        return
    worker = getattr(config, "workerinput", None)
    keep_interrupts()
    set_libraries(config.getoption("aclnn_library") or ())
    set_kernels(config.getoption("sources"), config.getoption("model"))
    if worker is not None:
        _stay_with(*worker["poolproof_controller"])
        os.environ[WORKER_VARIABLE] = worker["workerid"].removeprefix("gw")
        session = pickle.loads(b64decode(worker["poolproof"]))
        share(session.memory_budget, worker["workercount"])
        name = worker["workerid"]
    else:
        session, name = begin(config), "main"
    config.stash[_SESSION] = session
    try:
        recorder.open_rows(config, session.folder, name)
    except CannotWrite as error:
        stop(str(error))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Have a fleet judge, if there is one."""
    config = session.config
    if FLEET not in config.stash or config.option.collectonly or not session.items:
        return None
    from poolproof.suites.fleet.node import RunSettings
    from poolproof.suites.fleet.session import Recording, judge_session

    run, pool = config.stash[_SESSION], config.stash[FLEET]
    settings = RunSettings(
        make=_runner_of(config, MOST_EVIDENCE // pool.size, shrinks=not config.getoption("no_shrink")),
        environments={name: survey.environment for name, survey in run.selection.surveys.items()},
        memory=0 if config.getoption("memory_budget") is None else run.memory_budget,
        sharing=pool.sharing,
    )
    try:
        pool.begin(settings)
        judge_session(session, pool, Recording(run.folder, recorder.rows_of(config)), run.done.cases)
    except (*UNAVAILABLE, *BAD_INPUT) as error:
        stop(error.args[0])
    return True


def pytest_unconfigure(config: pytest.Config) -> None:
    if FLEET in config.stash:
        config.stash[FLEET].close()
    for sandbox in config.stash.get(LOADED, {}).values():
        sandbox.close()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the session to an xdist worker."""
    session = node.config.stash.get(_SESSION, None)
    if session is not None:
        node.workerinput["poolproof"] = b64encode(pickle.dumps(session)).decode()
        node.workerinput["poolproof_controller"] = (os.getpid(), platform.node())
        node.config.stash.setdefault(_WORKERS, []).append(node)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Diagnose, and interrupt the workers with the session: SIGTERM reaches the controlling process alone."""
    if _SESSION not in session.config.stash:
        return
    ignore_termination()
    _allot(session.config)
    _diagnose(session.config, exitstatus)
    if FLEET in session.config.stash:
        from poolproof.suites.fleet.session import Recording

        recording = Recording(session.config.stash[_SESSION].folder, recorder.rows_of(session.config))
        for batch in session.config.stash[FLEET].close():
            recording.take(batch)
    if exitstatus != pytest.ExitCode.INTERRUPTED:
        return
    for node in session.config.stash.get(_WORKERS, []):
        process = getattr(getattr(node.gateway, "_io", None), "popen", None)  # a remote one is ended by xdist
        if process is not None and process.poll() is None:
            process.terminate()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    session = metafunc.config.stash.get(_SESSION, None)
    if session is None:
        return
    selection = session.selection
    if "block" in metafunc.fixturenames:
        to_do = [block for block in selection.blocks() if block.id not in session.done.blocks]
        to_do = cheapest_first(to_do) if session.budget else sorted(to_do, key=lambda block: block.aspect.id)
        metafunc.parametrize("block", to_do, ids=[block.id for block in to_do])
    if "time_slice" in metafunc.fixturenames:
        workers = getattr(metafunc.config, "workerinput", {}).get("workercount", 1)
        metafunc.parametrize("time_slice", range(session.budget.slices * workers) if session.budget else ())
    if "question" in metafunc.fixturenames:
        unanswered = selection.unanswered(session.done.recorded)
        metafunc.parametrize(("question", "backend_name"), unanswered.values(), ids=unanswered)
    if "unsupported" in metafunc.fixturenames:
        missing = selection.unsupported()
        metafunc.parametrize("unsupported", missing, ids=[subject.id for subject in missing])


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Leave out empty parametrizations, for each of which pytest would report a skipped item.

    Time slices of a budget come last; ``-k`` does not deselect them.
    """
    if _SESSION not in config.stash:
        return (yield)
    kept = [item for item in items if "NOTSET" not in item.name]
    slices = [item for item in kept if "time_slice" in getattr(item, "fixturenames", ())]
    items[:] = [item for item in kept if item not in slices]
    yield
    items += slices
    return None


def pytest_collection_finish(session: pytest.Session) -> None:
    _narrow(session.config, [item.nodeid for item in session.items])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    """Take the ids from a worker: the process that controls them collects nothing itself."""
    _narrow(node.config, ids)


def _narrow(config: pytest.Config, node_ids: Iterable[str]) -> None:
    """Reduce what is mandatory to what a selection of tests leaves of the plan."""
    session = config.stash.get(_SESSION, None)
    if session is None or hasattr(config, "workerinput"):
        return
    begun = (
        session.done.blocks
        | {block for block, _ in session.done.cases}
        | (session.selection.questions().keys() - session.selection.unanswered(session.done.recorded).keys())
    )
    left = session.selection.narrowed(node_ids, begun)
    if left is not None:
        config.stash[_LEFT] = left
        recorder.narrow(config, left, replace(session.selection, only=frozenset(left)).mandatory())


def _allot(config: pytest.Config) -> None:
    """Reduce what is mandatory to what was judged within the budget."""
    session = config.stash[_SESSION]
    if session.budget is None or hasattr(config, "workerinput"):
        return
    left = config.stash.get(_LEFT, None)
    blocks = [
        block
        for block in session.selection.blocks()
        if block.id not in session.done.blocks and (left is None or block.id in left)
    ]
    parts = time_budget.partial_counts(session.folder, blocks)
    extensions = time_budget.extension_counts(session.folder, blocks)
    spent = replace(
        session.selection,
        only=None if left is None else frozenset(left),
        asked={name: part for name, (part, _) in parts.items()},
        extensions=extensions,
    )
    recorder.allot(config, parts, extensions, spent.mandatory(), time.time() - session.budget.began)


def _diagnose(config: pytest.Config, exitstatus: int) -> None:
    """Judge further cases to narrow down what is wrong, if this process controls the run and all of it was judged."""
    session = config.stash[_SESSION]
    resumed = exitstatus == pytest.ExitCode.OK and config.getoption("resume")
    if hasattr(config, "workerinput") or not (exitstatus == pytest.ExitCode.TESTS_FAILED or resumed):
        return
    seconds = config.getoption("diagnose")
    if session.budget is not None:
        seconds = min(seconds, session.budget.until - time.time())
    if seconds <= 0.0:
        return
    from poolproof.suites.run.diagnosis import diagnose  # with all that looks for conditions

    reporter = config.pluginmanager.get_plugin("terminalreporter")
    say = reporter.write_line if reporter is not None else print
    with _further(config) as judge:
        diagnose(session.folder, judge, session.selection.subjects(), seconds, session.done, say)


@contextmanager
def _further(config: pytest.Config) -> Iterator[Callable[[Question, str], Row]]:
    """Open the judge of further cases: the fleet, if there is one, else a runner of this process."""
    rows = recorder.rows_of(config)
    if FLEET in config.stash:
        from poolproof.suites.fleet.session import Recording, judge_further

        yield partial(judge_further, config.stash[FLEET], Recording(config.stash[_SESSION].folder, rows))
        return
    make = _runner_of(config, most_evidence=1, shrinks=False)
    runner = make(config.stash[_SESSION].folder, name="diagnosis", record=rows.append, loaded={})
    try:
        yield runner.judge_further
    finally:
        runner.close()


@pytest.fixture(scope="session")
def runner(request: pytest.FixtureRequest, rows: RowWriter) -> Iterator[Runner]:
    config = request.config
    worker = getattr(config, "workerinput", {})
    make = _runner_of(config, MOST_EVIDENCE // worker.get("workercount", 1), not config.getoption("no_shrink"))
    loaded = config.stash.get(LOADED, {})
    with environment_errors():
        folder = config.stash[_SESSION].folder
        runner = make(folder, name=worker.get("workerid", "main"), record=rows.append, loaded=loaded)
    config.stash[LOADED] = {}
    yield runner
    runner.close()


def _runner_of(config: pytest.Config, most_evidence: int, shrinks: bool) -> Callable[..., Runner]:
    """Return what makes a runner of a folder, ``name``, ``record`` and ``loaded`` sandboxes."""
    session = config.stash[_SESSION]
    return partial(
        Runner,
        waive=session.waive,
        timeout=config.getoption("case_timeout"),
        shrinks=shrinks,
        already_judged=session.done.cases,
        already_unplanned=session.done.unplanned,
        most_evidence=max(1, most_evidence),
        shrink_seconds=min(SHRINK_SECONDS, session.budget.slice_seconds if session.budget else SHRINK_SECONDS),
    )


@pytest.fixture(scope="session")
def budget_runner(request: pytest.FixtureRequest, runner: Runner) -> BudgetRunner | None:
    """Make the runner within the budget; None without a budget."""
    session = request.config.stash[_SESSION]
    if session.budget is None:
        return None
    workers = getattr(request.config, "workerinput", {}).get("workercount", 1)
    calls = [getattr(item, "callspec", None) for item in request.session.items]
    blocks = [call.params["block"] for call in calls if call is not None and "block" in call.params]
    return BudgetRunner(Allotment(session.folder, blocks, session.budget, workers), runner)


@pytest.fixture
def examine(
    runner: Runner, budget_runner: BudgetRunner | None, rows: RowWriter, count_cases: CountCases
) -> Callable[[Block], None]:
    """Judge a block, or within a budget its first cases; fail the test with the failures' reproducers."""

    def examine_block(block: Block) -> None:
        with environment_errors():
            result = budget_runner.judge_first(block) if budget_runner else runner.judge(block)
        if budget_runner is None:
            rows.finish_block(block.id)
        _conclude(result, count_cases)

    return examine_block


@pytest.fixture
def examine_slice(budget_runner: BudgetRunner, count_cases: CountCases) -> Callable[[], None]:
    """Judge more of all blocks for a time slice; fail the test with the failures' reproducers."""

    def examine_portions() -> None:
        with environment_errors():
            result = budget_runner.judge_slice()
        _conclude(result, count_cases)

    return examine_portions


def _conclude(result: BlockResult, count_cases: CountCases) -> None:
    count_cases(result.aspects, len(result.failures))
    if result.failures:
        pytest.fail(result.message(), pytrace=False)


@pytest.fixture
def examine_one(runner: Runner, count_cases: CountCases) -> Callable[[Question, str], None]:
    """Judge a single question; fail the test with its reproducer, or skip it with the reason."""

    def examine_question(question: Question, backend: str) -> None:
        with environment_errors():
            rows = runner.judge_one(question, backend)
        failed = [row for row in rows if row["verdict"] in FAILED]
        count_cases({question.aspect.id: 1}, len(failed))
        if failed:
            pytest.fail("\n\n".join(map(failure_text, failed)), pytrace=False)
        if rows[0]["verdict"] in SKIPPED:
            pytest.skip(without_commands(rows[0]["reason"]))

    return examine_question


@pytest.fixture
def note_unsupported(request: pytest.FixtureRequest, rows: RowWriter) -> Callable[[Subject], None]:
    """Record what the backend does not support, and skip."""
    recorded = request.config.stash[_SESSION].done.unsupported

    def note(subject: Subject) -> None:
        assert subject.unsupported is not None
        if (subject.backend, subject.operator.name, subject.dtype, subject.index_dtype) not in recorded:
            rows.append(not_supported(subject))
        pytest.skip(without_commands(visible(subject.unsupported)))

    return note


def _is_conformance_session(config: pytest.Config) -> bool:
    package = Path(__file__).parent
    for argument in config.args:
        path = argument.partition("::")[0]
        if path.startswith(__package__) or (config.invocation_params.dir / path).resolve().is_relative_to(package):
            return True
    return False


def _refuse_a_copy(config: pytest.Config) -> None:
    """End a session over the tests of a clone while another copy of the suite is installed: they could not run."""
    for argument in config.args:
        path = (config.invocation_params.dir / argument.partition("::")[0]).resolve()
        for folder in (path, path.parent):
            if all((folder / name).exists() for name in ("plugin.py", "test_case.py", "judging/case_question.py")):
                stop(
                    f"{folder} is a copy of the suite that is installed in {Path(__file__).parent}: "
                    "judge with pytest --pyargs poolproof.suites, or install the clone with pip install -e"
                )
