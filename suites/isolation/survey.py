"""Surveys: what backends say of themselves, and which libraries they are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace

from poolproof.backends.abilities import ALL
from poolproof.backends.base import BackendUnavailable, UnknownBackend
from poolproof.backends.registry import check_name
from poolproof.reports.rows.text import visible
from poolproof.suites.isolation import landlock
from poolproof.suites.isolation.environment import identify
from poolproof.suites.isolation.worker import Worker
from poolproof.suites.plan.plans import Survey, subjects

AT_A_TIME = os.cpu_count() or 1
"""Backends that `surveys` loads at a time."""


def survey(backend: str) -> Survey:
    """Survey a backend and identify its libraries; `BackendUnavailable` or `UnknownBackend` if it cannot run here."""
    found, worker = surveyed(backend)
    worker.close()
    return found


def surveys(names: Sequence[str]) -> Iterator[tuple[str, Survey | BackendUnavailable | UnknownBackend]]:
    """Yield the survey of each backend, or why it cannot run here; as many are loaded at a time as there are cores."""
    workers = {name: Worker(name) for name in names}
    with ExitStack() as stack:
        for number, name in enumerate(names):
            for loaded in names[number and number + AT_A_TIME - 1 : number + AT_A_TIME]:
                stack.callback(workers[loaded].close)
                with suppress(BackendUnavailable, UnknownBackend):  # it is raised again where it is waited for
                    workers[loaded].begin_loading()
            try:
                yield name, surveyed(name, workers[name])[0]
            except (BackendUnavailable, UnknownBackend) as error:
                yield name, error
            workers[name].close()


def surveyed(backend: str, worker: Worker | None = None) -> tuple[Survey, Worker]:
    """Survey a backend, as `survey`, and keep its worker, with the backend loaded, for the caller to close."""
    check_name(backend)
    worker = worker or Worker(backend)
    try:
        worker.load()
        found = survey_of(worker)
        return replace(found, environment=found.environment | identify(worker.description.libraries)), worker
    except BaseException:
        worker.close()
        raise


def survey_of(worker: Worker) -> Survey:
    """Survey a backend that is loaded; `UnknownBackend` for a declaration that its product's contract forbids."""
    said = worker.description
    found = subjects(worker.backend, worker.remote)
    limited = [subject for subject in found if subject.abilities != ALL]
    if limited and said.product and not said.interface:
        declares = f"declares abilities, but it runs on {said.product}, whose contract says which it must have"
        raise UnknownBackend(f"backend {worker.backend!r} {declares}")
    environment = {visible(name): visible(text) for name, text in said.environment.items()}
    environment["isolation"] = landlock.describe()
    environment |= {f"abilities of {subject.operator.name}": str(subject.abilities) for subject in limited}
    return Survey(environment, found, said.product)
