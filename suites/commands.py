"""Commands beside a run: what is here, the content of a plan, one case again, and cases for other tools."""

from __future__ import annotations

import code
import os
import shlex
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import pyarrow.compute as pc
from rich import box
from rich.table import Table
from rich.text import Text

from poolproof.backends.base import BackendUnavailable, UnknownBackend
from poolproof.backends.building import cache_folder
from poolproof.backends.registry import names
from poolproof.references.contract.call import ContractError
from poolproof.references.operators import OPERATORS
from poolproof.references.optional import optional
from poolproof.references.sequences import FORMS
from poolproof.reports.figures.coverage import factor_coverage, met_in_all
from poolproof.reports.figures.quantities import LARGEST_ERROR
from poolproof.reports.rows.environment import library_of
from poolproof.reports.rows.evidence import EvidenceError, call_lines, evidence_path, read_evidence
from poolproof.reports.rows.factors import Scope
from poolproof.reports.rows.failures import failure_text, replay_line
from poolproof.reports.rows.io_errors import check_replaceable, replacing
from poolproof.reports.rows.meetings import TOGETHER, FactorCoverage
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import DEFAULT_FOLDER, read_rows, read_run
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import FAILED, SKIPPED, BadInput, Verdict, gravest
from poolproof.reports.terminal.command_line import PATH, SECONDS, give_up
from poolproof.reports.terminal.painting import console
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.pairs import completing, row_of
from poolproof.suites.cases.sequences import pairs_visited
from poolproof.suites.isolation.environment import USUAL_TIMEOUT, set_import_folders
from poolproof.suites.isolation.survey import AT_A_TIME, survey, surveys
from poolproof.suites.judging.budget import allow_free_memory
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.options import PLAN_OPTIONS, library_options, run_options, selection_of
from poolproof.suites.parts import part
from poolproof.suites.plan.aspects import ASPECTS, CASE_ASPECTS, PHASES
from poolproof.suites.plan.blocks import SequenceBlock
from poolproof.suites.plan.lines import line_question, parse_line
from poolproof.suites.plan.plans import DTYPES, PLANS, Subject, Survey, scope_of
from poolproof.suites.plan.selection import Selection
from poolproof.suites.run.repetition import attribute
from poolproof.suites.run.sandbox import Sandbox

_console = console(soft_wrap=True)


@click.command()
@click.argument("name", default="")
def backends(name: str) -> None:
    """List the backends, a line each, and whether each can run here; print all facts about the one with this NAME."""
    if name:
        for fact, value in selected_survey(name).environment.items():
            _console.print(Text(f"{fact}: {value}"))
        return
    table, waiting = _table("backend", "here", "description"), names()
    with _console.status("") as status:
        loaded = surveys(names())
        while waiting:
            status.update(f"loading {', '.join(waiting[:AT_A_TIME])}")
            name, found = next(loaded)
            waiting.remove(name)
            is_here = isinstance(found, Survey)
            said = Text(_summary(found.environment) if isinstance(found, Survey) else str(found))
            said.no_wrap, said.overflow = True, "ellipsis"
            table.add_row(name, Text("yes", style="green") if is_here else Text("no", style="red"), said)
    _console.print(table)
    _console.print("poolproof backends NAME prints all facts about one", style="dim")


def _summary(environment: Mapping[str, str]) -> str:
    """Describe an environment in one line, with one name for all libraries."""
    listed = ("library", "wheel", "abilities")  # that only the page of a run lists
    short = {key: value for key, value in environment.items() if key.partition(" ")[0] not in listed}
    library = library_of(environment)
    return ", ".join(f"{key} {value}" for key, value in (short | ({"library": library} if library else {})).items())


