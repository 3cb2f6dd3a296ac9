"""Attribution of exceptions that end the judging of a question: to the adapter or to the suite.

They are never the implementation's. What escapes a method of the backend is the adapter's, which promises to raise
nothing that the implementation reports, and so is an outcome that is none; anything else is a fault of the suite
itself. For processes that go on to the next question.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from types import NoneType
from typing import Any, cast

from poolproof.backends.base import Backend, Call, Outcome, Phases, Status, Streams
from poolproof.references.accumulation import AccumulationModel
from poolproof.reports.rows.io_errors import CannotWrite
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.judging.findings import Finding, Mismatch
from poolproof.suites.judging.question import Question, verdict


class AdapterFault(Exception):
    """A method of a backend raised, which is the cause, or gave what it may not: then the text says what."""


class _AttributingPart:
    """A backend, or a part of it, whose methods raise `AdapterFault` and nothing else."""

    def __init__(self, wrapped: Backend | Streams | Phases) -> None:
        self.wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.wrapped, name)
        if not callable(found):
            return found
        attributing = self.__dict__[name] = _attributing_errors(found)
        return attributing


class _AttributingBackend(_AttributingPart):
    """A backend that returns nothing from `run` but what a call can come to."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        try:
            outcome = cast(Backend, self.wrapped).run(call, mode)
        except Exception as error:
            raise AdapterFault from error
        _check_outcome(outcome, call)
        return outcome

    def accumulation(self, call: Call) -> AccumulationModel:
        model = _attributing_errors(cast(Backend, self.wrapped).accumulation)(call)
        if not isinstance(model, AccumulationModel):
            raise AdapterFault(f"returned {model!r:.80} from accumulation, not an AccumulationModel")
        return model

    @property
    def streams(self) -> _AttributingPart | None:
        return self._part("streams")

    @property
    def phases(self) -> _AttributingPart | None:
        return self._part("phases")

    def _part(self, name: str) -> _AttributingPart | None:
        found = getattr(self.wrapped, name)
        return None if found is None else _AttributingPart(found)


def answer(question: Question, backend: Backend) -> Row:
    """Return the row of the question, whatever is raised while it is judged.

    But for `CannotWrite`: that is neither's fault, and no question can be judged and recorded while it lasts.
    """
    try:
        return question.judge(_attributing(backend))
    except AdapterFault as fault:
        cause = fault.__cause__
        reason = f"the adapter {_raised(cause) if cause else fault}"
        return _not_judged(question, Verdict.ADAPTER_ERROR, reason, cause or fault)
    except CannotWrite:
        raise
    except Exception as error:
        return _not_judged(question, Verdict.SUITE_ERROR, f"the suite itself {_raised(error)}", error)


@lru_cache(maxsize=1)
def _attributing(backend: Backend) -> Backend:
    """Wrap the backend; cached, because a process puts many questions to one backend."""
    return cast(Backend, _AttributingBackend(backend))


_OUTCOME_HOLDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "status": (Status, "a Status"),
    "code": ((int, NoneType), "an integer or None"),
    "message": (str, "a text"),
    "seconds": ((int, float), "a number"),
    "results": (Mapping, "a mapping"),
    "strides": (Mapping, "a mapping"),
    "guard_violations": (tuple, "a tuple of texts"),
}
"""What each field of an outcome holds."""


def _check_outcome(outcome: object, call: Call) -> None:
    """Raise `AdapterFault` where that is nothing that a call can come to."""
    if not isinstance(outcome, Outcome):
        raise AdapterFault(f"returned {outcome!r:.80} from run, not an Outcome")
    held = _fields_of(outcome)
    kinds = tuple(map(type, held))
    if kinds not in _RIGHT_KINDS:
        for given, (name, (types, wanted)) in zip(held, _OUTCOME_HOLDS.items(), strict=True):
            if not isinstance(given, types):
                raise AdapterFault(f"returned an Outcome whose {name} is {given!r:.80}, not {wanted}")
        _RIGHT_KINDS.add(kinds)
    unknown = {*outcome.results, *outcome.strides}.difference(call.operator.outputs)
    if unknown:
        raise AdapterFault(f"returned an Outcome about {min(unknown)!r:.80}, which is no output of the call")


_fields_of = attrgetter(*_OUTCOME_HOLDS)

_RIGHT_KINDS: set[tuple[type, ...]] = set()
"""Types of the fields of outcomes that held what they may: those of most that come after."""


def _attributing_errors(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except Exception as error:
            raise AdapterFault from error

    return call


def _raised(error: BaseException) -> str:
    """Say what was raised, and where."""
    *_, last = traceback.extract_tb(error.__traceback__)
    said = " ".join(traceback.format_exception_only(error)[-1].split())
    return f"raised {said} ({Path(last.filename).name}, line {last.lineno}, in {last.name})"


def _not_judged(question: Question, kind: Verdict, reason: str, error: BaseException) -> Row:
    """Return a row that accuses nobody; its finding holds the traceback."""
    traceback_finding = Finding(str(kind), Mismatch("".join(traceback.format_exception(error))))
    nobody = {"checks_violated": [], "checks_judged": [], "judged_at": time.time()}
    return question.describe() | verdict(kind, reason, [traceback_finding]) | nobody
