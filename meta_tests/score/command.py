"""The command ``poolproof score``: how many seeded defects a plan finds, how soon, and by which check."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click
import pandas as pd
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from poolproof.backends.base import BackendUnavailable
from poolproof.backends.emulator.defects import Defect, defects
from poolproof.references.products import PRODUCTS
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Overall
from poolproof.reports.terminal.command_line import MAX_SECONDS, PATH, SECONDS, Number, give_up
from poolproof.reports.terminal.painting import console
from poolproof.score.hunt import Hunts, Result, backend_name
from poolproof.score.questions import rounds
from poolproof.score.report import FILE, PAGE, show, write_score
from poolproof.suites.isolation.survey import survey
from poolproof.suites.judging.budget import allow_free_memory
from poolproof.suites.options import MOST_WORKERS, plan_of, run_options
from poolproof.suites.plan.aspects import ALL_CHECKS


@click.command()
@run_options("--plan", "--cases", "--seed")
@click.option("--defect", "chosen", multiple=True, metavar="ID", help="Only this defect, repeatable.")
@click.option("--product", help="Seed on this product wherever a defect exists there, not on the defect's home.")
@click.option(
    "-n", "workers", type=click.IntRange(1, MOST_WORKERS), default=2, show_default=True, help="Processes at a time."
)
@click.option("--report", type=PATH, default=Path("poolproof-score"), show_default=True, help="Folder to write to.")
@click.option("--resume", is_flag=True, help="Keep what the report folder says was found, and hunt for the rest.")
@click.option("--timeout", type=SECONDS, default=10.0, show_default=True, help="Seconds one call may take.")
@click.option(
    "--shrink",
    type=Number(0, MAX_SECONDS),
    default=1.0,
    show_default=True,
    help="Seconds for a smaller case of each defect found.",
)
@click.option(
    "--fail-under",
    type=Number(0, 100),
    default=100.0,
    show_default=True,
    help="Least share of defects found, in percent.",
)
def score(
    plan: str,
    cases: int | None,
    seed: int,
    chosen: tuple[str, ...],
    product: str | None,
    workers: int,
    report: Path,
    resume: bool,
    timeout: float,
    shrink: float,
    fail_under: float,
) -> None:
    """Put a plan to the emulator with one seeded defect at a time, and report which are found.

    A defect is found by a case that violates a claim with the defect and does not without it. The report folder gets
    a page with a matrix of defects and checks, and the same as Parquet; it is written after an interruption, too.
    """
    if product is not None and product not in PRODUCTS:
        give_up(f"there is no product {product!r}; there are {', '.join(PRODUCTS)}")
    chosen_plan = plan_of(plan, cases)
    known = defects()
    if unknown := sorted(set(chosen) - set(known)):
        give_up(f"there is no defect {unknown[0]}; there are {', '.join(known)}")
    results = [
        Result(defect.id, product if product in defect.products else defect.products[0])
        for defect in known.values()
        if not chosen or defect.id in chosen
    ]
    allow_free_memory()
    if resume:
        if not (report / FILE).exists():
            give_up(f"nothing to resume: {report / FILE} is not there; leave out --resume to begin")
        results = _kept(results, pd.read_parquet(report / FILE))
    report.mkdir(parents=True, exist_ok=True)
    interrupted = False
    with _display(results) as notice:
        hunts = Hunts(workers, timeout, shrink, notice)
        try:
            surveys = {name: survey(backend_name(name)) for name in dict.fromkeys(each.product for each in results)}
            asked = rounds(surveys, chosen_plan, seed, workers)
            while not all(result.is_found for result in results) and (part := next(asked, None)):
                hunts.run(results, part)
        except KeyboardInterrupt:
            interrupted = True
        except BackendUnavailable as error:
            give_up(str(error))
    frame = table_of(results, "interrupted" if interrupted else "missed")
    write_score(frame, ALL_CHECKS, report, {"plan": plan, "cases": chosen_plan.cases, "seed": seed})
    show(frame, ALL_CHECKS, console())
    console().print(f"{'interrupted; ' if interrupted else ''}written to {report / PAGE}")
    share = 100.0 * float(frame["found"].mean())
    sys.exit(Overall.INCOMPLETE if interrupted else Overall.CONFORMS if share >= fail_under else Overall.VIOLATES)


def table_of(results: Sequence[Result], otherwise: str = "missed") -> pd.DataFrame:
    """One row per defect: what it is and what became of it, ``otherwise`` where it was not found."""
    records = [_record(defects()[result.defect], result, result.row or {}) for result in results]
    return pd.DataFrame([{**record, "outcome": "found" if record["found"] else otherwise} for record in records])


_TOLD = ("aspect", "operator", "dtype", "reason")
"""What the row that found a defect tells of it."""


def _record(defect: Defect, result: Result, row: Row) -> dict[str, object]:
    about = {name: getattr(defect, name) for name in ("clause", "trigger", "severity", "difficulty")}
    return {
        "defect": defect.id,
        "class": defect.group,
        **about,
        "product": result.product,
        "found": result.is_found,
        "checks": list(row.get("checks_violated", [])),
        **{name: row.get(name, "") for name in _TOLD},
        "cases": result.cases,
        "seconds": round(result.seconds, 3),
        "cpu_seconds": round(result.cpu_seconds, 3),
        "disputed": result.disputed,
        "case": row.get("case", ""),
        "shrunk": result.shrunk,
        "replays": result.replays,
    }


def _kept(results: Sequence[Result], earlier: pd.DataFrame) -> list[Result]:
    """Results of an earlier run where it found the defect, fresh ones elsewhere."""
    records = {(row["defect"], row["product"]): row for row in earlier.to_dict("records") if row["found"]}
    kept = []
    for result in results:
        if record := records.get((result.defect, result.product)):
            row = {name: record[name] for name in (*_TOLD, "case")} | {"checks_violated": list(record["checks"])}
            spent = ("cases", "seconds", "cpu_seconds", "shrunk", "replays", "disputed")
            kept.append(replace(result, row=row, **{name: record[name] for name in spent}))
        else:
            kept.append(result)
    return kept


@contextmanager
def _display(results: Sequence[Result]) -> Iterator[Callable[[Result], None]]:
    """Show how many defects are found, and the latest of them, of which what it yields is told.

    Refreshed by hand: hunts are forked from this process, which must not have a thread of its own then.
    """
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console(), auto_refresh=False, transient=True) as progress:
        task = progress.add_task("drawing cases", total=len(results))
        progress.refresh()

        def notice(latest: Result) -> None:
            found = sum(result.is_found for result in results)
            progress.update(task, completed=found, description=f"hunting, {latest.defect} has just ended")
            if latest.row is not None:
                checks = ", ".join(latest.row["checks_violated"])
                progress.print(f"{latest.defect}: {checks} after {latest.cases:,} cases, {latest.seconds:.1f} s")
            progress.refresh()

        yield notice