@click.command()
@click.option("--clear", is_flag=True, help="Remove all of it; it is compiled again when it is used.")
def cache(clear: bool) -> None:
    """List what poolproof keeps in the cache folder, and its size. Clear it only when nothing runs."""
    for folder, what in _CACHED.items():
        numbas = os.environ.get("NUMBA_CACHE_DIR", "") if folder == "kernels" else ""
        path = Path(numbas, "poolproof", folder) if numbas else cache_folder(folder)
        if clear and path.exists():
            shutil.rmtree(path)
        size = sum(each.stat(follow_symlinks=False).st_size for each in path.rglob("*") if not each.is_dir())
        _console.print(Text(f"{size / 2**20:9,.1f} MiB {count_of(len([*path.glob('*')]), 'build')} of {what}: {path}"))


_CACHED = {"kernels": "loops that judge", "emulator": "the emulated NPU", "ascendc": "kernels in Ascend C"}
"""Folders of the cache, with what they hold."""


@click.command(name="list")
@run_options("--backend", *PLAN_OPTIONS, "--shard", backend={"default": ["torch-cpu"], "show_default": True})
@library_options
def list_blocks(backend: tuple[str, ...], **values: Any) -> None:
    """List the cases that a plan runs on each backend, and why it leaves out others."""
    for name in dict.fromkeys(backend):
        _list_plan(name, selected(name, values))


def _list_plan(backend: str, selection: Selection) -> None:
    by_operator, by_aspect = Counter[str](), Counter[str]()
    for block in selection.blocks():
        for group, count in block.groups().items():
            by_operator[dict(group)["operator"]] += count
            by_aspect[dict(group)["aspect"]] += count
    _console.print(f"{by_aspect.total():,} cases of plan {selection.plan.name} on {backend}", style="bold")
    table = _table("operator", "dtypes", "indices", counts="cases")
    for operator, count in by_operator.items():
        own = [each for each in selection.subjects() if each.operator.name == operator and not each.unsupported]
        dtypes, indices = ({getattr(each, name): 0 for each in own} for name in ("dtype", "index_dtype"))
        table.add_row(operator, ", ".join(dtypes), ", ".join(indices), f"{count:,}")
    _console.print(table)
    table = _table("aspect", "claim", counts="cases")
    for aspect in ASPECTS.values():
        if by_aspect[aspect.id]:
            table.add_row(aspect.id, aspect.claim, f"{by_aspect[aspect.id]:,}")
    _console.print(table)
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for subject in selection.subjects():
        if subject.unsupported:
            reasons[subject.unsupported].append(subject.operator.name)
    for reason, names_left_out in reasons.items():
        pairs, operators = count_of(len(names_left_out), "pair"), ", ".join(dict.fromkeys(names_left_out))
        _console.print(f"not run, {pairs} of dtypes of {operators}: {reason}", style="dim")


def selected(backend: str, values: Mapping[str, Any]) -> Selection:
    """Return what options select of a plan on a backend; end the command where the backend cannot run here."""
    return selection_of(values.get, {backend: selected_survey(backend)})


def selected_survey(backend: str) -> Survey:
    """Survey a backend; end the command where it cannot run here."""
    try:
        return survey(backend)
    except (BackendUnavailable, UnknownBackend) as error:
        give_up(str(error))


