"""Commands beside a run: what is here, the content of a plan, one case again, and cases for other tools."""

from __future__ import annotations

import code
import sys
from argparse import ArgumentParser
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from poolproof.backends.base import BackendUnavailable
from poolproof.backends.emulator import library
from poolproof.backends.registry import BUILT_IN, UnknownBackend, names
from poolproof.references.contract.call import ContractError
from poolproof.references.operators import OPERATORS
from poolproof.reports.figures.coverage import factor_coverage, met_in_all
from poolproof.reports.figures.quantities import LARGEST_ERROR
from poolproof.reports.rows.environment import library_of
from poolproof.reports.rows.evidence import EvidenceError, call_lines, evidence_path, read_evidence
from poolproof.reports.rows.factors import Scope
from poolproof.reports.rows.failures import failure_text
from poolproof.reports.rows.io_errors import check_replaceable, replacing
from poolproof.reports.rows.meetings import TOGETHER, FactorCoverage
from poolproof.reports.rows.plugins import Plugin, PluginKind, installed, to_record
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import DEFAULT_FOLDER, read_run
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import FAILED, SKIPPED, BadInput, Verdict, gravest
from poolproof.reports.terminal.command_line import PATH, SECONDS, give_up
from poolproof.reports.terminal.painting import SafeConsole
from poolproof.reports.waivers.plugins import choose
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.completing import Completion, row_of
from poolproof.suites.cases.lists import export_rows, format_errors, format_named, formats_of_packages, read_lists
from poolproof.suites.isolation.environment import USUAL_TIMEOUT, set_import_folders
from poolproof.suites.isolation.survey import survey, surveys
from poolproof.suites.judging.budget import allow_free_memory
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.measure import plugged
from poolproof.suites.options import BACKEND, FORMAT, OneSentence, add_options, library_options, operator_option
from poolproof.suites.plan.aspects import ASPECTS, CASE_ASPECTS
from poolproof.suites.plan.lines import line_question, parse_line
from poolproof.suites.plan.plans import DTYPES, PLANS, Subject, Survey, blocks, scope_of
from poolproof.suites.run.repetition import attribute
from poolproof.suites.run.sandbox import Sandbox

_console = SafeConsole(width=None if sys.stdout.isatty() else 140, soft_wrap=True)


@click.command()
def backends() -> None:
    """List the backends and whether each can run here."""
    table = _table("backend", "here", "what it says")
    with _console.status("loading all backends"):
        for name, found in surveys(names()):
            if isinstance(found, Survey):
                table.add_row(name, Text("yes", style="green"), Text(_summary(found.environment)))
            else:
                table.add_row(name, Text("no", style="red"), Text(str(found)))
    _console.print(table)


def _summary(environment: Mapping[str, str]) -> str:
    """Describe an environment in one line, with one name for all libraries."""
    listed = ("library", "wheel", "abilities")  # that only the page of a run lists
    short = {key: value for key, value in environment.items() if key.partition(" ")[0] not in listed}
    library = library_of(environment)
    return ", ".join(f"{key} {value}" for key, value in (short | ({"library": library} if library else {})).items())


@click.command()
def plugins() -> None:
    """List what installed packages add, and whether it can be used here."""
    table = _table("plugin", "name", "package", "used", "if not, why")
    for records in LISTED.values():
        for record in records():
            used = Text("no", style="red") if record["fault"] else Text("yes", style="green")
            table.add_row(record["kind"], record["name"], record["package"], used, record["fault"])
    _console.print(table if table.row_count else "no package adds anything")


def _fault_of_backend(plugin: Plugin) -> str:
    if plugin.name in BUILT_IN:
        return "there is another backend of that name, which comes with the suite"
    ((_, found),) = surveys([plugin.name])
    return "" if isinstance(found, Survey) else str(found)


LISTED: Mapping[PluginKind, Callable[[], Iterable[Mapping[str, str]]]] = {
    PluginKind.BACKEND: lambda: [to_record(each, _fault_of_backend(each)) for each in installed(PluginKind.BACKEND)],
    PluginKind.WAIVERS: lambda: choose((), date.today())[1],
    PluginKind.STANDARD: lambda: plugged().records,
    PluginKind.CASE_LIST: lambda: formats_of_packages().records,
}
"""The function that makes the records, by kind of plugin."""


