"""The options of a run, for pytest and for the commands that share them, the checks of their values, and `run`."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
import pytest
from click.shell_completion import CompletionItem

from poolproof.backends.registry import KERNELS, canonical, names
from poolproof.references.operators import OPERATORS, find_operator
from poolproof.reports.ci import SERVICES
from poolproof.reports.recorder import RUN_ARGUMENTS
from poolproof.reports.rows.verdicts import BadInput, Overall
from poolproof.reports.terminal.command_line import MAX_SECONDS, give_up, refused_value
from poolproof.suites.isolation.environment import USUAL_TIMEOUT, set_kernels, set_libraries
from poolproof.suites.parts import part
from poolproof.suites.plan.aspects import ASPECTS
from poolproof.suites.plan.plans import DTYPES, MOST_CASES, PLANS, Plan, Survey
from poolproof.suites.plan.selection import Selection, Shard
from poolproof.suites.run.time_budget import Budget, parse_time, slowness

USUAL_DIAGNOSIS = 30.0
"""Seconds for further cases about one failure cluster."""

_UNKNOWN = "unrecognized arguments: "

MOST_WORKERS = 1_000
"""Processes of a session: more is a typing mistake, which would take all memory."""

_Command = TypeVar("_Command", bound=Callable[..., object])


def _named(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("a path is needed, not an empty text")
    if text.encode(errors="ignore").decode() != text:  # Arrow opens no such path
        raise argparse.ArgumentTypeError(f"{text!r} holds bytes that are no text in UTF-8")
    return Path(text)


def _folder(text: str) -> str:
    if not os.path.isdir(text):  # noqa: PTH112, Path.is_dir raises for a name that is too long
        raise argparse.ArgumentTypeError(f"{text!r} is no folder")
    return text


_one: Callable[..., dict[str, Any]] = dict
"""An option with one value."""

_many: Callable[..., dict[str, Any]] = partial(dict, action="append")
"""A repeatable option."""

_flag: Callable[..., dict[str, Any]] = partial(dict, action="store_true")
"""An option without a value."""

OPTIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "cases to judge": {
        "--backend": _many(
            metavar="NAME",
            help=f"implementation under test, repeatable: {', '.join(names())}, "
            f"torch:DEVICE, your own as module:attribute, or {KERNELS}KERNEL.toml, the manifest of a kernel in "
            "Ascend C (default: torch-cpu)",
        ),
        "--plan": _one(
            choices=sorted(PLANS),
            default="smoke",
            help="how much to run: " + "; ".join(f"{plan.name}: {plan.purpose}" for plan in PLANS.values()),
        ),
        "--operator": _many(metavar="NAME", help="only this operator, repeatable; aclnn and aten names work too"),
        "--dtype": _many(choices=DTYPES, help="only this dtype, repeatable"),
        "--aspect": _many(choices=sorted(ASPECTS), help="only this aspect, repeatable"),
        "--cases": _one(
            type=int, metavar="N", help="cases per operator, dtypes and aspect, instead of the plan's number"
        ),
        "--seed": _one(
            type=int,
            default=0,
            help="everything drawn derives from it; the same plan and seed give the same cases anywhere (default: 0)",
        ),
        "--case": _many(
            metavar="JSON",
            help="judge this one case instead of a plan, repeatable; takes the line that a failure prints",
        ),
        "--case-list": _many(
            type=Path,
            metavar="FILE",
            help="judge the rows of this case list instead of a plan, repeatable: ATK's JSON, TTK's CSV or a "
            "case in each line; docs/reference/case.md says how rows are completed",
        ),
        "--shard": _one(
            metavar="I/N",
            help="judge the I-th of N parts of the plan, for N machines; the parts take about the same time, and "
            "poolproof merge joins them to one run",
        ),
    },
    "time and memory": {
        "--budget": _one(
            metavar="TIME",
            help="time limit of the session (90s, 10m, 2h): it runs the first cases of each block, then more of each, "
            "round by round; with a + (8h+) it continues with further seeds when the plan is done; with --resume it "
            "is the time for more of an earlier run",
        ),
        "--case-timeout": _one(
            type=float,
            default=USUAL_TIMEOUT,
            metavar="SECONDS",
            help="how long one call may take before it counts as hung (default: 60)",
        ),
        "--memory-budget": _one(
            metavar="SIZE",
            help="memory limit of the run, such as 8GiB, shared by its workers: larger cases are not run, and are "
            "counted (default: the free memory when the run begins)",
        ),
        "--diagnose": _one(
            type=float,
            default=USUAL_DIAGNOSIS,
            metavar="SECONDS",
            help="time to judge further cases for each cause at the end of a run that violates, to narrow down its "
            f"condition (default: {USUAL_DIAGNOSIS:g}, 0: none; never more than the rest of a --budget)",
        ),
        "--keep-going": _flag(help="judge all cases, even if the first ten end in the same error of the adapter"),
        "--no-search": _flag(help="judge only the plan: Hypothesis does not search for failures and errors beyond it"),
        "--no-shrink": _flag(help="do not look for a smaller case when one fails"),
    },
    "results": {
        "--report": _one(
            type=_named,
            metavar="DIR",
            help="folder for rows, evidence and page (default: poolproof-report, replaced by the next run)",
        ),
        "--hypothesis-database": _one(
            type=Path,
            metavar="DIR",
            help="folder of the failures that searches found; the next run judges them first (default: "
            ".hypothesis/examples beside the report)",
        ),
        "--resume": _flag(help="continue the interrupted run in the --report folder"),
        "--waivers": _many(
            metavar="FILE",
            help="TOML file of accepted deviations, repeatable; 'none' leaves out those of the suite and of plugins",
        ),
        "--probe": _flag(
            help="first find out how each backend adds and rounds, and report differences from its declaration"
        ),
        "--strict-waivers": _flag(
            help="the run violates if a waiver has expired, matches no case or is no longer needed"
        ),
        "--ci": _one(
            choices=("auto", *SERVICES),
            default="auto",
            help="the CI service to write annotations and a job summary for (default: the one this runs in)",
        ),
    },
    "location of implementations": {
        "--aclnn-library": _many(
            metavar="PATH",
            help="for --backend aclnn: a library file, or a folder with libraries, repeatable; overrides the variables "
            "of CANN",
        ),
        "--sources": _one(
            metavar="DIR",
            type=_folder,
            help="for --backend ascendc:...: the folder of sources, such as a checkout of ops-nn (default: this "
            "folder)",
        ),
        "--model": _one(
            choices=("cann",),
            help="for --backend ascendc:...: cann takes the CPU library of an installed CANN, not poolproof's model",
        ),
        "--ray": _one(
            metavar="ADDRESS",
            help="judge on the devices of the Ray cluster at this address; auto: the one that Ray finds, or one "
            "of this machine",
        ),
        "--ray-resource": _one(
            metavar="NAME", help="Ray's name of a device (default: NPU, GPU or CPU, by the backend)"
        ),
        "--ray-workers": _one(type=int, metavar="N", help="judge on N devices at most (default: all)"),
    },
}
"""The options of a run in groups: their titles, names, and arguments for argparse."""


def add_options(group: Callable[[str], Callable[..., object]]) -> None:
    """Add all options; ``group`` gives for the title of a group what adds an option to it."""
    for title, options in OPTIONS.items():
        add = group(title)
        for name, about in options.items():
            add(name, **about)


def run_options(*names: str, **changes: Mapping[str, Any]) -> Callable[[_Command], _Command]:
    """Return what adds options of a run to a command of click.

    ``changes`` are parameters of `click.option` that are otherwise there, by the parameter of the command.
    """

    def add(command: _Command) -> _Command:
        for name in reversed(names):
            (about,) = (options[name] for options in OPTIONS.values() if name in options)
            given = {key: about[key] for key in ("help", "metavar", "default", "type") if key in about}
            if "choices" in about:
                given["type"] = click.Choice(about["choices"])
            own = changes.get(name.strip("-").replace("-", "_"), {})
            given = {**given, "multiple": about.get("action") == "append", **_OF_CLICK.get(name, {}), **own}
            command = click.option(name, **given)(command)
        return command

    return add


class OneSentence:
    """A plugin of pytest that says what its parser refuses in one sentence, in place of a page on how it is used."""

    @pytest.hookimpl(wrapper=True)
    def pytest_cmdline_parse(self) -> Generator[None, pytest.Config, pytest.Config]:
        try:
            return (yield)
        except pytest.UsageError as error:
            give_up(_refused(str(error)), pytest.ExitCode.USAGE_ERROR)
        except ValueError as error:
            how = "if a conftest.py of this folder adds options of these names, leave it out by --noconftest"
            give_up(f"{error}; {how}", pytest.ExitCode.USAGE_ERROR)


_PYTESTS = "Options of pytest serve too: -n N for N processes, -k EXPRESSION for some blocks; pytest --help has all."


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def run(options: tuple[str, ...]) -> None:
    """Judge a plan, with the OPTIONS of pytest --pyargs poolproof.suites."""
    if not {"-h", "--help"}.isdisjoint(options):
        parser = argparse.ArgumentParser(usage="poolproof run [OPTION...]", epilog=_PYTESTS)
        add_options(lambda title: parser.add_argument_group(title).add_argument)
        click.echo(parser.format_help(), nl=False)
        return
    status = pytest.main([*RUN_ARGUMENTS, *options], [OneSentence()])
    sys.exit(Overall.COULD_NOT_RUN if status == pytest.ExitCode.USAGE_ERROR else status)


def _refused(usage: str) -> str:
    """Return what pytest's parser found, with the nearest of our options for one that there is not."""
    found = usage.partition("error: ")[2].partition("\n")[0] or usage
    words = found.removeprefix(_UNKNOWN).split()
    if not found.startswith(_UNKNOWN):
        return refused_value(found)
    option = next((word for word in words if word.startswith("-")), words[0]).partition("=")[0]
    ours: list[str] = []
    add_options(lambda _: lambda name, **_about: ours.append(name))
    near = difflib.get_close_matches(option, ours, 1)
    return f"no such option: {option}; {f'the nearest is {near[0]}' if near else '--help lists all'}"


