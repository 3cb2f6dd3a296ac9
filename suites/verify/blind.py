"""Calls of passing cases by a plain program, for a library that computes correctly only where it is judged.

A library can recognise the host: by poison in outputs, guard bands, modules of the process, variables or threads.
`call.py` with ``--plain`` has none of these, and judges the result by the same intervals. A library that looks for
`call.py` itself is not found.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from poolproof.backends.registry import python_of
from poolproof.references.optional import optional
from poolproof.reports.rows.evidence import Meta, call_lines, write_evidence, write_programs
from poolproof.reports.rows.schema import Row
from poolproof.suites.isolation import landlock
from poolproof.suites.judging.evidence import evidence_of_row

_OWN_VARIABLES = re.compile(r"(?:POOLPROOF|PYTEST)_|OMP_NUM_THREADS\Z")
"""Variables of hosts and tests; the plain program gets those of them that the row names."""

_CLAIMED = {"results", "memory_untouched"}
"""Checks that judged a row of which `call.py` may hold strides and memory against the call."""

_ASSIGNMENT = re.compile(r"(\w+)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class PlainCall:
    """A call that a plain program made.

    ``wrong`` says what is wrong with the result, and ``failed`` why there is none to judge; empty if nothing is.
    """

    row: Row
    wrong: str = ""
    failed: str = ""


def call_blind(rows: Iterable[Row], most: int, seconds: float) -> list[PlainCall]:
    """Make the calls of the first conforming ``rows`` that a plain program can make, at most so many.

    It makes none of a backend that is neither torch nor aclnn, of a case of more than a million elements, of one that
    takes indices from the backend's own forward, or of one whose memory was not judged. One call may take so many
    ``seconds``.
    """
    with TemporaryDirectory() as folder, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        write_programs(Path(folder))
        return list(
            pool.map(lambda each: _called(each[0], each[1], seconds), islice(_commands(rows, Path(folder)), most))
        )


def _commands(rows: Iterable[Row], folder: Path) -> Iterator[tuple[Row, list[str]]]:
    """Write the evidence of each row that has any, and yield the words of the command that makes its call."""
    for number, row in enumerate(rows):
        evidence = folder / "evidence" / f"{number}.npz"
        lines = call_lines(str(folder / "evidence" / "call.py"), str(evidence), row, _libraries(row))
        if (
            lines
            and _CLAIMED.issubset(row["checks_judged"] or ())
            and (made := evidence_of_row(row))
            and _is_made_by(row, made[1])
        ):
            write_evidence(evidence, made[0], made[1] | Meta(backend=row["backend"]))
            yield row, shlex.split(lines[0])


def _is_made_by(row: Row, meta: Meta) -> bool:
    """Tell whether `call.py` has the function that the backend calls: torch's have no name for a mask."""
    return not row["backend"].startswith("torch") or meta["call"]["torch"] is not None


def _libraries(row: Row) -> list[object]:
    if row["backend"].startswith("emulator-"):
        return [optional("poolproof.backends.emulator.build:library")()]
    given = row.get("given") or ()
    return [path for option, path in pairwise(given) if option == "--aclnn-library"]


def _called(row: Row, words: Sequence[str], seconds: float) -> PlainCall:
    """Run the program behind the wall, with the variables that the row was judged with."""
    named = [*(row.get("given") or ()), *words]
    variables = {found[1]: found[2] for word in named if (found := _ASSIGNMENT.fullmatch(word))}
    python = python_of(row["backend"], os.environ) or sys.executable
    command = [python, *words[words.index("python") + 1 :], "--plain"]
    with TemporaryDirectory() as scratch:
        environment = _environment() | variables | {"TMPDIR": scratch}
        wall = [sys.executable, "-I", "-S", landlock.__file__, ""]
        try:
            ended = subprocess.run(
                [*wall, *command], capture_output=True, text=True, env=environment, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return PlainCall(row, wrong=f"gave no answer within {seconds:g} s")
    if ended.returncode < 0:
        return PlainCall(row, wrong=f"ended by signal {-ended.returncode}")
    said = ended.stdout.strip().splitlines()[1:]  # the first line names the call
    if ended.returncode == 1 and said:
        return PlainCall(row, wrong="; ".join(said[:2]))
    last = (ended.stderr.strip().splitlines() or ["no output"])[-1]
    return PlainCall(row, failed="" if ended.returncode == 0 else f"exit status {ended.returncode}: {last}")


def _environment() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if not _OWN_VARIABLES.match(name)}