@click.command(name="list")
@library_options
@click.option("--backend", default="torch-cpu", show_default=True, type=BACKEND, help="Backend to plan for.")
@click.option("--plan", "plan_name", type=click.Choice(sorted(PLANS)), default="smoke", show_default=True)
def list_blocks(backend: str, plan_name: str) -> None:
    """Show what a plan would run on a backend, and what it would not and why."""
    surveyed = _survey_or_exit(backend)
    by_operator, by_aspect = Counter[str](), Counter[str]()
    for block in blocks(surveyed.subjects, ASPECTS.values(), PLANS[plan_name], seed=0):
        by_operator[block.subject.operator.name] += block.count
        by_aspect[block.aspect.id] += block.count
    _console.print(f"{by_aspect.total():,} cases of plan {plan_name} on {backend}", style="bold")
    table = _table("operator", "dtypes", "indices", counts="cases")
    for operator, count in by_operator.items():
        own = [each for each in surveyed.subjects if each.operator.name == operator and not each.unsupported]
        dtypes, indices = ({getattr(each, name): 0 for each in own} for name in ("dtype", "index_dtype"))
        table.add_row(operator, ", ".join(dtypes), ", ".join(indices), f"{count:,}")
    _console.print(table)
    table = _table("aspect", "what it claims", counts="cases")
    for aspect in ASPECTS.values():
        if by_aspect[aspect.id]:
            table.add_row(aspect.id, aspect.claim, f"{by_aspect[aspect.id]:,}")
    _console.print(table)
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for subject in surveyed.subjects:
        if subject.unsupported:
            reasons[subject.unsupported].append(subject.operator.name)
    for reason, names_left_out in reasons.items():
        pairs, operators = count_of(len(names_left_out), "pair"), ", ".join(dict.fromkeys(names_left_out))
        _console.print(f"not run, {pairs} of dtypes of {operators}: {reason}", style="dim")