def budget_of(config: pytest.Config, now: float) -> Budget | None:
    """Return the budget of a session that begins ``now``, None without one; `BadInput` for an invalid one."""
    if (budget := config.getoption("budget")) is None:
        return None
    for option in ("case", "case_list"):
        if config.getoption(option):
            cases = f"the cases of --{option.replace('_', '-')}"
            raise BadInput(f"--budget {budget}: a time is spent on a plan, not on {cases}")
    return Budget(parse_time(budget.removesuffix("+")), now, budget.endswith("+"), slowness())


def check_fleet(config: pytest.Config) -> None:
    """Raise `BadInput` for options that do not go with a fleet."""
    address, workers = config.getoption("ray"), config.getoption("ray_workers")
    if workers is not None and workers < 1:
        raise BadInput(f"--ray-workers {workers}: a fleet needs one at least")
    if address is None:
        return
    if config.getoption("dist", "no") != "no":
        raise BadInput(f"--ray {address} takes the place of -n: name --ray-workers instead")
    if config.getoption("budget"):
        raise BadInput(f"--ray {address}: --budget is for the processes of one machine: take a --shard")


def check_ranges(config: pytest.Config) -> None:
    """Raise `BadInput` for an option with an invalid value."""
    timeout = config.getoption("case_timeout")
    diagnosis, workers = config.getoption("diagnose"), config.getoption("numprocesses", None)
    if isinstance(workers, int) and workers > MOST_WORKERS:
        raise BadInput(f"-n {workers}: no machine judges with more than {MOST_WORKERS:,} processes; take -n auto")
    if not 0.0 <= diagnosis <= MAX_SECONDS:
        raise BadInput(f"--diagnose {diagnosis:g}: a number of seconds is needed, from 0 to {MAX_SECONDS:,.0f}")
    if not 0.0 < timeout <= MAX_SECONDS:
        needed = f"a number of seconds above 0, and at most {MAX_SECONDS:,.0f}"
        raise BadInput(f"--case-timeout {timeout:g}: a case needs {needed}")