def _table(*headings: str, counts: str = "") -> Table:
    """Make a plain table, with a last column of numbers where ``counts`` is its heading."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    if counts:
        table.add_column(counts, justify="right")
    return table


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="[RUN] CASE")
@run_options("--backend", backend={"default": ["torch-cpu"], "show_default": True})
@library_options
@click.option(
    "--pythonpath",
    "folders",
    multiple=True,
    metavar="DIR",
    help="Folder to import a backend from that is named as module:attribute; repeatable.",
)
@click.option("--timeout", type=SECONDS, default=USUAL_TIMEOUT, show_default=True, help="Seconds one call may take.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of times to judge the case, each in a fresh process; the result says how often it fails.",
)
@click.option(
    "--evidence",
    "folder",
    type=PATH,
    help="Folder for the evidence of a failure: inputs, expected and actual outputs, and programs that judge it again "
    "or make the call without poolproof.",
)
@click.option(
    "--interactive",
    is_flag=True,
    help="Open a Python prompt after a failure, with got, low, high and the inputs as arrays.",
)
def replay(
    words: tuple[str, ...],
    backend: tuple[str, ...],
    folders: tuple[str, ...],
    timeout: float,
    repeat: int,
    folder: Path | None,
    interactive: bool,
) -> None:
    """Judge one CASE again: the line of JSON that a failure prints, a case or a low-level call.

    With the folder of a RUN before it, CASE is the first digits of a case id, and the backend is that of the run.
    """
    *runs, case = words
    if runs:
        again = [*_words_of(runs, case), f"--repeat={repeat}", *(["--evidence", str(folder)] if folder else [])]
        replay.main([*again, *(["--interactive"] if interactive else [])])
    if interactive and folder is None:
        folder = Path(click.get_current_context().with_resource(TemporaryDirectory()))
    allow_free_memory()
    set_import_folders(folders)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    verdicts = []
    for name in backend:
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


def _words_of(runs: Sequence[str], case_id: str) -> list[str]:
    """Return the words of the line that replays a case of a run, the first that failed; set its variables."""
    if len(runs) > 1:
        raise click.UsageError("replay takes one case, or a run and a case id")
    where = pc.starts_with(pc.field("case_id"), case_id) & pc.field("case").is_valid()
    rows = read_rows(Path(runs[0]), where=where).to_pylist()
    if not rows:
        raise BadInput(f"no case of {runs[0]} has an id that begins with {case_id}")
    line = replay_line(min(rows, key=lambda row: row["verdict"] not in FAILED))
    _console.print(Text(line), soft_wrap=True)
    words = shlex.split(line)
    command = words.index("poolproof")
    os.environ |= dict(word.split("=", 1) for word in words[:command])
    return words[command + 2 :]


def _explore(path: Path) -> None:
    """Open a prompt of Python with the arrays of evidence; nothing where a failure left none."""
    if not path.exists():
        return
    evidence = read_evidence(path)
    arrays: dict[str, Any] = {"np": np, **evidence.arrays}
    names = ", ".join(f"{name} {array.shape}" for name, array in arrays.items() if name != "np" and array.ndim)
    code.interact(f"arrays: {names}\nnp.argwhere((got < low) | (got > high)) are the elements outside", local=arrays)


def _answers(case: str, backend: str, timeout: float, repeat: int, folder: Path | None) -> list[tuple[Row, ...]]:
    """Judge a line ``repeat`` times.

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
        _console.print(f"{worst}, {row['n_single_valued']} of {row['n']} cells have one right value, {row['model']}")


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
        libraries = [*filter(Path.is_file, named)]
        if row["backend"].startswith("emulator-"):
            libraries = [optional("poolproof.backends.emulator.build:library")()]
        calls = call_lines(str(path.with_name("call.py")), str(path), row, libraries)
        told = ("the call, without poolproof", "where it is then, if gdb is there")
        for what, line in zip(told, calls, strict=False):
            _console.print(f"{what}: {line}", style="dim")
    else:
        hint = "this kind of failure leaves none" if folder else "add --evidence DIR to keep some"
        _console.print(f"no evidence: {hint}", style="dim")


plan_options = run_options(
    "--backend",
    *PLAN_OPTIONS,
    backend={"default": "emulator-a2", "show_default": True, "multiple": False},
    aspect={"type": click.Choice(sorted(CASE_ASPECTS))},
)


def cases_of(selection: Selection) -> list[Case]:
    asked = (question for block in selection.blocks() for question in block.questions())
    return [question.case for question in asked if isinstance(question, CaseQuestion)]


_CallsOf = tuple[str, str, str]
"""Backend or list, operator and dtype."""


