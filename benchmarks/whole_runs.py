"""Whole runs from the shell: their start and end, two workers and one, the first verdict, and the cost of ``--help``.

Each is a separate process, started as from a shell.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import pandas as pd
import pyarrow.compute as pc

from measuring import Figure, compared, in_turns, seconds_of
from poolproof.backends.emulator.defects import defects
from poolproof.reports.rows.store import read_rows

_PYTEST = (sys.executable, "-m", "pytest", "--pyargs", "poolproof.suites", "-q", "-p", "no:cacheprovider")
_POOLPROOF = (sys.executable, "-c", "from poolproof.suites.cli import main; main()")


def measure_workers(operators: Sequence[str], cases: int, rounds: int) -> Iterator[Figure]:
    """Measure runs of a small plan with one worker and with two: from start to end, and while they judge."""
    spans: dict[int, list[tuple[float, float, float]]] = {1: [], 2: []}
    chosen = [argument for name in operators for argument in ("--operator", name)]
    for number in range(rounds):
        for workers in (1, 2) if number % 2 else (2, 1):
            spans[workers].append(_run_seconds(workers, ["--cases", str(cases), *chosen]))
    kinds = {"two workers, judging": (itemgetter(1), ">= 1.8"), "two workers, start to end": (sum, "")}
    for what, (taken, bound) in kinds.items():
        one, two = ([60.0 / taken(span) for span in spans[workers]] for workers in (1, 2))
        yield replace(compared("workers", what, "runs/min", two, "one worker", one), bound=bound)


RUNS = {
    "smoke plan": (),
    "float32 of one operator": ("--operator", "MaxPool2dWithIndicesBackward", "--dtype", "float32"),
}
"""Runs of two workers on torch-cpu, with their options."""

_STAGES = ("start to first case", "judging", "last case to end")


def measure_runs(rounds: int) -> Iterator[Figure]:
    """Yield the seconds of the parts of each of `RUNS`, by the caller's clock."""
    for what, options in RUNS.items():
        spans = [_run_seconds(2, options) for _ in range(rounds)]
        for stage, seconds in zip(_STAGES, zip(*spans, strict=True), strict=True):
            yield Figure("runs", f"{what}, {stage}", "s", statistics.median(seconds))


def _run_seconds(workers: int, options: Sequence[str]) -> tuple[float, float, float]:
    """Return the seconds from start to first case, from that to the last, and from there to the end, of a run."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        started = time.time()
        _checked([*_POOLPROOF, "run", "-p", "no:cacheprovider", "-n", str(workers), "--report", str(report), *options])
        ended = time.time()
        rows = read_rows(report, ["judged_at", "seconds"], pc.field("seconds") > 0)
        begun = pc.subtract(rows["judged_at"], rows["seconds"])
        first, last = pc.min(begun).as_py(), pc.max(rows["judged_at"]).as_py()
        return first - started, last - first, ended - last


def _checked(command: Sequence[str]) -> None:
    """Run a command that must end as a run, with any verdict."""
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if ended.returncode not in (0, 1, 2):
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout[-2000:]}")


def measure_start(rounds: int) -> Iterator[Figure]:
    """Yield the seconds from the start of a run to its first verdict, before and after code was compiled."""
    with tempfile.TemporaryDirectory() as cache:
        cold = _first_verdict_seconds(cache)
        measures = {
            "ours": lambda: _first_verdict_seconds(cache),
            "torch": lambda: seconds_of(lambda: _checked([sys.executable, "-c", "import torch"])),
        }
        warm = in_turns(rounds, measures)
    yield Figure("start", "start to first verdict, nothing compiled yet", "s", cold)
    yield Figure("start", "start to first verdict", "s", statistics.median(warm["ours"]), bound="<= 3")
    yield compared("start", "start to first verdict", "s", warm["ours"], "import torch", warm["torch"])
    measures = {
        "ours": lambda: _cpu_seconds([*_POOLPROOF, "--help"]),
        "click": lambda: _cpu_seconds([sys.executable, "-c", "import click"]),
    }
    taken = in_turns(max(rounds, 3), measures)
    help_seconds = compared("start", "poolproof --help", "s of CPU", taken["ours"], "import click", taken["click"])
    yield Figure("start", "poolproof --help", "s of CPU", help_seconds.ours, bound="<= 0.3")
    yield help_seconds


def _first_verdict_seconds(cache: str) -> float:
    """Return the seconds until a run of the smoke plan has judged something; then end it."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "XDG_CACHE_HOME": cache}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        started = time.time()
        run = subprocess.Popen(
            [*_PYTEST, "--report", str(report)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        try:
            return _first_verdict(report, run) - started
        finally:
            run.terminate()
            run.wait()


def _first_verdict(report: Path, run: subprocess.Popen[bytes]) -> float:
    """Return the time when the first row of a run was judged."""
    while run.poll() is None:
        for journal in report.glob("rows/*.jsonl"):
            for line in journal.read_text(encoding="utf-8").splitlines(keepends=True):
                if line.endswith("\n") and "judged_at" in (row := json.loads(line)):
                    return float(row["judged_at"])
        time.sleep(0.01)
    raise SystemExit("the run ended before its first verdict")


def _cpu_seconds(command: Sequence[str]) -> float:
    """Return the processor time of a command."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def measure_finding(chosen: Sequence[str], every: int) -> Iterator[Figure]:
    """Yield cases and seconds until a seeded defect is found, the median over every ``every``-th defect."""
    names = list(chosen) or list(defects())[::every]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "score"
        options = [option for name in names for option in ("--defect", name)]
        _checked([*_POOLPROOF, "score", "-n", "1", "--shrink", "0", "--report", str(report), *options])
        (table,) = report.glob("*.parquet")
        found = pd.read_parquet(table).query("found")
    note = f"{len(found)} of {len(names)} defects found"
    yield Figure("finding", "median time to find a seeded defect", "s", float(found["seconds"].median()), note=note)
    yield Figure("finding", "median cases to find a seeded defect", "cases", float(found["cases"].median()), note=note)
