"""Whose an exception is that ends the judging of a question: the adapter's or the suite's, never the implementation's.

For whoever has questions answered in a process that goes on. What escapes a method of the backend is the adapter's,
which promises to raise nothing that the implementation reports; anything else is a fault of the suite itself.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, cast

from poolproof.backends.base import Backend, Streams
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.judging.asked import Asked, verdict
from poolproof.suites.judging.findings import Finding, Mismatch


class AdapterFault(Exception):
    """A method of a backend raised; the cause is what it raised."""


@dataclass(frozen=True)
class _Charged:
    """A backend, or its streams, whose methods raise `AdapterFault` and nothing else."""

    charged: Backend | Streams

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.charged, name)
        return _charging(found) if callable(found) else found

    @property
    def streams(self) -> _Charged | None:
        """Those of a backend."""
        found = self.__getattr__("streams")
        return found and _Charged(found)


def answer(question: Asked, backend: Backend) -> Row:
    """The row of the question, whatever is raised while it is judged."""
    try:
        return question.judge(cast(Backend, _Charged(backend)))
    except AdapterFault as fault:
        return _not_judged(question, Verdict.ADAPTER_ERROR, "the adapter", fault.__cause__ or fault)
    except Exception as error:
        return _not_judged(question, Verdict.SUITE_ERROR, "the suite itself", error)


def _charging(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except Exception as error:
            raise AdapterFault from error

    return call


def _not_judged(question: Asked, kind: Verdict, whose: str, error: BaseException) -> Row:
    """A row that accuses nobody: its reason says what was raised and where, its finding holds the traceback."""
    *_, last = traceback.extract_tb(error.__traceback__)
    said = " ".join(traceback.format_exception_only(error)[-1].split())
    reason = f"{whose} raised {said} ({Path(last.filename).name}, line {last.lineno}, in {last.name})"
    told = Finding(str(kind), Mismatch("".join(traceback.format_exception(error))))
    nobody = {"checks_violated": [], "checks_judged": [], "judged_at": time.time()}
    return question.describe() | verdict(kind, reason, [told]) | nobody
