"""The judge on a device of a fleet: a runner that returns its rows and evidence."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from poolproof.backends.base import WORKER_VARIABLE, BackendUnavailable, UnknownBackend
from poolproof.reports.rows.environment import suite_identity
from poolproof.reports.rows.records import first_difference
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.isolation.survey import surveyed
from poolproof.suites.isolation.worker import Worker
from poolproof.suites.judging.budget import free_memory, share
from poolproof.suites.plan.plans import Survey
from poolproof.suites.run.runner import Runner


class FleetError(BadInput):
    """No fleet can judge; the text says why and what to do."""


@dataclass(frozen=True)
class RunSettings:
    """What all judges of a run need.

    ``make`` makes a `Runner` of a folder, ``name``, ``record`` and ``loaded``. A judge has to run the ``suite`` of the
    driver, and the backends of the first judge, whose ``environments`` are here by name. ``memory`` is what the run may
    take on a machine in bytes, 0 for what is free; ``sharing`` has the number of judges that share it, by machine.
    """

    make: Callable[..., Runner]
    environments: Mapping[str, dict[str, str]]
    memory: int
    sharing: Mapping[str, int]
    suite: dict[str, str] = field(default_factory=suite_identity)


@dataclass(frozen=True)
class Batch:
    """Rows, and the contents of their evidence files, by path in the folder of the run.

    ``error`` is the traceback of an exception that ended the work; empty if none did.
    """

    rows: list[Row] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    error: str = ""


class Judge:
    """A runner on a device, with hosts of its own.

    ``number`` counts the judges of a run from 0: backends may choose a device by it (`WORKER_VARIABLE`). With the
    unique name ``run`` it names a scratch folder: a judge in the place of one that was killed clears away its files.
    """

    def __init__(self, run: str, number: int) -> None:
        os.environ[WORKER_VARIABLE] = str(number)
        self._name = f"fleet{number}"
        self._folder = Path(tempfile.gettempdir()) / f"poolproof-{run}-{number}"
        self._surveys: dict[str, Survey] = {}
        self._loaded: dict[str, Worker] = {}
        self._rows: list[Row] = []
        self._runner: Runner | None = None

    def survey(self, backends: Iterable[str], suite: dict[str, str]) -> dict[str, Survey]:
        """Survey backends on this machine, which stay loaded; `FleetError` if its suite is another."""
        if found := first_difference("suite", suite, suite_identity()):
            what, here, there = found
            raise FleetError(f"{platform.node()} has another suite installed: {what} is {there!r}, here it is {here!r}")
        for name in backends:
            if name not in self._surveys:
                self._surveys[name], self._loaded[name] = surveyed(name)
        return self._surveys

    def ping(self) -> None:
        """Answer, which shows that this judge lives."""

    def run(self, settings: RunSettings, method: str, *arguments: Any) -> Batch:
        """Call a method of the runner and return what it records; `FleetError` if this machine differs."""
        if self._runner is None:
            self._runner = self._prepare(settings)
        try:
            getattr(self._runner, method)(*arguments)
        except Exception:
            return self._take(traceback.format_exc().strip())
        return self._take()

    def close(self) -> Batch:
        """End all processes and remove the scratch folder; return what their end adds."""
        if self._runner is not None:
            self._runner.close()
        batch = self._take()
        shutil.rmtree(self._folder, ignore_errors=True)
        return batch

    def _prepare(self, settings: RunSettings) -> Runner:
        try:
            surveys = self.survey(settings.environments, settings.suite)
        except (BackendUnavailable, UnknownBackend) as error:
            raise FleetError(f"{platform.node()} cannot judge: {error.args[0]}") from None
        for name, environment in settings.environments.items():
            if found := first_difference(name, environment, surveys[name].environment):
                what, first, there = found
                other = f"{platform.node()} runs another {name} than the first device: {what} is {there!r}"
                raise FleetError(f"{other}, not {first!r}: judge them in runs of their own")
        share(settings.memory or free_memory(), settings.sharing.get(platform.node(), 1))
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700)
        return settings.make(self._folder, name=self._name, record=self._rows.append, loaded=self._loaded)

    def _take(self, error: str = "") -> Batch:
        """Take the rows and the evidence that there are."""
        paths = list((self._folder / "evidence").rglob("*.npz"))
        files = {path.relative_to(self._folder).as_posix(): path.read_bytes() for path in paths}
        batch = Batch(self._rows.copy(), files, error)
        self._rows.clear()
        for path in paths:
            path.unlink()
        return batch
