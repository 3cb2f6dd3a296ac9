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

from poolproof.reports.rows.differences import first_difference
from poolproof.reports.rows.environment import suite_identity
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.fleet.dispatch import Came, Died, Ended, Event
from poolproof.suites.fleet.node import Given, Judge, Node, Work
from poolproof.suites.isolation.sandbox import Survey

AUTO = "auto"
"""The cluster that Ray finds by itself, or one of this machine where there is none."""

PATIENCE = 600.0
"""Seconds that a device may take to come, and then to load a backend."""

MOST_STARTS = 5
"""Of judges in one place, one after another, none of which came to judge."""

_KNOCKING = 10.0
"""Seconds in which something has to answer at an address."""

_CLOSING = 10.0
"""Seconds that judges have to end what they started."""


class NoFleet(BadInput):
    """There is no fleet to judge on; the text says why and what to do."""


@dataclass
class Actor:
    """A judge: its handle, where it is, and what it gives while it judges."""

    handle: Any
    node: Node
    rows: Any = None


@dataclass(frozen=True)
class _Joining:
    """A judge that is to judge once it has said who it is."""

    handle: Any
    joined: Any
    since: float


class RayPool:
    """``workers`` judges, or one for each device, on the cluster at an address.

    ``resource`` is what Ray calls a device: CPU, GPU, NPU or a name of one's own. Every judge proves that it runs the
    suite of this process, and the same backends as the first, before it gets work. `NoFleet` where that cannot be.
    """

    def __init__(self, address: str, resource: str, workers: int | None) -> None:
        self._ray = _ray()
        self._connect(address)
        self._resource = resource
        devices = int(self._ray.cluster_resources().get(resource, 0))
        if not devices:
            self._ray.shutdown()
            raise NoFleet(
                f"--ray {address}: the cluster has no {resource}: name its devices by ray start --resources, or "
                "another --ray-resource"
            )
        self.size = min(workers or devices, devices)
        self._surveys: dict[str, Survey] = {}
        self._given: Given | None = None
        self._actors: dict[int, Actor] = {}
        self._joining: dict[int, _Joining] = {}
        self._starts: Counter[int] = Counter()

    @property
    def judges(self) -> Sequence[int]:
        return list(self._actors)

    def survey(self, backends: Iterable[str]) -> dict[str, Survey]:
        """What the backends say about themselves on the first device."""
        handle = self._started(0)
        node = self._get(handle.node.remote())
        self._check_suite(node)
        self._surveys = {name: self._get(handle.survey.remote(name)) for name in backends}
        self._actors[0] = Actor(handle, node)
        return self._surveys

    def begin(self, given: Given) -> None:
        """Start all judges. Those of a machine share the memory that is ``given``, or what is free where that is 0."""
        self._given = given
        started = {number: self._started(number) for number in range(1, self.size)}
        places = [node.name for node in self._get([handle.node.remote() for handle in started.values()])]
        first = self._actors.pop(0)
        places.insert(0, first.node.name)
        self._sharing = {number: places.count(place) for number, place in enumerate(places)}
        for number, handle in {0: first.handle, **started}.items():
            self._join(number, handle)

    def _join(self, number: int, handle: Any) -> None:
        """Let a judge load the backends and be ready, which takes a while."""
        assert self._given is not None
        given = replace(self._given, sharing=self._sharing[number])
        self._starts[number] += 1
        self._joining[number] = _Joining(handle, handle.join.remote(list(self._surveys), given), time.monotonic())

    def takes(self, judge: int, work: Work) -> bool:
        """Large cases go where most memory is."""
        if not getattr(getattr(work, "aspect", None), "costly", False):
            return True
        return self._actors[judge].node.free > 0.8 * max(actor.node.free for actor in self._actors.values())

    def give(self, judge: int, work: Work, judged: frozenset[str]) -> None:
        actor = self._actors[judge]
        actor.rows = actor.handle.judge.remote(work, judged)

    def wait(self, seconds: float) -> Iterable[Event]:
        if not self._actors and not self._joining:
            raise NoFleet(f"{MOST_STARTS} judges in a row ended before they judged, in each place: see ray logs")
        judging = {actor.rows: number for number, actor in self._actors.items() if actor.rows is not None}
        joining = {each.joined: number for number, each in self._joining.items()}
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
            return Came(judge, self._ray.get(next(actor.rows)))
        except StopIteration:
            actor.rows = None
            return Ended(judge)
        except errors.RayTaskError as error:
            actor.rows = None
            return Ended(judge, str(error))
        except errors.RayError as error:
            actor.rows = None
            return Died(judge, f"on {actor.node.name} is gone ({type(error).__name__})")

    def replace(self, judge: int) -> None:
        with suppress(KeyError):
            self._ray.kill(self._actors.pop(judge).handle)
        self._join(judge, self._started(judge))

    def _admit(self, number: int) -> None:
        """Let a judge judge that has said who it is; start another where it died over that."""
        joining = self._joining.pop(number)
        errors = self._ray.exceptions
        try:
            node, environments = self._ray.get(joining.joined)
        except errors.RayTaskError as error:
            raise error.cause if isinstance(error.cause, BadInput) else error from None
        except errors.RayError:
            if self._starts[number] < MOST_STARTS:
                self._join(number, self._started(number))
            return
        self._check_suite(node)
        self._check_backends(node, environments)
        self._starts[number] = 0
        self._actors[number] = Actor(joining.handle, node)

    def close(self) -> None:
        """End all judges, and leave the cluster."""
        with suppress(self._ray.exceptions.RayError):
            self._ray.get([actor.handle.close.remote() for actor in self._actors.values()], timeout=_CLOSING)
        self._ray.shutdown()

    def _connect(self, address: str) -> None:
        told: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        try:
            if address != AUTO:
                _reach(address)
            self._ray.init(address=None if address == AUTO else address, **told)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise NoFleet(f"--ray {address}: no cluster answers there: {_first_line(error)}") from error

    def _started(self, number: int) -> Any:
        """A judge, which Ray puts wherever a device is free. It gets the variables of this process that are ours."""
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
            raise NoFleet(f"{node.name} has another suite installed: {what} is {there!r}, here it is {here!r}")

    def _check_backends(self, node: Node, environments: dict[str, dict[str, str]]) -> None:
        for name, survey in self._surveys.items():
            if found := first_difference(name, survey.environment, environments[name]):
                what, first, there = found
                raise NoFleet(
                    f"{node.name} runs another {name} than the first device: {what} is {there!r}, not {first!r}: judge "
                    "them in runs of their own"
                )

    def _get(self, reference: Any) -> Any:
        """What a judge answers before it judges."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference, timeout=PATIENCE)
        except errors.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None
        except errors.GetTimeoutError as error:
            raise NoFleet(f"no {self._resource} was free for {PATIENCE:.0f} s: see ray status") from error
        except errors.RayError as error:
            raise NoFleet(f"a judge ended before it began: {_first_line(error)}") from error


def resource_of(backends: Iterable[str]) -> str:
    """What Ray calls the devices that some backends run on; `NoFleet` where they need several kinds."""
    kinds = {next((kind for word, kind in _DEVICES.items() if word in name), "CPU") for name in backends}
    if len(kinds) > 1:
        raise NoFleet(f"--ray: the backends run on {' and '.join(sorted(kinds))}: judge them in runs of their own")
    return kinds.pop()


_DEVICES = {"aclnn": "NPU", "npu": "NPU", "cuda": "GPU"}
"""What Ray calls a device, by what stands in the name of a backend that runs on it."""


def _reach(address: str) -> None:
    """OSError or ValueError where nothing listens: Ray would try again for minutes."""
    place = urlsplit(address if "://" in address else f"//{address}")
    if place.hostname is None or place.port is None:
        raise ValueError("an address is HOST:PORT, or auto")
    socket.create_connection((place.hostname, place.port), timeout=_KNOCKING).close()


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise NoFleet("--ray needs Ray: pip install 'poolproof[ray]' from a clone") from error
    return ray


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