def _take_sources(_context: click.Context, _option: click.Parameter, value: str | None) -> None:
    try:
        set_kernels(None if value is None else _folder(value))
    except argparse.ArgumentTypeError as error:
        raise click.BadParameter(str(error)) from None


class KnownName(click.ParamType):
    """A name, completed to one that is ``known``; any may be given, and is converted to how it is ``spelled``."""

    name = "name"

    def __init__(self, known: Callable[[], Iterable[str]], spelled: Callable[[str], str] = str) -> None:
        self._known, self._spelled = known, spelled

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return self._spelled(value)
        except KeyError as error:
            self.fail(error.args[0], param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        return [CompletionItem(name) for name in self._known() if name.startswith(incomplete)]


BACKEND = KnownName(names, canonical)

_OF_CLICK: Mapping[str, Mapping[str, Any]] = {
    "--backend": {"type": BACKEND},
    "--operator": {"type": KnownName(lambda: OPERATORS, lambda name: find_operator(name).name)},
    "--sources": {"type": str, "callback": _take_sources, "expose_value": False},
    "--model": {"callback": lambda *given: set_kernels(model=given[2]), "expose_value": False},
    "--aclnn-library": {"callback": lambda *given: set_libraries(given[2]), "expose_value": False},
}
"""Parameters of `click.option` that argparse has no words for: completion, and what an option does by itself."""

library_options = run_options("--aclnn-library", "--sources", "--model")

PLAN_OPTIONS = ("--plan", "--cases", "--seed", "--operator", "--dtype", "--aspect")
"""The options that choose the cases of a plan, with --backend."""


def plan_of(name: str, cases: int | None) -> Plan:
    """Return a plan with so many cases of each aspect, or with its own number; `BadInput` for an invalid number."""
    if cases is not None and not 1 <= cases <= MOST_CASES:
        raise BadInput(f"--cases {cases}: a plan needs 1 to {MOST_CASES:,} cases per operator, dtypes and aspect")
    return PLANS[name] if cases is None else replace(PLANS[name], cases=cases)


def selection_of(option: Callable[[str], Any], surveys: Mapping[str, Survey] | None = None) -> Selection:
    """Read a selection from the values of options; `BadInput` or KeyError says which is invalid."""
    lines = [*(option("case") or ())]
    if lists := option("case_list"):
        lines += (entry.to_json() for entry in part("poolproof.suites.cases.lists:read_lists")(lists))
    return Selection(
        surveys or {},
        plan_of(option("plan"), option("cases")),
        option("seed"),
        tuple(option("aspect") or ASPECTS),
        tuple(find_operator(name).name for name in option("operator") or ()),
        tuple(option("dtype") or ()),
        tuple(lines),
        None if option("shard") is None else Shard.parse(option("shard")),
    )
