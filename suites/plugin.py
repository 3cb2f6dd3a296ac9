"""Pytest plugin: the options of a conformance run, the blocks it consists of, and the jury that judges them.

The controlling process surveys the backends once and tells the workers what it learned; a worker loads a backend
only when it has something to judge. Sessions that do not collect this package (a project's own tests in the same
environment) are left alone.
"""

from __future__ import annotations

import os
import pickle
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import pytest

from poolproof.backends.aclnn.libraries import LIBRARY_VARIABLE
from poolproof.backends.base import WORKER_VARIABLE, BackendUnavailable
from poolproof.backends.registry import UnknownBackend, names
from poolproof.references.contract import ContractError
from poolproof.references.operators import find_operator
from poolproof.reports import recorder
from poolproof.reports.rows.grouping import GROUP
from poolproof.reports.rows.store import RowWriter
from poolproof.reports.rows.verdicts import FAILED, SKIPPED, Overall, Verdict
from poolproof.reports.waivers import WaiverError, Waivers, load, shipped
from poolproof.suites.cases.case import CaseError
from poolproof.suites.judging import contract as contract_suite
from poolproof.suites.judging.contract import ContractBlock
from poolproof.suites.judging.judge import verdict
from poolproof.suites.probe.command import all_accounts
from poolproof.suites.running.plans import ASPECTS, DTYPES, PLANS, Aspect, Block, Cell, Plan, blocks
from poolproof.suites.running.replay import check_lines, given_questions
from poolproof.suites.running.runner import MOST_EVIDENCE, Jury, failure_text
from poolproof.suites.running.sandbox import AnyQuestion, Survey, survey

AnyBlock = Block | ContractBlock


@dataclass(frozen=True)
class Session:
    """What every process of a run needs to know; made by the controlling process, pickled to the workers."""

    folder: Path
    surveys: dict[str, Survey]
    waivers: Waivers
    finished_blocks: frozenset[str]
    already_judged: frozenset[tuple[str, str]]


_SESSION = pytest.StashKey[Session]()

