"""Time and memory of the commands about finished runs, on runs of a million rows.

    python benchmarks/reports_scale.py [--rows 1000000] [--runs 2000] [--broken] [--folder DIR]

Makes two runs of that many rows, and a history of them and many small ones. Then it measures each command in a separate
process. Prints one line per command, and exits with 1 if one takes more than 60 s or 2 GiB.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1] / "meta_tests" / "support"))

from poolproof.reports.history.entries import add
from reports_made_up import Recipe, make_run

MOST_SECONDS, MOST_BYTES = 60.0, 2 << 30

LARGE = Recipe(
    backends={"torch-cpu": "", "aclnn": "A2"},
    operators=("MaxPool2d", "MaxPool2dBackward", "MaxPool3d", "MaxPool3dBackward", "Adaptive2d", "Adaptive2dBackward"),
    dtypes=("float64", "float32", "float16", "bfloat16"),
    aspects=("values", "precision", "special_values", "layouts"),
)
FAILING = (LARGE.operators[1], "float32", "layouts")


@dataclass(frozen=True)
class Measure:
    """The time and memory of a command; on a busy machine ``cpu_seconds`` are more reliable."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of each of the two large runs.")
@click.option("--runs", default=2_000, show_default=True, help="Small runs in the history beside the large ones.")
@click.option("--broken", is_flag=True, help="Let every case of the second large run violate.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to work; a temporary folder if left out.")
def main(rows: int, runs: int, broken: bool, folder: Path | None) -> None:
    """Measure the commands of the reports."""
    work = folder or Path(tempfile.mkdtemp(prefix="reports-scale-"))
    history, site, bundle = work / "history", work / "site", work / "bundle.zip"
    first, second = work / "before", work / "after"
    _make(work, rows, runs, broken)
    commands = {
        "show": ["show", second],
        "compare": ["compare", first, second, "--markdown", work / "c.md"],
        "package": ["package", second, "-o", bundle],
        "verify": ["verify", bundle],
        "history add": ["history", "add", history, first, second],
        "history list": ["history", "list", history],
        "history query": ["history", "query", history, "SELECT operator, max(max_ulp) FROM rows GROUP BY ALL"],
        "dashboard": ["dashboard", history, "-o", site],
    }
    too_much = [name for name, arguments in commands.items() if not _report(name, _measure(list(map(str, arguments))))]
    pages = [path.stat().st_size for path in site.rglob("*.html")]
    print(f"dashboard of {runs + 2:,} runs: {len(pages):,} pages, the largest {max(pages) / 1e3:,.0f} kB")
    if folder is None:
        shutil.rmtree(work)
    sys.exit(1 if too_much else 0)


def _make(work: Path, rows: int, runs: int, broken: bool) -> None:
    """Make all runs in a separate process: the memory of a started process includes that of its starter."""
    maker = multiprocessing.get_context("spawn").Process(target=_make_runs, args=(work, rows, runs, broken))
    maker.start()
    maker.join()
    if maker.exitcode:
        raise SystemExit("the runs could not be made")


def _make_runs(work: Path, rows: int, runs: int, broken: bool) -> None:
    cells = len(LARGE.backends) * len(LARGE.operators) * len(LARGE.dtypes) * len(LARGE.aspects)
    recipe = replace(LARGE, cases=-(-rows // cells), started=1.9e9, verdicts={FAILING: ["violates"] * 500})
    everywhere = list(product(LARGE.operators, LARGE.dtypes, LARGE.aspects))
    verdicts = dict.fromkeys(everywhere, ["violates"] * recipe.cases) if broken else {FAILING: ["crashed"]}
    later = replace(recipe, started=1.9e9 + 86400.0, slowdown=1.3, verdicts=verdicts)
    make_run(work / "before", recipe)
    make_run(work / "after", later)
    for number in range(runs):
        run = make_run(work / "small", replace(LARGE, cases=1, started=1.5e9 + number * 86400.0))
        add(work / "history", run)
        shutil.rmtree(run)


def _measure(arguments: list[str]) -> Measure:
    """Measure the command, whatever it finds wrong with the runs."""
    started = time.perf_counter()
    program = [sys.executable, "-c", "from poolproof.suites.cli import main; main()", *arguments]
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1, 2) or b"Traceback" in errors:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{errors.decode()}")
    return Measure(time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def _report(name: str, measure: Measure) -> bool:
    """Print a measure; return whether it is within the limits."""
    fine = measure.seconds <= MOST_SECONDS and measure.peak_bytes <= MOST_BYTES
    note = "" if fine else f"   more than {MOST_SECONDS:g} s or {MOST_BYTES / 2**30:g} GiB"
    times = f"{measure.seconds:7.1f} s {measure.cpu_seconds:7.1f} s of CPU"
    print(f"{name:<14} {times} {measure.peak_bytes / 2**20:8,.0f} MiB{note}", flush=True)
    return fine


if __name__ == "__main__":
    main()
