"""Bundles of failing runs, which have to stand: whoever judges honestly is called no forger.

    python studies/failing_bundles.py [--defect NAME] [--sample 20] [-o FOLDER] [-- OPTION...]

Each seeded defect is judged on the product where it is at home, by the aspect and the operator that the gate of the
score asks first, or by a case of each usual kind, and where it does not show there, by more and more of the plan;
what follows ``--`` are options of the session instead of these. The run is packed, verified, and so many of its cases
are judged again. A line says how each step ended; the study ends with 1 if a bundle does not stand, or a sample
disagrees. A race may show in one of two calls, and what remembers shows after other calls in a sample than in the run,
so the samples of `_UNSTEADY` are told, and not counted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from poolproof.backends.emulator.defects import VARIABLE, defects

sys.path.append(str(Path(__file__).parents[1] / "meta_tests" / "support"))

from seeded_finds import FOUND_AMONG, OF_VARIED_CALLS, RACING

_RACES = {"default_stream_used", "event_wait_ignored", "first_stream_kept", "result_written_late"}
_REMEMBERS = {"first_launch_unready", "plan_of_other_thread", "stale_cached_address"}
_UNSTEADY = RACING | _RACES | _REMEMBERS

_USUAL = ("values", "special_values", "layouts", "memory", "state", "phases", "streams")
_FURTHER = (
    ("--cases=12", *(f"--aspect={aspect}" for aspect in ("values", "special_values", "layouts", "tagged", "targets"))),
    ("--aspect=contract", "--operator=MaxPool3dWithArgmaxBackward"),
    ("--cases=25", *(f"--aspect={aspect}" for aspect in ("precision", "determinism", "memory", "streams"))),
    ("--aspect=endurance", "--aspect=scale", "--aspect=huge"),
)
"""Asked in turn of a defect that does not show where it is asked first."""


def home(defect: str) -> tuple[str, ...]:
    """Give the options of a session that finds a defect soon."""
    varied = (("contract", operator) for operator, found in OF_VARIED_CALLS.items() if defect in found)
    among = (place for place, found in FOUND_AMONG.items() if defect in found)
    for aspect, operator in (*varied, *among):
        return f"--aspect={aspect}", f"--operator={operator}"
    return "--cases=1", "--dtype=float32", *(f"--aspect={aspect}" for aspect in _USUAL)


def poolproof(defect: str, *words: object) -> tuple[int, str]:
    """Run a command on an emulator with a defect; return its status and what it printed."""
    command = [sys.executable, "-c", "from poolproof.suites.cli import main; main()", *map(str, words)]
    environment = os.environ | {VARIABLE: defect}
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, start_new_session=True
    )
    return ended.returncode, ended.stdout + ended.stderr


def tried(defect: str, sample: int, folder: Path, options: Sequence[str]) -> bool:
    """Judge, pack, verify and judge again; print a line, and what was said where it should not have been."""
    began, bundle = time.monotonic(), folder / f"{defect}.zip"
    backend = f"emulator-{defects()[defect].products[0].lower()}"
    for asked in [options] if options else [home(defect), *_FURTHER]:
        shutil.rmtree(folder / defect, ignore_errors=True)
        judging = ["--backend", backend, "--report", folder / defect, "--diagnose", "0", *asked]
        statuses = {"run": poolproof(defect, "run", "-q", "-p", "no:cacheprovider", *judging)}
        if statuses["run"][0]:
            break
    statuses["package"] = poolproof(defect, "package", folder / defect, "-o", bundle)
    statuses["verify"] = poolproof(defect, "verify", bundle)
    statuses["rerun"] = poolproof(defect, "rerun", bundle, "--sample", sample) if sample else (0, "")
    evidence = len(list((folder / defect).glob("evidence/**/*.npz")))
    ends = ", ".join(f"{name} {status}" for name, (status, _) in statuses.items())
    print(f"{defect} on {backend}: {ends}; {evidence} evidence, {time.monotonic() - began:.0f} s", flush=True)
    stands = statuses["run"][0] in (0, 1) and not statuses["package"][0] and not statuses["verify"][0]
    agrees = not statuses["rerun"][0] or defect in _UNSTEADY
    if not (stands and agrees):
        print("\n".join(text for name, (_, text) in statuses.items() if name in ("verify", "rerun")), flush=True)
    return stands and agrees


@click.command()
@click.option("--defect", "names", multiple=True, type=click.Choice(sorted(defects())), help="Only this, repeatable.")
@click.option("--sample", default=20, show_default=True, help="Cases judged again; 0 for none.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Keep runs and bundles in this folder.")
@click.argument("options", nargs=-1)
def main(names: tuple[str, ...], sample: int, output: Path | None, options: tuple[str, ...]) -> None:
    with TemporaryDirectory() as scratch:
        folder = output or Path(scratch)
        ended = [tried(name, sample, folder, options) for name in names or defects()]
    print(f"{sum(ended)} of {len(ended)} stand and agree")
    sys.exit(not all(ended))


if __name__ == "__main__":
    main()
