"""Faults that end a session and are nobody's verdict: a full disk, a file not writable, a hook of another plugin.

Each process of a session has one `SessionFaults`, a pytest plugin of its own. The first fault stops the tests and, in
one sentence, is the session's conclusion; rows recorded before it stand. A fault in an xdist worker is passed to the
process that controls it.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from poolproof.reports.rows.io_errors import CannotWrite, describe
from poolproof.reports.rows.verdicts import Overall

_STOPPED = "the session cannot go on"
_OUTPUT = "poolproof_fault"


class SessionFaults:
    """Keeps the faults of one process; ``first`` is the sentence of the first, empty while there is none."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._session: pytest.Session | None = None
        self.first = ""

    def note(self, fault: Exception | str) -> None:
        """Stop the session for that reason, unless it has one already."""
        self.first = self.first or (fault if isinstance(fault, str) else sentence(fault))
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[_OUTPUT] = self.first
        if self._session is not None:
            self._session.shouldstop = _STOPPED

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Note an error of the system inside, and go on behind."""
        try:
            yield
        except (CannotWrite, OSError) as error:
            self.note(error)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        error = call.excinfo.value if call.excinfo else None
        if isinstance(error, CannotWrite):
            self.note(error)
            report.longrepr = _STOPPED
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        if isinstance(excinfo.value, CannotWrite):
            self.note(excinfo.value)
            raise pytest.exit.Exception(self.first, returncode=Overall.COULD_NOT_RUN) from None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        fault = getattr(node, "workeroutput", {}).get(_OUTPUT)
        if fault:
            self.note(fault)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Catch what all others raise at the end, the terminal's summary included: the run is closed by then."""
        try:
            return (yield)
        except pytest.exit.Exception:
            raise
        except Exception as error:
            self.note(error)
            raise pytest.exit.Exception(self.first, returncode=Overall.COULD_NOT_RUN) from None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_unconfigure(self) -> Generator[None, object, object]:
        """Catch what others raise last of all: pytest shows nothing behind it."""
        try:
            return (yield)
        except Exception as error:
            self.note(error)
            sys.stderr.write(f"{self.first}\n")
            if self._session is not None:
                self._session.exitstatus = Overall.COULD_NOT_RUN
            return None


def sentence(error: Exception) -> str:
    """Describe an error that ends a session, in one sentence."""
    match error:
        case CannotWrite():
            return f"{error}, and go on with --resume"
        case OSError():
            return f"{describe(error)}, and go on with --resume"
    *_, last = traceback.extract_tb(error.__traceback__)
    said = " ".join(traceback.format_exception_only(error)[-1].split())
    return (
        f"a plugin failed at the end of the session: {said} ({Path(last.filename).name}, line {last.lineno}, in "
        f"{last.name}); leave it out by -p no:NAME, and go on with --resume"
    )
