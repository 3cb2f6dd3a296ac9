"""The opening of a session: its options become a selection, a folder and run.json.

The controlling process surveys the backends once; a `Session` has the result.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

from poolproof.backends.base import BackendUnavailable, UnknownBackend
from poolproof.backends.registry import canonical, check_name, prepare
from poolproof.references.contract.call import ContractError
from poolproof.reports.recorder import RunFolder, finished_work, try_imports
from poolproof.reports.rows.io_errors import describe, memory_remedy
from poolproof.reports.rows.records import Done
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import safe
from poolproof.reports.rows.verdicts import BadInput, Overall
from poolproof.reports.waivers import WaiverError, Waivers, check_terms, chosen
from poolproof.suites.isolation.survey import surveyed
from poolproof.suites.isolation.worker import Worker, say
from poolproof.suites.judging.budget import free_memory, parse_size, share
from poolproof.suites.options import budget_of, check_fleet, check_ranges, selection_of
from poolproof.suites.parts import part
from poolproof.suites.plan.blocks import Block
from poolproof.suites.plan.lines import parse_line
from poolproof.suites.plan.plans import Survey
from poolproof.suites.plan.selection import Selection
from poolproof.suites.run.time_budget import Budget, starting_seconds

CANNOT_START = (BackendUnavailable, UnknownBackend, BadInput, ContractError, KeyError)
"""Errors that stop a run before it starts; their text is the reason."""


@dataclass(frozen=True)
class Session:
    """The settings of a run; the controlling process makes them, and pickles them for the workers."""

    folder: Path
    selection: Selection
    waivers: Waivers
    done: Done
    memory_budget: int
    budget: Budget | None

    def to_do(self) -> list[Block]:
        """Return the blocks that are left to judge."""
        return [block for block in self.selection.blocks() if not block.is_done(self.done)]

    def waive(self, row: Row) -> Row:
        return self.waivers.apply(row, self.selection.surveys[row["backend"]].environment)


class Begun(NamedTuple):
    """A session with the folder of its run, and the judges: ``loaded`` workers of this process, or a fleet."""

    session: Session
    loaded: Mapping[str, Worker]
    pool: Any
    """A fleet, `RayPool`, or None."""
    folder: RunFolder


def begin(config: pytest.Config) -> Begun:
    """Check the options, survey the backends and open the run."""
    try:
        check_ranges(config)
        check_fleet(config)
        spent = budget_of(config, time.monotonic() - starting_seconds())
        given = config.getoption("memory_budget")
        budget = free_memory() if given is None else parse_size(given)
        share(budget, 1)
        for line in config.getoption("case") or ():
            parse_line(line)
        waivers = chosen(config.getoption("waivers") or (), date.today())
        selection = selection_of(config.getoption)
        surveys, loaded, pool = _survey_all(config)
        selection = replace(selection, surveys=surveys)
        check_clock(waivers, surveys)
        planned = {(group["backend"], group.get("dtype", "")): None for group in selection.mandatory()}
        if not planned:
            stop("nothing to judge: no backend has an operator and dtypes that the options leave")
        for name, dtype in planned:
            prepare(name, say, dtype)
        folder = RunFolder(config.getoption("report"), config.getoption("resume"))
        if folder.begins_anew:
            say(f"{folder.path} has nothing to resume, for a session ended before it began: this one begins anew")
        done = finished_work(folder.path)
        record = _record(config, selection) | {"memory_budget": budget} | _budget_record(folder, spent)
        folder.begin(record, waivers, config.getoption("strict_waivers"))
    except CANNOT_START as error:
        stop(error.args[0])
    except OSError as error:
        stop(describe(error))
    except MemoryError:
        stop(f"memory is used up before the first case; {memory_remedy() or 'free some'}")
    except KeyboardInterrupt:
        stop("interrupted before the first case")
    return Begun(Session(folder.path, selection, waivers, done, budget, spent), loaded, pool, folder)


def check_clock(waivers: Waivers, surveys: Mapping[str, Survey]) -> None:
    """Raise `WaiverError` if a waiver of these backends lasts too long from today; only print it for others."""
    environments = {name: survey.environment for name, survey in surveys.items()}
    here = [waiver for waiver in waivers.all if any(waiver.concerns(*backend) for backend in environments.items())]
    check_terms(here, waivers.today)
    try:
        check_terms(waivers.all, waivers.today)
    except WaiverError as error:
        say(f"{error}: see to the clock, for poolproof verify will not believe the times of this run")


def _budget_record(folder: RunFolder, budget: Budget | None) -> dict[str, Any]:
    """Return the record of a budget for run.json; empty without one."""
    if budget is None:
        return {}
    seconds, took = folder.spent()
    until = time.time() + budget.until - time.monotonic()
    return {"budget": {"seconds": seconds + budget.seconds, "took": took, "until": until}}


def _record(config: pytest.Config, selection: Selection) -> dict[str, Any]:
    """Return the record of the plan and the backends for run.json."""
    probes: dict[str, list[dict[str, Any]]] = {}
    if config.getoption("probe"):
        all_accounts = part("poolproof.suites.probe.command:all_accounts")
        probes = {name: [account.to_record() for account in all_accounts(name)] for name in selection.surveys}
    return {
        "plan": config.getoption("plan"),
        "seed": config.getoption("seed"),
        "arguments": list(config.invocation_params.args),
        "mandatory": selection.mandatory(),
        "backends": {name: survey.environment for name, survey in selection.surveys.items()},
        "selection": selection.to_record(),
        "probes": probes,
    }


def stop(reason: str) -> NoReturn:
    """End the session. Pytest prints the exception's name before the reason: the prefix of all our errors."""
    raise type("poolproof", (pytest.exit.Exception,), {})(safe(reason), returncode=Overall.COULD_NOT_RUN)


def _survey_all(config: pytest.Config) -> tuple[dict[str, Survey], dict[str, Worker], Any]:
    """Survey the backends; return the surveys, and the judges as in `Begun`."""
    option = config.getoption
    names = tuple(dict.fromkeys(map(canonical, option("backend") or ["torch-cpu"])))
    if option("ray") is not None:
        try_imports()
        pool = part("poolproof.suites.fleet.ray_pool:pool_of")(
            names, *map(option, ("ray", "ray_resource", "ray_workers"))
        )
        config.add_cleanup(pool.close)
        return pool.survey(names), {}, pool
    surveys, loaded = {}, {}
    for name in names:
        check_name(name)
        worker = Worker(name)
        config.add_cleanup(worker.close)
        worker.begin_loading()
        try_imports()  # while the backend loads
        surveys[name], _ = surveyed(name, worker)
        if option("dist", "no") == "no":
            loaded[name] = worker
        else:
            worker.close()
    return surveys, loaded, None
