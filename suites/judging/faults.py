"""Whose an exception is that ends the judging of a question: the adapter's or the suite's, never the implementation's.

For whoever has questions answered in a process that goes on. What escapes a method of the backend is the adapter's,
which promises to raise nothing that the implementation reports, and so is an outcome that is none; anything else is a
fault of the suite itself.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
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
from poolproof.suites.judging.asked import Asked, verdict
from poolproof.suites.judging.findings import Finding, Mismatch


class AdapterFault(Exception):
    """A method of a backend raised, which is the cause, or gave what it may not: then the text says what."""


class _ChargedPart:
    """A backend, or a part of it, whose methods raise `AdapterFault` and nothing else."""

    def __init__(self, charged: Backend | Streams | Phases) -> None:
        self.charged = charged

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.charged, name)
        if not callable(found):
            return found
        charging = self.__dict__[name] = _charging(found)
        return charging


class _Charged(_ChargedPart):
    """A backend that returns nothing from `run` but what a call can come to."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        try:
            outcome = cast(Backend, self.charged).run(call, mode)
        except Exception as error:
            raise AdapterFault from error
        _check_outcome(outcome, call)
        return outcome

    def accumulation(self, call: Call) -> AccumulationModel:
        model = _charging(cast(Backend, self.charged).accumulation)(call)
        if not isinstance(model, AccumulationModel):
            raise AdapterFault(f"returned {model!r:.80} from accumulation, not an AccumulationModel")
        return model

    @property
    def streams(self) -> _ChargedPart | None:
        return self._part("streams")

    @property
    def phases(self) -> _ChargedPart | None:
        return self._part("phases")

    def _part(self, name: str) -> _ChargedPart | None:
        found = getattr(self.charged, name)
        return None if found is None else _ChargedPart(found)


def answer(question: Asked, backend: Backend) -> Row:
    """The row of the question, whatever is raised while it is judged.

    But for `CannotWrite`: that is neither's, and no question can be judged and recorded while it lasts.
    """
    try:
        return question.judge(_charged(backend))
    except AdapterFault as fault:
        cause = fault.__cause__
        told = f"the adapter {_raised(cause) if cause else fault}"
        return _not_judged(question, Verdict.ADAPTER_ERROR, told, cause or fault)
    except CannotWrite:
        raise
    except Exception as error:
        return _not_judged(question, Verdict.SUITE_ERROR, f"the suite itself {_raised(error)}", error)


@lru_cache(maxsize=1)
def _charged(backend: Backend) -> Backend:
    """Kept, because a process asks one backend after another question."""
    return cast(Backend, _Charged(backend))


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
    """`AdapterFault` where that is nothing that a call can come to."""
    if not isinstance(outcome, Outcome):
        raise AdapterFault(f"returned {outcome!r:.80} from run, not an Outcome")
    held = _fields_of(outcome)
    kinds = tuple(map(type, held))
    if kinds not in _RIGHT_KINDS:
        _check_fields(held)
        _RIGHT_KINDS.add(kinds)
    strangers = {*outcome.results, *outcome.strides}.difference(call.operator.outputs)
    if strangers:
        raise AdapterFault(f"returned an Outcome about {min(strangers)!r:.80}, which is no output of the call")


_fields_of = attrgetter(*_OUTCOME_HOLDS)

_RIGHT_KINDS: set[tuple[type, ...]] = set()
"""Types of the fields of outcomes that held what they may: those of most that come after."""


def _check_fields(held: Sequence[object]) -> None:
    """`AdapterFault` where a field of an outcome, in the order of the table, holds what it may not."""
    for given, (name, (kinds, wanted)) in zip(held, _OUTCOME_HOLDS.items(), strict=True):
        if not isinstance(given, kinds):
            raise AdapterFault(f"returned an Outcome whose {name} is {given!r:.80}, not {wanted}")


def _charging(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except Exception as error:
            raise AdapterFault from error

    return call


def _raised(error: BaseException) -> str:
    """What was raised, and where."""
    *_, last = traceback.extract_tb(error.__traceback__)
    said = " ".join(traceback.format_exception_only(error)[-1].split())
    return f"raised {said} ({Path(last.filename).name}, line {last.lineno}, in {last.name})"


def _not_judged(question: Asked, kind: Verdict, reason: str, error: BaseException) -> Row:
    """A row that accuses nobody; its finding holds the traceback."""
    told = Finding(str(kind), Mismatch("".join(traceback.format_exception(error))))
    nobody = {"checks_violated": [], "checks_judged": [], "judged_at": time.time()}
    return question.describe() | verdict(kind, reason, [told]) | nobody
