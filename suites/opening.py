"""The opening of a session: its options become a selection, a folder and run.json.

The controlling process surveys the backends once; a `Session` holds what it learned.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from poolproof.backends.base import BackendUnavailable
from poolproof.backends.registry import UnknownBackend, canonical, prepare
from poolproof.references.contract.call import ContractError
from poolproof.references.operators import find_operator
from poolproof.reports import recorder
from poolproof.reports.rows.io_errors import describe
from poolproof.reports.rows.plugins import PluginKind, records_of
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import safe
from poolproof.reports.rows.verdicts import BadInput, Overall
from poolproof.reports.waivers import WaiverError, Waivers, check_terms
from poolproof.reports.waivers.plugins import choose
from poolproof.suites.cases.lists import formats_of_packages, read_lists
from poolproof.suites.isolation.survey import surveyed
from poolproof.suites.isolation.worker import Worker, say
from poolproof.suites.judging.budget import free_memory, parse_size, share
from poolproof.suites.options import budget_of, check_fleet, check_ranges
from poolproof.suites.plan.aspects import ASPECTS
from poolproof.suites.plan.lines import parse_line
from poolproof.suites.plan.plans import PLANS, Survey
from poolproof.suites.plan.selection import Selection, Shard
from poolproof.suites.run import time_budget
from poolproof.suites.run.time_budget import Budget

if TYPE_CHECKING:
    from poolproof.suites.fleet.ray_pool import RayPool

CANNOT_START = (BackendUnavailable, UnknownBackend, BadInput, ContractError, KeyError)
"""Errors that stop a run before it starts, each with a sentence that says why."""


@dataclass(frozen=True)
class Session:
    """The settings of a run; made by the controlling process, pickled to the workers."""

    folder: Path
    selection: Selection
    waivers: Waivers
    done: recorder.Done
    memory_budget: int
    budget: Budget | None

    def waive(self, row: Row) -> Row:
        return self.waivers.apply(row, self.selection.surveys[row["backend"]].environment)


def begin(config: pytest.Config) -> tuple[Session, Mapping[str, Worker], RayPool | None]:
    """Check the options, survey the backends and open the run.

    Return with the session who judges: workers with loaded backends, by name, if it is this process, or a fleet.
    """
    try:
        recorder.try_imports()
        check_ranges(config)
        check_fleet(config)
        spent = budget_of(config, time.monotonic() - time_budget.starting_seconds())
        given = config.getoption("memory_budget")
        budget = free_memory() if given is None else parse_size(given)
        share(budget, 1)
        for line in config.getoption("case") or ():
            parse_line(line)
        waivers, plugins = choose(config.getoption("waivers") or (), date.today())
        selection = _selection(config)
        surveys, loaded, pool = _survey_all(config)
        selection = replace(selection, surveys=surveys)
        check_clock(waivers, surveys)
        planned = {(group["backend"], group.get("dtype", "")): None for group in selection.mandatory()}
        if not planned:
            stop("nothing to judge: no backend has an operator and dtypes that the options leave")
        for name, dtype in planned:
            prepare(name, say, dtype)
        folder = recorder.run_folder(config.getoption("report"), config.getoption("resume"))
        done = recorder.finished_work(folder)
        plugins += formats_of_packages().records if config.getoption("case_list") else ()
        plugins += (plugin for survey in selection.surveys.values() for plugin in survey.plugins)
        plugins += records_of(PluginKind.BACKEND, selection.surveys)
        unique = dict.fromkeys(tuple(plugin.items()) for plugin in plugins)  # several processes load them
        record = _record(config, selection) | {"memory_budget": budget, "plugins": list(map(dict, unique))}
        record |= _open_budget(folder, selection, done, spent)
        recorder.begin(config, folder, record, waivers, _to_do(selection, done))
    except CANNOT_START as error:
        stop(error.args[0])
    except OSError as error:
        stop(describe(error))
    except KeyboardInterrupt:
        stop("interrupted before anything was asked")
    return Session(folder, selection, waivers, done, budget, spent), loaded, pool


def check_clock(waivers: Waivers, surveys: Mapping[str, Survey]) -> None:
    """Raise `WaiverError` if a waiver of these backends lasts too long from today; of others it is only said."""
    environments = {name: survey.environment for name, survey in surveys.items()}
    here = [waiver for waiver in waivers.all if any(waiver.concerns(*backend) for backend in environments.items())]
    check_terms(here, waivers.today)
    try:
        check_terms(waivers.all, waivers.today)
    except WaiverError as error:
        say(f"{error}: see to the clock, for poolproof verify will not believe the times of this run")


def _to_do(selection: Selection, done: recorder.Done) -> Counter[str]:
    """Count the cases left to judge, by aspect."""
    left: Counter[str] = Counter()
    for block in selection.blocks():
        if not block.is_done(done.blocks, done.recorded):
            left[block.aspect.id] += block.count
    return left


def _open_budget(folder: Path, selection: Selection, done: recorder.Done, budget: Budget | None) -> dict[str, Any]:
    """Return what run.json says of a budget that begins; without one, the whole plan is expected.

    `BadInput` if an earlier session went beyond the plan, and this one would not.
    """
    if not (budget is not None and budget.extends_plan) and time_budget.extension_counts(folder, selection.planned):
        raise BadInput(f"{folder} holds a run that went beyond its plan: go on with it by such a budget, as 10m+")
    if budget is None:
        time_budget.remove_journal(folder)
        return {}
    begun = {name for name, _ in done.cases}
    time_budget.take_whole(folder, (block for block in selection.blocks() if block.id in begun))
    seconds, took = recorder.spent(folder)
    until = time.time() + budget.until - time.monotonic()
    return {"budget": {"seconds": seconds + budget.seconds, "took": took, "until": until}}


def _record(config: pytest.Config, selection: Selection) -> dict[str, Any]:
    """Return what run.json says about the plan and the backends."""
    probes: dict[str, list[dict[str, Any]]] = {}
    if config.getoption("probe"):
        from poolproof.suites.probe.command import all_accounts

        probes = {name: [account.to_record() for account in all_accounts(name)] for name in selection.surveys}
    return {
        "plan": config.getoption("plan"),
        "seed": config.getoption("seed"),
        "arguments": list(config.invocation_params.args),
        "mandatory": selection.mandatory(),
        "plan_cases": selection.plan_cases(),
        "backends": {name: survey.environment for name, survey in selection.surveys.items()},
        "selection": selection.to_record(),
        "probes": probes,
    }


def stop(reason: str) -> NoReturn:
    pytest.exit(safe(reason), returncode=Overall.COULD_NOT_RUN)


def _selection(config: pytest.Config) -> Selection:
    """Read the selection from the options, before the backends are surveyed, which takes time."""
    option = config.getoption
    plan, cases = PLANS[option("plan")], option("cases")
    lines = (*(option("case") or ()), *(entry.to_json() for entry in read_lists(option("case_list") or ())))
    return Selection(
        {},
        plan if cases is None else replace(plan, cases=cases),
        option("seed"),
        tuple(option("aspect") or ASPECTS),
        tuple(find_operator(name).name for name in option("operator") or ()),
        tuple(option("dtype") or ()),
        lines,
        None if option("shard") is None else Shard.parse(option("shard")),
    )


def _survey_all(config: pytest.Config) -> tuple[dict[str, Survey], dict[str, Worker], RayPool | None]:
    """Survey the backends; return with the surveys who judges, as `begin` does."""
    option = config.getoption
    names = tuple(dict.fromkeys(map(canonical, option("backend") or ["torch-cpu"])))
    if option("ray") is not None:
        from poolproof.suites.fleet.ray_pool import RayPool, resource_of

        pool = RayPool(option("ray"), option("ray_resource") or resource_of(names), option("ray_workers"))
        config.add_cleanup(pool.close)
        return pool.survey(names), {}, pool
    surveys, loaded = {}, {}
    for name in names:
        surveys[name], worker = surveyed(name)
        if option("dist", "no") == "no":
            loaded[name] = worker
            config.add_cleanup(worker.close)
        else:
            worker.close()
    return surveys, loaded, None