_UNAVAILABLE = (BackendUnavailable, UnknownBackend)
_BAD_INPUT = (CaseError, ContractError, KeyError, WaiverError, recorder.CannotOpen)
"""What stops a run before it starts, each with a sentence that says why."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("poolproof", "conformance of max pooling with argmax, backward")
    add = group.addoption
    add(
        "--backend",
        action="append",
        metavar="NAME",
        help=f"implementation under test, repeatable: {', '.join(names())}, "
        "or your own as module:attribute (default: torch-cpu)",
    )
    add(
        "--plan",
        choices=sorted(PLANS),
        default="smoke",
        help="how much to run: " + "; ".join(f"{plan.name}: {plan.purpose}" for plan in PLANS.values()),
    )
    add("--cases", type=int, metavar="N", help="cases per operator, dtypes and aspect, instead of the plan's number")
    add(
        "--seed",
        type=int,
        default=0,
        help="everything drawn derives from it; the same plan and seed give the same cases anywhere (default: 0)",
    )
    add(
        "--report",
        type=Path,
        metavar="DIR",
        help="folder for rows, evidence and page (default: poolproof-report, replaced by the next run)",
    )
    add("--resume", action="store_true", help="go on with the interrupted run in the --report folder")
    add(
        "--case",
        action="append",
        metavar="JSON",
        help="judge this one case instead of a plan, repeatable; takes the line that a failure prints",
    )
    add(
        "--operator",
        action="append",
        metavar="NAME",
        help="only this operator, repeatable; aclnn and aten names work too",
    )
    add("--dtype", action="append", choices=DTYPES, help="only this dtype, repeatable")
    add(
        "--aspect",
        action="append",
        choices=sorted([*ASPECTS, contract_suite.ASPECT]),
        help="only this aspect, repeatable",
    )
    add(
        "--waivers",
        action="append",
        metavar="FILE",
        help="TOML file of accepted deviations, repeatable; 'none' leaves out those that come with the suite",
    )
    add(
        "--case-timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how long one case may take before it counts as hung (default: 60)",
    )
    add(
        "--aclnn-library",
        action="append",
        metavar="PATH",
        help="for --backend aclnn: a library file, or a folder with libraries, repeatable; wins over what CANN's "
        "variables name",
    )
    add(
        "--probe",
        action="store_true",
        help="find out first how each backend adds and rounds, and say in the report where it declares otherwise",
    )
    add("--no-shrink", action="store_true", help="do not look for a smaller case when one fails")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "aspect(id): aspect of conformance that a test module judges")
    if not _is_conformance_session(config):
        _refuse_a_copy(config)
        return
    worker = getattr(config, "workerinput", None)
    if config.getoption("aclnn_library"):
        os.environ[LIBRARY_VARIABLE] = os.pathsep.join(config.getoption("aclnn_library"))
    if worker is not None:
        os.environ[WORKER_VARIABLE] = worker["workerid"].removeprefix("gw")
        session = pickle.loads(b64decode(worker["poolproof"]))
        name = worker["workerid"]
    else:
        session, name = _begin(config), "main"
    config.stash[_SESSION] = session
    recorder.open_rows(config, session.folder, name)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the session to an xdist worker."""
    session = node.config.stash.get(_SESSION, None)
    if session is not None:
        node.workerinput["poolproof"] = b64encode(pickle.dumps(session)).decode()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    session = metafunc.config.stash.get(_SESSION, None)
    if session is None:
        return
    if "block" in metafunc.fixturenames:
        (marker,) = metafunc.definition.iter_markers("aspect")
        chosen = [block for block in planned_blocks(metafunc.config, session) if aspect_of(block) == marker.args[0]]
        metafunc.parametrize("block", chosen, ids=lambda block: block.id)
    if "question" in metafunc.fixturenames:
        asked = [
            pytest.param(question, name, id=f"{name}-{question.id}")
            for name, survey in session.surveys.items()
            for question in given_questions(metafunc.config.getoption("case") or [], survey.product)
        ]
        metafunc.parametrize(("question", "backend_name"), asked)
    if "unsupported_cell" in metafunc.fixturenames:
        cells = [cell for cell in _chosen_cells(metafunc.config, session) if cell.unsupported]
        metafunc.parametrize("unsupported_cell", cells, ids=_cell_id)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a selection emptied: pytest would otherwise report one skipped item for each."""
    if _SESSION in config.stash:
        items[:] = [item for item in items if "NOTSET" not in item.name]


@pytest.fixture(scope="session")
def jury(request: pytest.FixtureRequest, rows: RowWriter) -> Iterator[Jury]:
    """The jury of this process."""
    config = request.config
    session = config.stash[_SESSION]
    worker = getattr(config, "workerinput", {})
    jury = Jury(
        session.folder,
        name=worker.get("workerid", "main"),
        waivers=session.waivers,
        environments={backend: survey.environment for backend, survey in session.surveys.items()},
        record=rows.append,
        timeout=config.getoption("case_timeout"),
        shrinks=not config.getoption("no_shrink"),
        already_judged=session.already_judged,
        most_evidence=max(1, MOST_EVIDENCE // worker.get("workercount", 1)),
    )
    yield jury
    jury.close()


@pytest.fixture
def examine(jury: Jury, rows: RowWriter, count_cases: Callable[[int, int], None]) -> Callable[[AnyBlock], None]:
    """Judge a block; the test fails with every failure's reproducer."""

    def examine_block(block: AnyBlock) -> None:
        tally = jury.judge(block)
        rows.finish_block(block.id)
        count_cases(tally.rows, len(tally.failures))
        if tally.failures:
            pytest.fail(tally.text(), pytrace=False)

    return examine_block


@pytest.fixture
def examine_one(jury: Jury, count_cases: Callable[[int, int], None]) -> Callable[[AnyQuestion, str], None]:
    """Judge a single question; the test fails with its reproducer, or skips with its reason."""

    def examine_question(question: AnyQuestion, backend: str) -> None:
        row = jury.judge_one(question, backend)
        count_cases(1, row["verdict"] in FAILED)
        if row["verdict"] in FAILED:
            pytest.fail(failure_text(row), pytrace=False)
        if row["verdict"] in SKIPPED:
            pytest.skip(row["reason"])

    return examine_question


@pytest.fixture
def note_unsupported(rows: RowWriter) -> Callable[[Cell], None]:
    """Put a cell that the backend does not have on record, and skip."""

    def note(cell: Cell) -> None:
        assert cell.unsupported is not None
        rows.append(
            {
                "backend": cell.backend,
                "operator": cell.operator.name,
                "dtype": cell.dtype,
                "index_dtype": cell.index_dtype,
                "aspect": "",
                **verdict(Verdict.NOT_SUPPORTED, cell.unsupported),
            }
        )
        pytest.skip(cell.unsupported)

    return note


def aspect_of(block: AnyBlock) -> str:
    return block.aspect if isinstance(block, ContractBlock) else block.aspect.id


def planned_blocks(config: pytest.Config, session: Session) -> list[AnyBlock]:
    """What the options ask for and an interrupted run has not finished; nothing when single cases were named."""
    return [block for block in _all_blocks(config, session) if block.id not in session.finished_blocks]