def _table(*headings: str, counts: str = "") -> Table:
    """Make a plain table, with a last column of numbers where ``counts`` is its heading."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    if counts:
        table.add_column(counts, justify="right")
    return table


@click.command()
@click.argument("case")
@click.option(
    "--backend",
    "backend_names",
    multiple=True,
    default=["torch-cpu"],
    show_default=True,
    type=BACKEND,
    help="Backend to judge, repeatable.",
)
@library_options
@click.option(
    "--pythonpath",
    "folders",
    multiple=True,
    metavar="DIR",
    help="Folder to import a backend from that is named as module:attribute; repeatable.",
)
@click.option("--timeout", type=SECONDS, default=USUAL_TIMEOUT, show_default=True, help="Seconds the case may take.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Judge it so many times, each time first and alone in its process, and say how often it fails.",
)
@click.option(
    "--evidence",
    "folder",
    type=PATH,
    help="Folder for what a failure leaves behind: what came out, what was expected, what went in, and programs that "
    "judge it again and make the call without this suite.",
)
@click.option(
    "--interactive",
    is_flag=True,
    help="Go on at a prompt of Python where it fails, with got, low, high and what went in as arrays.",
)
def replay(
    case: str,
    backend_names: tuple[str, ...],
    folders: tuple[str, ...],
    timeout: float,
    repeat: int,
    folder: Path | None,
    interactive: bool,
) -> None:
    """Judge one CASE again: the line of JSON that a failure prints, a case or a low-level call."""
    if interactive and folder is None:
        folder = Path(click.get_current_context().with_resource(TemporaryDirectory()))
    allow_free_memory()
    set_import_folders(folders)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    verdicts = []
    for name in backend_names:
        answers = _answers(case, name, timeout, repeat, folder)
        failing = [rows for rows in answers if any(row["verdict"] in FAILED for row in rows)]
        for row in [*failing, *answers][0]:
            _print_row(row)
            if row["verdict"] in FAILED:
                _print_evidence(row, folder)
                if interactive and folder is not None:
                    _explore(evidence_path(folder, row["case_id"], name))
        if repeat > 1:
            _console.print(f"fails {len(failing)} of {repeat} on {name}")
        verdicts += [Verdict(row["verdict"]) for rows in answers for row in rows]
    sys.exit(gravest({verdict.overall: True for verdict in verdicts}))


def _explore(path: Path) -> None:
    """Open a prompt of Python with the arrays of evidence; nothing where a failure left none."""
    if not path.exists():
        return
    evidence = read_evidence(path)
    arrays: dict[str, Any] = {"np": np, **evidence.arrays}
    if "planes" in evidence.meta:
        arrays["planes"] = np.array(evidence.meta["planes"])
    names = ", ".join(f"{name} {array.shape}" for name, array in arrays.items() if name != "np" and array.ndim)
    code.interact(f"arrays: {names}\nnp.argwhere((got < low) | (got > high)) are the elements outside", local=arrays)


def _answers(case: str, backend: str, timeout: float, repeat: int, folder: Path | None) -> list[tuple[Row, ...]]:
    """Judge a line so many times.

    Return each time its row, that of an auxiliary call blamed instead, and those of deaths between calls.
    """
    try:
        parse_line(case)
        with TemporaryDirectory() as scratch, closing(Sandbox(backend, Path(scratch), "replay", timeout)) as sandbox:
            question = line_question(case, sandbox.start().product)
            if isinstance(question, CaseQuestion):  # what the standards of others say is not printed, and costs most
                question = replace(question, aspect=replace(question.aspect, standards=False))
            if folder:
                question = question.with_evidence_dir(EvidenceFolder(folder, backend))
            return [
                (*attribute(question, sandbox.judge_alone(question), sandbox.judge_alone), *sandbox.unplanned)
                for _ in range(repeat)
            ]
    except (BackendUnavailable, UnknownBackend, ContractError) as error:
        give_up(str(error))


def _print_row(row: Row) -> None:
    if row["verdict"] in FAILED:
        _console.print(Text(failure_text(row), style="red"))
        return
    style = "yellow" if row["verdict"] in SKIPPED else "green"
    reason = f": {row['reason']}" if row["reason"] else ""
    checks = ", ".join(row.get("checks_judged") or []) or "nothing"
    asked = f"{row['backend']} {row['operator']}, case {row['case_id']}"
    _console.print(Text(f"{row['verdict']}{reason} ({asked})", style=style))
    _console.print(f"judged: {checks}")
    if row.get("k_error"):
        error, bound = (np.nanmax(row[name]) for name in ("k_error", "k_bound"))
        worst = f"{LARGEST_ERROR.name} {error:.3g} {LARGEST_ERROR.unit} (at most {bound:.3g})"
        _console.print(f"{worst}, {row['n_bits_owed']} of {row['n']} cells have one admissible value, {row['model']}")


def _print_evidence(row: Row, folder: Path | None) -> None:
    """Name the evidence that was left now, or by the run in the default folder, and what to do with it."""
    there = folder or DEFAULT_FOLDER
    path = evidence_path(there, row["case_id"], row["backend"])
    if path.exists():
        _console.print(f"evidence, judged again by: python {path.with_name('rejudge.py')} {path}", style="dim")
        with suppress(EvidenceError):  # of a run in the default folder
            if "case" in read_evidence(path).meta:
                _console.print("its call is too large to be kept there: the line above makes it", style="dim")
                return
        named = (Path(word) for option, word in pairwise(row["given"] or ()) if option == "--aclnn-library")
        libraries = [library()] if row["backend"].startswith("emulator-") else [*filter(Path.is_file, named)]
        calls = call_lines(str(path.with_name("call.py")), str(path), row, libraries)
        told = ("the call, without poolproof", "where it is then, if gdb is there")
        for what, line in zip(told, calls, strict=False):
            _console.print(f"{what}: {line}", style="dim")
    else:
        hint = "this kind of failure leaves none" if folder else "add --evidence DIR to keep some"
        _console.print(f"no evidence: {hint}", style="dim")


_PLAN_OPTIONS = (
    click.option(
        "--backend",
        default="emulator-a2",
        show_default=True,
        type=BACKEND,
        help="Backend whose plan it is: what it has is drawn.",
    ),
    library_options,
    click.option("--plan", "plan_name", type=click.Choice(sorted(PLANS)), default="smoke", show_default=True),
    click.option("--cases", "number", type=click.IntRange(1), help="Per operator, dtypes and aspect, as for pytest."),
    click.option("--seed", type=int, default=0, show_default=True),
    operator_option,
    click.option("--dtype", "dtypes", multiple=True, type=click.Choice(DTYPES), help="Only this dtype, repeatable."),
    click.option(
        "--aspect",
        "aspects",
        multiple=True,
        type=click.Choice(sorted(CASE_ASPECTS)),
        help="Only this aspect, repeatable.",
    ),
)


@dataclass(frozen=True)
class _PlanChoice:
    """The values of `_plan_options`, by which a plan's cases on a backend are chosen."""

    backend: str
    plan_name: str
    number: int | None
    seed: int
    operators: tuple[str, ...]
    dtypes: tuple[str, ...]
    aspects: tuple[str, ...]

    def subjects(self) -> list[Subject]:
        found = _survey_or_exit(self.backend).subjects
        return [subject for subject in found if self.has(subject.operator.name, subject.dtype)]

    def has(self, operator: str, dtype: str) -> bool:
        return operator in (self.operators or OPERATORS) and dtype in (self.dtypes or DTYPES)

    def cases(self, subjects: Sequence[Subject]) -> list[Case]:
        plan, aspects = PLANS[self.plan_name], [CASE_ASPECTS[name] for name in self.aspects or CASE_ASPECTS]
        plan = plan if self.number is None else replace(plan, cases=self.number)
        planned = blocks(subjects, aspects, plan, self.seed)
        return [question.case for block in planned for question in block.questions()]


