"""Surveys: the descriptions of backends, with the identities of their libraries."""

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
    """Survey a backend and identify its libraries; raise `BackendUnavailable` or `UnknownBackend` on failure."""
    described, worker = surveyed(backend)
    worker.close()
    return described


def surveys(names: Sequence[str]) -> Iterator[tuple[str, Survey | BackendUnavailable | UnknownBackend]]:
    """Yield the survey of each backend, or why it cannot run here; as many load at a time as there are cores."""
    workers = {name: Worker(name) for name in names}
    with ExitStack() as stack:
        for number, name in enumerate(names):
            for loaded in names[number and number + AT_A_TIME - 1 : number + AT_A_TIME]:
                stack.callback(workers[loaded].close)
                with suppress(BackendUnavailable, UnknownBackend):  # raised again below
                    workers[loaded].begin_loading()
            try:
                yield name, surveyed(name, workers[name])[0]
            except (BackendUnavailable, UnknownBackend) as error:
                yield name, error
            workers[name].close()


def surveyed(backend: str, worker: Worker | None = None) -> tuple[Survey, Worker]:
    """Survey a backend, as `survey`, and return its worker, too, for the caller to close."""
    check_name(backend)
    worker = worker or Worker(backend)
    try:
        worker.load()
        described = survey_of(worker)
        return replace(described, environment=described.environment | identify(worker.description.libraries)), worker
    except BaseException:
        worker.close()
        raise


def survey_of(worker: Worker) -> Survey:
    """Survey a loaded backend; raise `UnknownBackend` if the contract of its product forbids its declaration."""
    description = worker.description
    all_subjects = subjects(worker.backend, worker.remote)
    limited = [subject for subject in all_subjects if subject.abilities != ALL]
    if limited and description.product and not description.interface:
        declares = f"declares abilities, but it runs on {description.product}, and that product's contract sets them"
        raise UnknownBackend(f"backend {worker.backend!r} {declares}")
    environment = {visible(name): visible(text) for name, text in description.environment.items()}
    environment["isolation"] = landlock.describe()
    environment |= {f"abilities of {subject.operator.name}": str(subject.abilities) for subject in limited}
    return Survey(environment, all_subjects, description.product)