def _show_coverage(covered: Mapping[_CallsOf, FactorCoverage], missing: int) -> None:
    """Print the visited pairs and triples, and the first ``missing`` pairs that are not visited."""
    table = _table("of", "operator", "dtype", "pairs visited", "triples visited", counts="calls")
    for key, own in covered.items():
        table.add_row(*key, *(str(own.meetings(size)) for size in TOGETHER), f"{own.calls:,}")
    _console.print(table)
    _console.print(met_in_all(covered))
    for key, own in covered.items() if missing else ():
        _console.print(f"not visited by {' '.join(key)}:", style="bold")
        for pair in islice(own.meetings(2).missing(), missing):
            _console.print(f"  {pair}")


def _ends_met(selection: Selection) -> str:
    """Say how many calls past an end of a quantity (`poolproof.suites.cases.ends`) each plan asks of these subjects."""
    ends, most = CASE_ASPECTS["ends"], PLANS["soak"].cases
    subjects = filter(ends.covers, selection.subjects())
    needed = [target.plan_cases for subject in subjects for target in ends.targets(subject, most)]
    shares = (f"{plan.name} {sum(cases <= plan.cases for cases in needed):,}" for plan in PLANS.values())
    return f"calls past an end of a quantity: {', '.join(shares)}"


def _show_sequences(selection: Selection) -> None:
    """Print how many pairs of operators, and of actions, the drawn sequences of a plan visit, in either order."""
    blocks = (block for block in selection.blocks() if isinstance(block, SequenceBlock))
    operators, verbs = pairs_visited(asked.sequence for block in blocks for asked in block.questions())
    supported = [each for subject in selection.subjects() for each in subject.supported]
    actions = {verb for each in supported for verb in each.actions} & {*FORMS}
    pairs = len(having := {each.operator.name for each in supported}) * (len(having) - 1)
    of_operators, of_verbs = f"{len(operators)} of {pairs}", f"{len(verbs)} of {len(actions) ** 2}"
    _console.print(f"drawn sequences visit {of_operators} pairs of operators and {of_verbs} pairs of actions, in order")


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
@plan_options
@library_options
@click.option("--missing", type=click.IntRange(0), default=0, help="Number of unvisited pairs to list.")
@click.option("--complete", "output", type=PATH, help="Write stored cases that visit them to this list.")
def coverage(given: tuple[Path, ...], missing: int, output: Path | None, backend: str, **values: Any) -> None:
    """Count the classes of factors that meet in a plan, in the calls of a REPORT or in the rows of a LIST.

    Factors are properties that kernels branch on. The counts are of possible pairs of all factors, and of possible
    triples of the most important ones: for a plan on its backend, for a run on its backends, for a list anywhere.
    """
    if output:
        check_replaceable(output)
    covered: dict[_CallsOf, FactorCoverage] = {}
    for report in filter(Path.is_dir, given):
        covered |= factor_coverage(report, read_run(report))
    lists = [path for path in given if not path.is_dir()]
    if not given:
        selection = selected(backend, values | {"aspect": values["aspect"] or CASE_ASPECTS})
        covered |= _case_coverage(backend, cases_of(selection), selection.subjects())
        _console.print(_ends_met(selection))
        if not values["aspect"]:
            _show_sequences(replace(selection, aspects=(PHASES.id,)))
    elif lists:
        entries = part("poolproof.suites.cases.lists:read_lists")(lists)
        cases = [entry.case for entry in entries if entry.case]
        covered |= _case_coverage(" ".join(path.name for path in lists), cases)
        if unread := [entry.fault for entry in entries if not entry.case]:
            rows = f"{len(unread):,} of {len(entries):,} rows"
            _console.print(f"{rows} are no cases, the first: {unread[0]}", style="yellow")
    operators, dtypes = values["operator"] or OPERATORS, values["dtype"] or DTYPES
    covered = {key: own for key, own in covered.items() if key[1] in operators and key[2] in dtypes}
    if not covered:
        raise BadInput("no call of these operators and dtypes has classes to count")
    _show_coverage(covered, missing)
    if output:
        lines = [case.to_json() for key, own in covered.items() for case in completing(own, key[2])]
        with replacing(output) as aside:
            aside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        _console.print(f"{len(lines):,} cases written to {output}: with them, {met_in_all(covered)}")
