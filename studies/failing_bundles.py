"""Bundles of failing runs, which have to stand: whoever judges honestly is called no forger.

    python studies/failing_bundles.py [--defect NAME] [--cases 4] [--sample 20] [-o FOLDER] [-- OPTION...]

Each seeded defect is judged on the product where it is at home, in a session of so many cases for each operator, pair
of dtypes and aspect; what follows ``--`` are further options of it, such as ``--aspect state``. The run is packed,
verified, and so many of its cases are judged again. A line says how each step ended; the study ends with 1 if a bundle
does not stand, or a sample disagrees. A race may show in one of two calls, so disagreements of `RACING` are told and
not counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from poolproof.backends.emulator.defects import VARIABLE, defects

RACING = {"determinism_ignored", "nonatomic_core_add", "scratch_shared_by_streams", "first_stream_kept"}


def poolproof(defect: str, *words: object) -> tuple[int, str]:
    """Run a command on an emulator with a defect; return its status and what it printed."""
    command = [sys.executable, "-c", "from poolproof.suites.cli import main; main()", *map(str, words)]
    environment = os.environ | {VARIABLE: defect}
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, start_new_session=True
    )
    return ended.returncode, ended.stdout + ended.stderr


def tried(defect: str, cases: int, sample: int, folder: Path, options: Sequence[str]) -> bool:
    """Judge, pack, verify and judge again; print a line, and what was said where it should not have been."""
    began, bundle = time.monotonic(), folder / f"{defect}.zip"
    backend = f"emulator-{defects()[defect].products[0].lower()}"
    judging = ["--backend", backend, "--report", folder / defect, "--cases", cases, "--diagnose", "0"]
    statuses = {"run": poolproof(defect, "run", "-q", "-p", "no:cacheprovider", *judging, *options)}
    statuses["package"] = poolproof(defect, "package", folder / defect, "-o", bundle)
    statuses["verify"] = poolproof(defect, "verify", bundle)
    statuses["rerun"] = poolproof(defect, "rerun", bundle, "--sample", sample) if sample else (0, "")
    evidence = len(list((folder / defect).glob("evidence/**/*.npz")))
    ends = ", ".join(f"{name} {status}" for name, (status, _) in statuses.items())
    print(f"{defect} on {backend}: {ends}; {evidence} evidence, {time.monotonic() - began:.0f} s", flush=True)
    stands = statuses["run"][0] in (0, 1) and not statuses["package"][0] and not statuses["verify"][0]
    agrees = not statuses["rerun"][0] or defect in RACING
    if not (stands and agrees):
        print("\n".join(text for name, (_, text) in statuses.items() if name in ("verify", "rerun")), flush=True)
    return stands and agrees


@click.command()
@click.option("--defect", "names", multiple=True, type=click.Choice(sorted(defects())), help="Only this, repeatable.")
@click.option("--cases", default=4, show_default=True, help="As for pytest.")
@click.option("--sample", default=20, show_default=True, help="Cases judged again; 0 for none.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Keep runs and bundles in this folder.")
@click.argument("options", nargs=-1)
def main(names: tuple[str, ...], cases: int, sample: int, output: Path | None, options: tuple[str, ...]) -> None:
    with TemporaryDirectory() as scratch:
        folder = output or Path(scratch)
        ended = [tried(name, cases, sample, folder, options) for name in names or defects()]
    print(f"{sum(ended)} of {len(ended)} stand and agree")
    sys.exit(not all(ended))


if __name__ == "__main__":
    main()
