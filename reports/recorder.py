"""The folder, the rows and the end of a run, for the plugin of pytest that judges.

Every process of a run (each xdist worker, or the only one) has a `Recorder`. The controlling process also has its
`RunFolder`, and the `Ending` that publishes it. The modules of finished runs are imported at the end: workers never
need them.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from poolproof.reports.rows import store
from poolproof.reports.rows.environment import host_environment, suite_identity
from poolproof.reports.rows.evidence import evidence_path, unclaimed
from poolproof.reports.rows.failures import evidence_kinds
from poolproof.reports.rows.io_errors import CannotGoOn, CannotWrite, describe, memory_remedy
from poolproof.reports.rows.records import Done, first_difference, first_key
from poolproof.reports.rows.verdicts import FAILED, BadInput, Overall
from poolproof.reports.waivers import Waivers, to_record

if TYPE_CHECKING:
    import pandas as pd

    from poolproof.reports.figures.digest import Digest

FAILURES = "failures.txt"
"""File in a run's folder with pytest's text on failing blocks."""

RUN_ARGUMENTS = ("-p", "poolproof.suites.plugin", "--pyargs", "poolproof.suites")
"""Arguments of pytest that ``poolproof run`` stands for."""


class CannotOpen(BadInput):
    """The report folder cannot be used; the text says what to do."""


def finished_work(folder: Path) -> Done:
    """Return the finished work by the rows in a folder; empty for a new one."""
    if not (folder / "rows").is_dir():
        return Done()
    from poolproof.reports.figures import tables

    def distinct(rows: pd.DataFrame, *names: str) -> frozenset[Any]:
        return frozenset(rows[list(names)].itertuples(index=False, name=None))

    blocks, has_failed = store.finished_blocks(folder), store.having("verdict", FAILED)
    failed = store.read_rows(folder, ["backend", "case_id", "operator", "verdict", "checks_violated"], has_failed)
    left = (row for row in failed.to_pylist() if evidence_path(folder, row["case_id"], row["backend"]).exists())
    rows = tables.load(folder, ["block", "case_id", "backend", "operator", "dtype", "index_dtype"])
    rest = rows[rows["block"].notna() & ~rows["block"].isin(blocks)]
    return Done(
        blocks,
        cases=distinct(rest, "block", "case_id"),
        unsupported=distinct(rows[rows["block"].isna()], "backend", "operator", "dtype", "index_dtype"),
        unplanned=distinct(rows[rows["block"] == ""], "backend", "case_id"),
        recorded=distinct(rest, "backend", "block", "case_id"),
        evidence=Counter(kind for row in left for kind in evidence_kinds(row)),
    )


def require_same_run(folder: Path, record: Mapping[str, Any]) -> None:
    """Raise `CannotOpen` about the first difference between a run and the one in the folder that it would resume."""
    before = store.read_run(folder)
    as_begun = f"choose another --report folder, or continue that run: {resuming_line(before['arguments'])}"
    for name in ("suite", "selection", "backends"):
        if difference := first_difference(name, before.get(name), record.get(name)):
            path, was, now = difference
            raise CannotOpen(f"{folder} holds another run: {path} is {was!r} there, and {now!r} now; {as_begun}")
    was, given = ({waiver["id"]: waiver for waiver in one["waivers"]} for one in (before, record))
    if (name := first_key(was, given)) is not None:
        began, now = "with" if name in was else "without", "is" if name in given else "is not"
        changed = "and now it would be with another one" if name in was and name in given else f"which {now} given now"
        raise CannotOpen(f"{folder} holds a run that was begun {began} waiver {name!r}, {changed}: {as_begun}")


def resuming_line(arguments: Sequence[str]) -> str:
    """Return the command that resumes a run, from the ``arguments`` of pytest that began it."""
    begun, by_name = [argument for argument in arguments if argument != "--resume"], len(RUN_ARGUMENTS)
    shown = ["poolproof", "run", *begun[by_name:]] if begun[:by_name] == [*RUN_ARGUMENTS] else ["pytest", *begun]
    return shlex.join([*shown, "--resume"])


class RunFolder:
    """The locked folder of a run, with the ``record`` of its ``run.json``.

    `CannotOpen` is raised if another session writes to it, if a named folder is in use, or if there is nothing to
    resume.
    """

    def __init__(self, given: Path | None, resumes: bool) -> None:
        self.path = folder = given or store.DEFAULT_FOLDER
        self.record: dict[str, Any] = {}
        self.planned: Counter[str] = Counter()
        """Cases of each aspect that the run must judge, before tests are selected."""
        left = list(folder.iterdir()) if resumes and folder.is_dir() else []
        self.begins_anew = resumes and folder.is_dir() and all(path.suffix == ".tmp" for path in left)
        """Whether there is nothing to resume, because a session died before it had written ``run.json``."""
        self._resumes = resumes = resumes and not self.begins_anew
        if resumes:
            try:
                store.read_run(folder)
            except store.NotARun as error:
                raise CannotOpen(f"nothing to resume: {error}") from error
        else:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                reason = f"{folder} is no folder for a run ({error.strerror})"
                raise CannotOpen(f"{reason}: name another --report folder") from error
        store.lock(folder)
        for path in left if self.begins_anew else ():
            path.unlink()
        if not resumes and any(folder.iterdir()):
            if given is not None:
                how = "name another --report folder, or go on with its run by --resume"
                raise CannotOpen(f"{folder} is not empty: {how}")
            self._clear()

    def _clear(self) -> None:
        try:
            store.read_run(self.path)  # only runs are ever deleted
        except store.NotARun as error:
            raise CannotOpen(f"{self.path} is not empty and {error}: name another --report folder") from error
        for path in self.path.iterdir():  # the folder itself has the lock
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def spent(self) -> tuple[float, float]:
        """Return the seconds of all budgets of earlier sessions of the run, and those that they used."""
        try:
            before = store.read_run(self.path).get("budget", {})
        except store.NotARun:
            before = {}
        return before.get("seconds", 0.0), before.get("took", 0.0)

    def begin(self, record: Mapping[str, Any], waivers: Waivers, is_strict: bool) -> None:
        """Write ``run.json``; a resumed run keeps its id and its start.

        ``record`` has plan, seed, arguments, backends and mandatory (`coverage.MandatoryGroup`).
        """
        record = {**record, "suite": suite_identity(), "waivers": [*map(to_record, waivers.all)]}
        identity = {"id": uuid4().hex, "started": time.time()}
        if self._resumes:
            require_same_run(self.path, record)
            before = store.read_run(self.path)
            identity = {name: before[name] for name in identity}
            self.tidy()
        self.planned = cases_of(record["mandatory"])
        added = {"finished": None, "host": host_environment(), "waivers_judged_on": waivers.today.isoformat()}
        self.update(**record, **identity, **added, strict_waivers=is_strict)

    def update(self, **entries: Any) -> None:
        self.record |= entries
        store.write_run(self.path, self.record)

    def narrow(self, tests: Sequence[str], mandatory: Sequence[Mapping[str, Any]]) -> None:
        """Narrow the run to the ``mandatory`` groups of the selected ``tests``, wherever the run is shown."""
        counts = {"selected": cases_of(mandatory).total(), "planned": self.planned.total()}
        self.update(mandatory=list(mandatory), narrowed=counts | {"tests": list(tests)})

    def spend(self, seconds: float, is_used_up: bool) -> None:
        """Record the seconds of the budget that the session used, and whether it is used up."""
        budget = self.record["budget"]
        budget |= {"took": budget["took"] + seconds, "until": time.time() if is_used_up else None}

    def tidy(self) -> None:
        """Turn the journals of dead processes into parts, and remove evidence without a row."""
        store.compact_leftovers(self.path)
        for path in unclaimed(self.path):
            path.unlink()


def cases_of(mandatory: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Return the number of cases of mandatory groups, by aspect."""
    planned = Counter[str]()
    for group in mandatory:
        planned[group["aspect"]] += group["planned"]
    return planned


