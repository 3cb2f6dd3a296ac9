"""What is right before something is done to it: a finished run that violates, its bundle, a history.

Made once for all inputs, in forks of the process that tries them; an input gets copies.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from bad_inputs import Given, Lay, small_session

RUN, BUNDLE, HISTORY = "run", "bundle.zip", "history"

MADE = (
    Given("a run", "pytest", small_session("--report=run", "--cases=6", backend="scatter_backends:lost")),
    Given("a bundle", "poolproof", ("package", RUN, "-o", BUNDLE)),
    Given("a history", "poolproof", ("history", "add", HISTORY, RUN)),
)
"""The commands that make them, one after the other."""

FAILING_CASE = "{failing case}"
"""Stands in arguments for the id of a case that the run violates."""

HARMFUL = "libharmful.so"
"""A library without symbols whose constructor does what the variable HARMFUL says."""


def failing_case(made: Path) -> str:
    """The id of a case that the run violates."""
    return next((made / RUN / "evidence").glob("*.npz")).stem.rpartition("-")[2]


def copies(*names: str) -> Lay:
    """Copies of what was made."""

    def lay(here: Path, made: Path) -> None:
        for name in names:
            source = made / name
            if source.is_dir():
                shutil.copytree(source, here / name)
            else:
                shutil.copyfile(source, here / name)

    return lay


def texts(contents: dict[str, str | bytes]) -> Lay:
    """Files by path."""

    def lay(here: Path, made: Path) -> None:
        for name, content in contents.items():
            path = here / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))

    return lay


def together(*steps: Lay) -> Lay:
    """One after the other."""

    def lay(here: Path, made: Path) -> None:
        for step in steps:
            step(here, made)

    return lay


def odd_things(here: Path, made: Path) -> None:
    """Things that are no run: a file, an empty folder, a loop of links, a link to a device, a pipe."""
    (here / "a-file").write_text("years of work", encoding="utf-8")
    (here / "a-folder").mkdir()
    (here / "a-loop").symlink_to("a-loop")
    (here / "a-device").symlink_to(os.devnull)
    os.mkfifo(here / "a-pipe")
    (here / "full").mkdir()
    (here / "full" / "thesis.txt").write_text("years of work", encoding="utf-8")


def damaged(name: str, damage: Callable[[Path], object], of: str = RUN) -> Lay:
    """A copy of the run, or of the history, in which one file is changed."""

    def lay(here: Path, made: Path) -> None:
        copies(of)(here, made)
        (target,) = sorted((here / of).glob(name))[:1]
        damage(target)

    return lay


def record(**changes: object) -> Lay:
    """A copy of the run whose run.json has some entries changed, or with ... none."""

    def damage(path: Path) -> None:
        entries = {**json.loads(path.read_text()), **changes}
        path.write_text(json.dumps({name: value for name, value in entries.items() if value is not ...}))

    return damaged("run.json", damage)


def written(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def cut(share: float) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