def _plan_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose the cases of a plan; their values make a `_PlanChoice`."""
    return reduce(lambda added, option: option(added), reversed(_PLAN_OPTIONS), command)


@click.command()
@click.option(
    "--format",
    "name",
    required=True,
    type=FORMAT,
    help="What to write: atk, json, ttk, or a format that an installed package brings.",
)
@click.option("-o", "--output", "path", type=PATH, required=True, help="File to write.")
@_plan_options
@click.option("--case", "lines", multiple=True, metavar="JSON", help="This case instead of a plan, repeatable.")
@click.option("--case-list", "lists", multiple=True, type=PATH, metavar="FILE", help="Rows of this list, repeatable.")
def export(name: str, path: Path, lines: tuple[str, ...], lists: tuple[Path, ...], **plan_values: Any) -> None:
    """Write cases as a list for another tool, those that its format has words for.

    Read again by --case-list, each row is the case that was written, with its id. The other cases are counted with the
    reason.
    """
    check_replaceable(path)
    chosen, plan = format_named(name), _PlanChoice(**plan_values)
    cases = list(_given_cases(lines, lists)) if lines or lists else plan.cases(plan.subjects())
    with format_errors(name):
        rows, left_out = export_rows(chosen, cases)
        text = chosen.document(rows) if rows else ""
    for reason, count in left_out.most_common():
        click.echo(f"{count:>8,} left out: {reason}")
    if not rows:
        raise BadInput(f"none of {count_of(len(cases), 'case')} can be written as {name}: nothing was written")
    with replacing(path) as aside:
        aside.write_text(text, encoding="utf-8")
    click.echo(f"{len(rows):,} of {len(cases):,} cases written to {path}")


_CallsOf = tuple[str, str, str]
"""Backend or list, operator and dtype."""


def _show_coverage(covered: Mapping[_CallsOf, FactorCoverage], missing: int) -> None:
    """Print what is visited, and so many pairs that are not."""
    table = _table("of", "operator", "dtype", "pairs visited", "triples visited", counts="calls")
    for key, own in covered.items():
        table.add_row(*key, *(str(own.meetings(size)) for size in TOGETHER), f"{own.calls:,}")
    _console.print(table)
    _console.print(met_in_all(covered))
    for key, own in covered.items() if missing else ():
        _console.print(f"not visited by {' '.join(key)}:", style="bold")
        for pair in islice(own.meetings(2).missing(), missing):
            _console.print(f"  {pair}")


def _case_coverage(
    name: str, cases: Iterable[Case], subjects: Sequence[Subject] = ()
) -> dict[_CallsOf, FactorCoverage]:
    """Return what cases visit of the calls of these subjects; of all calls where there are none."""
    covered: dict[_CallsOf, FactorCoverage] = {}
    for case in cases:
        key = name, case.operator, case.dtype
        if key not in covered:
            scopes = (scope_of(each) for each in subjects if (each.operator.name, each.dtype) == key[1:])
            covered[key] = FactorCoverage(next(scopes, Scope(case.api, case.api.indices.dtypes)))
        covered[key].add(row_of(case))
    return covered


@click.command()
@click.argument("given", nargs=-1, type=PATH, metavar="[REPORT | LIST]...")
@_plan_options
@click.option("--missing", type=click.IntRange(0), default=0, help="Name so many pairs that no call visits.")
@click.option("--complete", "output", type=PATH, help="Write cases that visit them to this file, for --case-list.")
def coverage(given: tuple[Path, ...], missing: int, output: Path | None, **plan_values: Any) -> None:
    """Tell which classes of the factors that kernels branch on meet in a plan, or in a REPORT's calls or a LIST's rows.

    Counts pairs of all factors and triples of those that matter most, of those that can be: for a plan on its backend,
    for a run on its backends, for a list anywhere.
    """
    if output:
        check_replaceable(output)
    plan = _PlanChoice(**plan_values)
    covered: dict[_CallsOf, FactorCoverage] = {}
    for report in filter(Path.is_dir, given):
        covered |= factor_coverage(report, read_run(report))
    lists = [path for path in given if not path.is_dir()]
    if not given:
        subjects = plan.subjects()
        covered |= _case_coverage(plan.backend, plan.cases(subjects), subjects)
    elif lists:
        entries = read_lists(lists)
        cases = [entry.case for entry in entries if entry.case]
        covered |= _case_coverage(" ".join(path.name for path in lists), cases)
        if unread := [entry.fault for entry in entries if not entry.case]:
            rows = f"{len(unread):,} of {len(entries):,} rows"
            _console.print(f"{rows} are no cases, the first: {unread[0]}", style="yellow")
    covered = {key: own for key, own in covered.items() if plan.has(*key[1:])}
    if not covered:
        raise BadInput("no call of these operators and dtypes has classes to count")
    _show_coverage(covered, missing)
    if output:
        completions = (Completion(own, key[2], plan.seed) for key, own in covered.items())
        lines = [case.to_json() for each in completions for case in each.cases(2)]
        with replacing(output) as aside:
            aside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        _console.print(f"{len(lines):,} cases written to {output}: with them, {met_in_all(covered)}")


def _given_cases(lines: Iterable[str], lists: Sequence[Path]) -> Iterator[Case]:
    """Yield the cases of lines of JSON and of lists; `BadInput` at the first line or row that is not a case."""
    yield from map(Case.from_json, lines)
    for entry in read_lists(lists):
        if entry.case is None:
            raise BadInput(entry.fault)
        yield entry.case


_PYTESTS = "Options of pytest serve too: -n N for N processes, -k EXPRESSION for some blocks; pytest --help has all."


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def run(options: tuple[str, ...]) -> None:
    """Judge a plan, with the OPTIONS of pytest --pyargs poolproof.suites."""
    import pytest

    if not {"-h", "--help"}.isdisjoint(options):
        parser = ArgumentParser(usage="poolproof run [OPTION...]", epilog=_PYTESTS)
        add_options(lambda title: parser.add_argument_group(title).add_argument)
        click.echo(parser.format_help(), nl=False)
        return
    sys.exit(pytest.main(["--pyargs", "poolproof.suites", *options], [OneSentence()]))


def _survey_or_exit(name: str) -> Survey:
    try:
        return survey(name)
    except (BackendUnavailable, UnknownBackend) as error:
        give_up(str(error))
