"""Calls of passing cases by a plain program, for a library that computes correctly only while it is judged.

A library can recognise the host: by poison in outputs, guard bands, modules of the process, variables or threads.
`call.py` with ``--plain`` has none of these, and judges the result by the same intervals. It does not detect a library
that recognises `call.py` itself.
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
"""Variables of hosts and tests; the plain program gets only those that the row names."""

_CLAIMED = {"results", "memory_untouched"}
"""Checks that must have judged a row, so that `call.py` may check strides and memory."""

_ASSIGNMENT = re.compile(r"(\w+)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class PlainCall:
    """A call by a plain program.

    ``wrong`` is the fault of the result, ``failed`` the reason why there is no result; empty without one.
    """

    row: Row
    wrong: str = ""
    failed: str = ""


def call_blind(rows: Iterable[Row], most: int, seconds: float) -> list[PlainCall]:
    """Make the calls of at most ``most`` conforming ``rows``, in order, that a plain program can make.

    It calls only torch and aclnn. It skips cases of more than a million elements, indices from the backend's own
    forward, and rows without judged memory. ``seconds`` is the time limit of a call.
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
            and (arrays_and_meta := evidence_of_row(row))
            and _is_made_by(row, arrays_and_meta[1])
        ):
            write_evidence(evidence, arrays_and_meta[0], arrays_and_meta[1] | Meta(backend=row["backend"]))
            yield row, shlex.split(lines[0])


def _is_made_by(row: Row, meta: Meta) -> bool:
    """Tell whether `call.py` has the backend's function: torch has none for a mask."""
    return not row["backend"].startswith("torch") or meta["call"]["torch"] is not None


def _libraries(row: Row) -> list[object]:
    if row["backend"].startswith("emulator-"):
        return [optional("poolproof.backends.emulator.build:library")()]
    given = row.get("given") or ()
    return [path for option, path in pairwise(given) if option == "--aclnn-library"]


def _called(row: Row, words: Sequence[str], seconds: float) -> PlainCall:
    """Run the program in a sandbox, with the variables of the row."""
    named = [*(row.get("given") or ()), *words]
    variables = {match[1]: match[2] for word in named if (match := _ASSIGNMENT.fullmatch(word))}
    python = python_of(row["backend"], os.environ) or sys.executable
    command = [python, *words[words.index("python") + 1 :], "--plain"]
    with TemporaryDirectory() as scratch:
        environment = _environment() | variables | {"TMPDIR": scratch}
        sandbox = [sys.executable, "-I", "-S", landlock.__file__, ""]
        try:
            ended = subprocess.run(
                [*sandbox, *command], capture_output=True, text=True, env=environment, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return PlainCall(row, wrong=f"gave no answer within {seconds:g} s")
    if ended.returncode < 0:
        return PlainCall(row, wrong=f"ended by signal {-ended.returncode}")
    lines = ended.stdout.strip().splitlines()[1:]  # the first line names the call
    if ended.returncode == 1 and lines:
        return PlainCall(row, wrong="; ".join(lines[:2]))
    last = (ended.stderr.strip().splitlines() or ["no output"])[-1]
    return PlainCall(row, failed="" if ended.returncode == 0 else f"exit status {ended.returncode}: {last}")


def _environment() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if not _OWN_VARIABLES.match(name)}
