"""What ends the judging of a question: the death of the backend's process, or an exception, and who is to blame.

An exception is never the implementation's fault. If it passes through a method of the backend, or if the outcome is
invalid, it is the adapter's. Any other exception is a fault of poolproof.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from poolproof.backends.base import Backend
from poolproof.reports.rows.io_errors import CannotWrite
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.judging.findings import Finding, Mismatch
from poolproof.suites.judging.question import Question, verdict


class HostDied(Exception):
    """The process that was to answer died: its verdict, the ``reason``, and the last line that it printed.

    ``was_killed``: it ended by SIGKILL, which no fault of memory or arithmetic raises.
    """

    def __init__(self, verdict: Verdict, reason: str, last_words: str, was_killed: bool = False) -> None:
        super().__init__(reason + last_words)
        self.verdict, self.reason, self.last_words, self.was_killed = verdict, reason, last_words, was_killed


class AdapterError(Exception):
    """The adapter of a backend in another process raised, or returned something invalid, as the text says.

    ``traceback`` is that of the other process.
    """

    def __init__(self, text: str, traceback: str = "") -> None:
        super().__init__(text)
        self.traceback = traceback


def answer(question: Question, backend: Backend) -> Row:
    """Return the row of the question, whatever is raised while it is judged.

    Only `CannotWrite` and `HostDied` are raised: while a disk is full, no question can be judged and recorded.
    """
    try:
        return question.judge(backend)
    except AdapterError as error:
        return _not_judged(question, Verdict.ADAPTER_ERROR, f"the adapter {error}", error.traceback or str(error))
    except (CannotWrite, HostDied):
        raise
    except Exception as error:
        whole = "".join(traceback.format_exception(error))
        *_, last = traceback.extract_tb(error.__traceback__)
        notes = getattr(error, "__notes__", ())
        line = traceback.format_exception_only(error)[-1 - len(notes)].strip()
        text = " ".join("; ".join([line, *notes]).split())
        raised = f"raised {text} ({Path(last.filename).name}, line {last.lineno}, in {last.name})"
        callers = (frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__))
        if any(caller is backend for caller in callers):
            return _not_judged(question, Verdict.ADAPTER_ERROR, f"the adapter {raised}", whole)
        return _not_judged(question, Verdict.SUITE_ERROR, f"the suite itself {raised}", whole)


def _not_judged(question: Question, kind: Verdict, reason: str, whole: str) -> Row:
    """Return a row that blames no implementation; its finding has the traceback."""
    finding = Finding(str(kind), Mismatch(whole))
    return question.describe() | verdict(kind, reason, [finding]) | {"checks_violated": [], "checks_judged": []}