def _all_blocks(config: pytest.Config, session: Session) -> list[AnyBlock]:
    if config.getoption("case"):
        return []
    chosen, cells = _chosen_aspects(config), _chosen_cells(config, session)
    planned: list[AnyBlock] = list(blocks(cells, chosen, _plan(config), config.getoption("seed")))
    if contract_suite.ASPECT in (config.getoption("aspect") or [contract_suite.ASPECT]):
        for name, survey in session.surveys.items():
            if survey.product:
                planned += contract_suite.contract_blocks(name, survey.product, sorted(_operators(config)))
    return planned


def _mandatory(config: pytest.Config, session: Session) -> list[dict[str, Any]]:
    """The cells that the options ask for, with the number of cases that a complete run judges in each."""
    planned: Counter[tuple[tuple[str, str], ...]] = Counter()
    for name, surveyed in session.surveys.items():
        for question in given_questions(config.getoption("case") or [], surveyed.product):
            planned[("backend", name), ("aspect", question.aspect)] += 1
    for block in _all_blocks(config, session):
        for cell, count in cells_of(block):
            planned[tuple(cell.items())] += count
    return [dict(cell) | {"planned": count} for cell, count in planned.items()]


def cells_of(block: AnyBlock) -> Iterator[tuple[dict[str, str], int]]:
    """The mandatory cells that a block is a part of, with the number of its cases in each.

    A cell holds values of the columns that tell its rows apart from those of others.
    """
    if isinstance(block, ContractBlock):
        operator = block.api.removeprefix("aclnn")
        for clause, count in block.counts().items():
            yield _cell(block.backend, operator, "", "", block.aspect) | {"clause": clause}, count
    else:
        cell = block.cell
        yield _cell(cell.backend, cell.operator.name, cell.dtype, cell.index_dtype, block.aspect.id), block.count


def _cell(*values: str) -> dict[str, str]:
    return dict(zip(GROUP, values, strict=True))


def _begin(config: pytest.Config) -> Session:
    """Check the options, ask the backends about themselves and open the run."""
    try:
        check_lines(config.getoption("case") or [])
        waivers = _waivers(config)
        _operators(config)
        surveys = {name: survey(name) for name in dict.fromkeys(config.getoption("backend") or ["torch-cpu"])}
        folder = recorder.run_folder(config.getoption("report"), config.getoption("resume"))
    except (*_UNAVAILABLE, *_BAD_INPUT) as error:
        _stop(error.args[0])
    finished, already = recorder.what_is_done(folder)
    session = Session(folder, surveys, waivers, finished, already)
    mandatory = _mandatory(config, session)
    if not mandatory:
        _stop("nothing to judge: no backend has a cell that the options leave")
    recorder.begin(
        config,
        folder,
        {
            "plan": config.getoption("plan"),
            "seed": config.getoption("seed"),
            "arguments": list(config.invocation_params.args),
            "planned_cases": sum(block.count for block in planned_blocks(config, session)),
            "mandatory": mandatory,
            "backends": {name: survey.environment for name, survey in surveys.items()},
            "probes": _probes(surveys) if config.getoption("probe") else {},
        },
        waivers,
    )
    return session


def _probes(names: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Per backend what `poolproof.suites.probe` says about it."""
    return {name: [account.to_record() for account in all_accounts(name)] for name in names}


def _stop(reason: str) -> NoReturn:
    pytest.exit(reason, returncode=Overall.COULD_NOT_RUN)


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
            if all((folder / name).exists() for name in ("plugin.py", "test_case.py", "judging/judge.py")):
                _stop(
                    f"{folder} is a copy of the suite that is installed in {Path(__file__).parent}: "
                    "judge with pytest --pyargs poolproof.suites, or install the clone with pip install -e"
                )


def _cell_id(cell: Cell) -> str:
    return f"{cell.backend}-{cell.operator.name}-{cell.dtype}-{cell.index_dtype}"


def _plan(config: pytest.Config) -> Plan:
    plan = PLANS[config.getoption("plan")]
    count = config.getoption("cases")
    return plan if count is None else Plan(plan.name, count, plan.purpose)


def _chosen_aspects(config: pytest.Config) -> list[Aspect]:
    return [ASPECTS[name] for name in config.getoption("aspect") or ASPECTS if name in ASPECTS]


def _operators(config: pytest.Config) -> set[str]:
    return {find_operator(name).name for name in config.getoption("operator") or []}


def _chosen_cells(config: pytest.Config, session: Session) -> list[Cell]:
    if config.getoption("case"):
        return []
    operators, dtypes = _operators(config), config.getoption("dtype")
    return [
        cell
        for survey in session.surveys.values()
        for cell in survey.cells
        if (not operators or cell.operator.name in operators) and (not dtypes or cell.dtype in dtypes)
    ]


def _waivers(config: pytest.Config) -> Waivers:
    given = config.getoption("waivers") or []
    files = [] if "none" in given else shipped()
    files += [Path(name) for name in given if name != "none"]
    return Waivers([waiver for file in files for waiver in load(file)], date.today())
