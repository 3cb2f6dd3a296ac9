"""A trial of built files in a fresh environment and another folder.

    python release/try_out.py FOLDER

installs the wheel of FOLDER with the dependencies of constraints.txt, asks for help, judges one case of every operator
and dtype on the emulated NPU, and runs tests from the sdist.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
RUN = ["-m", "pytest", "--pyargs", "poolproof.suites", "-q", "-p", "no:cacheprovider"]
SMOKE = [*RUN, "--backend", "emulator-a2", "--aspect", "values", "--cases", "1"]
TESTS = ["references/test_windows.py", "references/test_standards.py"]


def the_only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{folder} has {len(found)} files {pattern}, not one: build into a folder of its own")
    return found[0]


def try_out(wheel: Path, sdist: Path, at: Path) -> None:
    venv.create(at / "fresh", with_pip=True)
    programs = at / "fresh" / "bin"
    python = str(programs / "python")
    run([python, "-m", "pip", "install", "--quiet", f"--constraint={CONSTRAINTS}", str(wheel.resolve())], at)
    run([str(programs / "poolproof"), "--help"], at)
    run([python, *SMOKE], at)
    with tarfile.open(sdist) as files:
        files.extraction_filter = getattr(tarfile, "data_filter", None)  # which Python 3.11.2 has not
        files.extractall(at / "unpacked")
    run([python, "-m", "pytest", "-q", *TESTS], the_only(at / "unpacked", "*") / "meta_tests")


def run(command: Sequence[str], at: Path) -> None:
    """Without the paths that a caller's environment adds: nothing but what was installed may be found."""
    print("$", *command, flush=True)
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    status = subprocess.run(command, cwd=at, env=own).returncode
    if status:
        sys.exit(f"that ended with {status}")


if __name__ == "__main__":
    built = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as here:
        try_out(the_only(built, "*.whl"), the_only(built, "*.tar.gz"), Path(here))