class Recorder:
    """The ``rows`` of one process of a run, and the ``fault`` that ends its session, in one sentence.

    A fault is nobody's verdict: a full disk, an adapter that only raises, a hook of another plugin. The first one
    counts: ``stop`` is called with it. Earlier rows stay recorded.
    """

    def __init__(self, folder: Path, worker: str, stop: Callable[[str], object]) -> None:
        self.rows = store.RowWriter(folder, worker)
        self.fault = ""
        self._stop = stop

    def note(self, fault: Exception | str) -> None:
        self.fault = self.fault or (fault if isinstance(fault, str) else sentence(fault))
        self._stop(self.fault)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note an exception inside, and continue after it."""
        try:
            yield
        except pytest.exit.Exception:
            raise
        except Exception as error:
            self.note(error)


def sentence(error: Exception) -> str:
    if isinstance(error, CannotWrite | OSError):
        return f"{describe(error) if isinstance(error, OSError) else error}, and go on with --resume"
    if isinstance(error, CannotGoOn):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if any(map(Path(frame.filename).is_relative_to, _ROOMS))]
    is_own = bool(ours) and (ours[-1] is frames[-1] or Path(ours[-1].filename) != _PLUGIN)
    last = ours[-1] if is_own else frames[-1]
    text = " ".join(traceback.format_exception_only(error)[-1].split())
    where = f"{text} ({Path(last.filename).name}, line {last.lineno}, in {last.name})"
    if is_own:
        return f"poolproof itself failed at the end of the session: {where}; rows are kept, for --resume to go on with"
    return f"a plugin failed at the end of the session: {where}; leave it out by -p no:NAME, and go on with --resume"


_ROOMS = tuple(Path(__file__).parents[1] / room for room in ("references", "backends", "suites", "reports"))
_PLUGIN = Path(__file__).parents[1] / "suites" / "plugin.py"
"""The module through which the hooks of other plugins are called."""


def try_imports() -> None:
    """Raise `CannotOpen` if modules for the end of a run cannot be imported: it would lose its results."""
    try:
        for name in ("figures.digest", "pages.publishing", "terminal.run", "ci.services"):
            import_module(f"poolproof.reports.{name}")
    except (ImportError, MemoryError) as error:
        why = f"{str(error) or 'memory is used up'}; {memory_remedy() or 'install versions that go together'}"
        raise CannotOpen(f"a run cannot be reported at its end: {why}") from error


class Ending:
    """The end of a run in the controlling process: publish it, then its exit status, then its conclusion."""

    def __init__(self, folder: RunFolder, recorder: Recorder) -> None:
        self._folder, self._recorder = folder, recorder
        self._digest: Digest | None = None
        self._remarks: list[str] = []
        self._annotations: list[str] = []

    def publish(self, service: str, is_interrupted: bool) -> None:
        """Close the run, write its pages and tell the CI service; each failure is a fault."""
        from poolproof.reports.ci.services import annotate
        from poolproof.reports.figures.digest import read_digest
        from poolproof.reports.pages.publishing import publish

        noting, folder = self._recorder.noting, self._folder
        with noting():
            folder.tidy()
        with noting():
            folder.update(finished=time.time())
        with noting():
            self._digest = read_digest(folder.path)
            with noting():
                publish(self._digest, folder.path)
            annotate(self._digest, service, os.environ, self._annotations.append)
        if is_interrupted and not self._recorder.fault:
            self._remarks.append("interrupted: the judged cases are kept; judge the rest with")
            self._remarks.append(resuming_line(folder.record["arguments"]))

    def status(self, pytest_status: int) -> int:
        """Return the exit status of the session.

        The rows decide. If they have nothing against the implementation, pytest's status still counts, because other
        tests may run in the same session. An exception is the status for no tests: everything was done before. A fault
        outweighs all: something is not recorded, or not published.
        """
        if self._digest is None or self._recorder.fault or pytest_status == pytest.ExitCode.INTERNAL_ERROR:
            return Overall.COULD_NOT_RUN
        overall = self._digest.conclusion.overall
        done_before = pytest_status == pytest.ExitCode.NO_TESTS_COLLECTED
        return overall if overall or done_before else pytest_status

    def show(self, reporter: Any, status: int, is_verbose: bool) -> None:
        """Print the run's conclusion after all other output; it is the last line.

        Without a ``reporter``, pytest's own, or with --no-summary, only a fault is printed.
        """
        if self._digest is None or reporter is None or reporter.no_summary:
            sys.stderr.write(f"{self._recorder.fault}\n" if self._recorder.fault else "")
            return
        from poolproof.reports.terminal import run as terminal
        from poolproof.reports.terminal.painting import SafeConsole

        reporter.section("poolproof")
        writer, path = reporter.config.get_terminal_writer(), self._folder.path
        width = writer.fullwidth if writer.hasmarkup else max(writer.fullwidth, 140)
        text = StringIO()
        shown = SafeConsole(file=text, width=width, force_terminal=writer.hasmarkup)
        lines = [f"rows, evidence and summary.md: {path}, page: {path / 'index.html'}", *self._remarks]
        if (path / FAILURES).exists() and not is_verbose:
            lines.insert(1, f"failing cases with replay lines, a few of each block: {path / FAILURES} (or -v)")
        terminal.show(self._digest, shown, self._recorder.fault, lines, whole=is_verbose, status=status)
        for line in self._annotations:  # a service obeys them as they are
            writer.line(line)
        writer.write(text.getvalue())
