"""Judges as actors of Ray, one for each device of a cluster."""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from poolproof.reports.rows.environment import suite_identity
from poolproof.reports.rows.records import first_difference
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.fleet.dispatch import Event, JudgeDied, RowsArrived, WorkFinished
from poolproof.suites.fleet.node import Judge, Node, RunSettings, Work
from poolproof.suites.isolation.sandbox import Survey

AUTO = "auto"
"""The cluster that Ray finds by itself, or a new one on this machine."""

START_TIMEOUT = 600.0
"""Seconds that a device may take to become free, and then to load a backend."""

MOST_STARTS = 5
"""Starts of a judge in a row before it judges."""

_CONNECT_SECONDS = 10.0
"""Time limit for a connection to an address."""

_CLOSING = 10.0
"""Seconds that judges have to end their processes."""


class FleetError(BadInput):
    """No fleet can judge; the text says why and what to do."""


@dataclass
class Actor:
    """A judge: its handle, its machine, and the generator of its rows while it judges."""

    handle: Any
    node: Node
    rows: Any = None


@dataclass(frozen=True)
class _Joining:
    """A judge that is being prepared."""

    handle: Any
    joined: Any
    since: float


class RayPool:
    """``workers`` judges, or one for each device, on the cluster at an address.

    ``resource`` is Ray's name of a device: CPU, GPU, NPU or a custom one. Before it gets work, every judge has to run
    the suite of this process and the same backends as the first judge; else `FleetError`.
    """

    def __init__(self, address: str, resource: str, workers: int | None) -> None:
        self._ray = _ray()
        self._connect(address)
        self._resource = resource
        devices = int(self._ray.cluster_resources().get(resource, 0))
        if not devices:
            self._ray.shutdown()
            raise FleetError(
                f"--ray {address}: the cluster has no {resource}: name its devices by ray start --resources, or "
                "another --ray-resource"
            )
        self.size = min(workers or devices, devices)
        self._surveys: dict[str, Survey] = {}
        self._settings: RunSettings | None = None
        self._actors: dict[int, Actor] = {}
        self._joining: dict[int, _Joining] = {}
        self._starts: Counter[int] = Counter()

    @property
    def judges(self) -> Sequence[int]:
        return list(self._actors)

    def survey(self, backends: Iterable[str]) -> dict[str, Survey]:
        """Survey the backends on the first device."""
        handle = self._start_judge(0)
        node = self._get(handle.node.remote())
        self._check_suite(node)
        self._surveys = {name: self._get(handle.survey.remote(name)) for name in backends}
        self._actors[0] = Actor(handle, node)
        return self._surveys

    def begin(self, settings: RunSettings) -> None:
        """Start all judges; those of a machine share the memory of the run."""
        self._settings = settings
        started = {number: self._start_judge(number) for number in range(1, self.size)}
        places = [node.name for node in self._get([handle.node.remote() for handle in started.values()])]
        first = self._actors.pop(0)
        places.insert(0, first.node.name)
        self._sharing = {number: places.count(place) for number, place in enumerate(places)}
        for number, handle in {0: first.handle, **started}.items():
            self._join(number, handle)

    def _join(self, number: int, handle: Any) -> None:
        """Have a judge load the backends, which takes a while."""
        assert self._settings is not None
        settings = replace(self._settings, sharing=self._sharing[number])
        self._starts[number] += 1
        self._joining[number] = _Joining(handle, handle.join.remote(list(self._surveys), settings), time.monotonic())

    def takes(self, judge: int, work: Work) -> bool:
        """Leave large cases to the machines with the most memory."""
        if not getattr(getattr(work, "aspect", None), "costly", False):
            return True
        return self._actors[judge].node.free > 0.8 * max(actor.node.free for actor in self._actors.values())

    def give(self, judge: int, work: Work, judged: frozenset[str]) -> None:
        actor = self._actors[judge]
        actor.rows = actor.handle.judge.remote(work, judged)

    def wait(self, seconds: float) -> Iterable[Event]:
        if not self._actors and not self._joining:
            raise FleetError(f"{MOST_STARTS} judges in a row ended before they judged, in each place: see ray logs")
        judging = {actor.rows: number for number, actor in self._actors.items() if actor.rows is not None}
        joining = {judge.joined: number for number, judge in self._joining.items()}
        waited_for = [*judging, *joining]
        if not waited_for:
            return []
        ready, _ = self._ray.wait(waited_for, num_returns=1, timeout=seconds, fetch_local=False)
        for reference in ready:
            if reference in joining:
                self._admit(joining[reference])
        return [self._next(judging[reference]) for reference in ready if reference in judging]

    def _next(self, judge: int) -> Event:
        actor = self._actors[judge]
        errors = self._ray.exceptions
        try:
            return RowsArrived(judge, self._ray.get(next(actor.rows)))
        except StopIteration:
            actor.rows = None
            return WorkFinished(judge)
        except errors.RayTaskError as error:
            actor.rows = None
            return WorkFinished(judge, str(error))
        except errors.RayError as error:
            actor.rows = None
            return JudgeDied(judge, f"on {actor.node.name} is gone ({type(error).__name__})")

    def replace(self, judge: int) -> None:
        with suppress(KeyError):
            self._ray.kill(self._actors.pop(judge).handle)
        self._join(judge, self._start_judge(judge))

    def _admit(self, number: int) -> None:
        """Check a prepared judge and admit it; start another if it died."""
        joining = self._joining.pop(number)
        errors = self._ray.exceptions
        try:
            node, environments = self._ray.get(joining.joined)
        except errors.RayTaskError as error:
            raise error.cause if isinstance(error.cause, BadInput) else error from None
        except errors.RayError:
            if self._starts[number] < MOST_STARTS:
                self._join(number, self._start_judge(number))
            return
        self._check_suite(node)
        self._check_backends(node, environments)
        self._starts[number] = 0
        self._actors[number] = Actor(joining.handle, node)

    def close(self) -> None:
        """End all judges, and disconnect from the cluster."""
        with suppress(self._ray.exceptions.RayError):
            self._ray.get([actor.handle.close.remote() for actor in self._actors.values()], timeout=_CLOSING)
        self._ray.shutdown()

    def _connect(self, address: str) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        try:
            if address != AUTO:
                _check_reachable(address)
            self._ray.init(address=None if address == AUTO else address, **options)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise FleetError(f"--ray {address}: no cluster answers there: {_first_line(error)}") from error

    def _start_judge(self, number: int) -> Any:
        """Start a judge on a free device, with this process's variables of the suite."""
        variables = {name: value for name, value in os.environ.items() if name.startswith("POOLPROOF_")}
        options: dict[str, Any] = {"max_restarts": 0, "runtime_env": {"env_vars": variables}}
        match self._resource:
            case "CPU":
                options |= {"num_cpus": 1}
            case "GPU":
                options |= {"num_gpus": 1}
            case name:
                options |= {"num_cpus": 0, "resources": {name: 1}}
        return self._ray.remote(Judge).options(**options).remote(number)

    def _check_suite(self, node: Node) -> None:
        if found := first_difference("suite", suite_identity(), node.suite):
            what, here, there = found
            raise FleetError(f"{node.name} has another suite installed: {what} is {there!r}, here it is {here!r}")

    def _check_backends(self, node: Node, environments: dict[str, dict[str, str]]) -> None:
        for name, survey in self._surveys.items():
            if found := first_difference(name, survey.environment, environments[name]):
                what, first, there = found
                raise FleetError(
                    f"{node.name} runs another {name} than the first device: {what} is {there!r}, not {first!r}: judge "
                    "them in runs of their own"
                )

    def _get(self, reference: Any) -> Any:
        """Return a judge's answer before it judges."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference, timeout=START_TIMEOUT)
        except errors.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None
        except errors.GetTimeoutError as error:
            raise FleetError(f"no {self._resource} was free for {START_TIMEOUT:.0f} s: see ray status") from error
        except errors.RayError as error:
            raise FleetError(f"a judge ended before it began: {_first_line(error)}") from error


def resource_of(backends: Iterable[str]) -> str:
    """Return Ray's name of the devices that backends run on; `FleetError` if they need several kinds."""
    kinds = {next((kind for word, kind in _DEVICES.items() if word in name), "CPU") for name in backends}
    if len(kinds) > 1:
        raise FleetError(f"--ray: the backends run on {' and '.join(sorted(kinds))}: judge them in runs of their own")
    return kinds.pop()


_DEVICES = {"aclnn": "NPU", "npu": "NPU", "cuda": "GPU"}
"""Ray's name of a device, by a part of the names of backends that run on it."""


def _check_reachable(address: str) -> None:
    """Raise OSError or ValueError if nothing listens: Ray would retry for minutes."""
    place = urlsplit(address if "://" in address else f"//{address}")
    if place.hostname is None or place.port is None:
        raise ValueError("an address is HOST:PORT, or auto")
    socket.create_connection((place.hostname, place.port), timeout=_CONNECT_SECONDS).close()


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise FleetError("--ray needs Ray: pip install 'poolproof[ray]' from a clone") from error
    return ray


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
