"""Judges as actors of Ray, one for each device of a cluster.

Ray finds each a device, and starts it again, there or elsewhere, when it or its machine dies.
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from poolproof.reports.rows.environment import suite_identity
from poolproof.suites.fleet.node import Batch, FleetError, Judge, RunSettings
from poolproof.suites.plan.plans import Survey

AUTO = "auto"
"""The cluster that Ray finds by itself, or a new one on this machine."""

START_TIMEOUT = 600.0
"""Seconds that a device may take to become free, and then to load a backend."""


_DEVICES = {"aclnn": "NPU", "npu": "NPU", "cuda": "GPU"}
"""Ray's name of a device, by a part of the names of backends that run on it."""


class RayPool:
    """``workers`` judges, or one for each device, on the cluster at an address.

    ``resource`` is Ray's name of a device: CPU, GPU, NPU or a custom one.
    """

    def __init__(self, address: str, resource: str, workers: int | None) -> None:
        self._ray = _connected(address)
        self._resource = resource
        devices = int(self._ray.cluster_resources().get(resource, 0))
        if not devices:
            self._ray.shutdown()
            how = "name its devices by ray start --resources, or another --ray-resource"
            raise FleetError(f"--ray {address}: the cluster has no {resource}: {how}")
        self.size = min(workers or devices, devices)
        self._run = uuid4().hex
        self._judges: list[Any] = []

    @property
    def sharing(self) -> dict[str, int]:
        """Most judges that a machine may have, by its name."""
        devices: Counter[str] = Counter()
        for node in self._ray.nodes():
            devices[node["NodeManagerHostname"]] += int(node["Resources"].get(self._resource, 0))
        return {name: min(count, self.size) for name, count in devices.items() if count}

    def survey(self, backends: Sequence[str]) -> dict[str, Survey]:
        """Survey the backends on the first device; `FleetError` if none becomes free."""
        self._start_judges(1)
        found = self._get(self._judges[0].survey.remote(backends, suite_identity()), START_TIMEOUT)
        if found is None:
            raise FleetError("the first judge ended before it judged: see ray logs")
        return found

    def begin(self, settings: RunSettings) -> None:
        """Start all judges."""
        self._settings = self._ray.put(settings)
        self._start_judges(self.size)

    def ping(self, judge: int) -> Any:
        """Return a reference to an answer that comes when a judge lives."""
        return self._judges[judge].ping.remote()

    def ask(self, judge: int, method: str, *arguments: Any) -> Any:
        """Have a judge call a method of its runner; return a reference to the answer."""
        return self._judges[judge].run.options(max_task_retries=0).remote(self._settings, method, *arguments)

    def answers(self, references: Sequence[Any]) -> list[tuple[Any, Batch | None]]:
        """Wait a second for answers, each with its reference; None where the judge died.

        `FleetError` if a judge's machine differs, or somebody took the judge away.
        """
        ready, _ = self._ray.wait(list(references), timeout=1.0)
        return [(reference, self._get(reference)) for reference in ready]

    def _get(self, reference: Any, timeout: float | None = None) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference, timeout=timeout)
        except errors.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None
        except errors.GetTimeoutError as error:
            raise FleetError(f"no {self._resource} was free for {timeout:.0f} s: see ray status") from error
        except errors.ActorDiedError as error:
            raise FleetError(f"a judge was ended for good: {_first_line(error)}") from error
        except errors.RayError:
            return None

    def end_judges(self) -> list[Batch]:
        """End all judges; return what their end adds."""
        closing, self._judges = [judge.close.remote() for judge in self._judges], []
        closed = self._ray.wait(closing, num_returns=len(closing), timeout=10.0)[0] if closing else []
        batches = []
        for reference in closed:
            with suppress(FleetError):
                batches.append(self._get(reference) or Batch())
        return batches

    def close(self) -> None:
        """End all judges, and disconnect from the cluster."""
        self.end_judges()
        self._ray.shutdown()

    def _start_judges(self, count: int) -> None:
        """Have so many judges, each on a free device, with this process's variables of the suite."""
        variables = {name: value for name, value in os.environ.items() if name.startswith("POOLPROOF_")}
        custom = {"num_cpus": 0, "resources": {self._resource: 1}}
        device = {"CPU": {"num_cpus": 1}, "GPU": {"num_gpus": 1}}.get(self._resource, custom)
        options = {"max_restarts": -1, "max_task_retries": -1, "runtime_env": {"env_vars": variables}}
        actor = self._ray.remote(Judge).options(**options, **device)
        for number in range(len(self._judges), count):
            self._judges.append(actor.remote(self._run, number))


def pool_of(backends: Sequence[str], address: str, resource: str | None, workers: int | None) -> RayPool:
    """Make the pool of the options --ray, --ray-resource and --ray-workers."""
    return RayPool(address, resource or resource_of(backends), workers)


def resource_of(backends: Iterable[str]) -> str:
    """Return Ray's name of the devices that backends run on; `FleetError` if they need several kinds."""
    kinds = {next((kind for word, kind in _DEVICES.items() if word in name), "CPU") for name in backends}
    if len(kinds) > 1:
        raise FleetError(f"--ray: the backends run on {' and '.join(sorted(kinds))}: judge them in runs of their own")
    return kinds.pop()


def _connected(address: str) -> Any:
    """Import Ray and connect it to the cluster at an address."""
    try:
        import ray
    except ImportError as error:
        raise FleetError("--ray needs Ray: pip install 'poolproof[ray]' from a clone") from error
    try:
        if address != AUTO:
            _check_reachable(address)
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        ray.init(address=None if address == AUTO else address, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise FleetError(f"--ray {address}: no cluster answers there: {_first_line(error)}") from error
    return ray


def _check_reachable(address: str) -> None:
    """Raise OSError or ValueError if nothing listens: Ray would retry for minutes."""
    place = urlsplit(address if "://" in address else f"//{address}")
    if place.hostname is None or place.port is None:
        raise ValueError("an address is HOST:PORT, or auto")
    socket.create_connection((place.hostname, place.port), timeout=10.0).close()


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
