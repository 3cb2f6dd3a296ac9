"""Calls of passing cases by a plain program, which a library cannot tell from another caller's.

A library could recognise a judged call and compute as it should only then: by poison in the outputs, guard bands,
modules of its process, variables or threads. `call.py` with ``--plain`` has none of these. It judges what comes by the
same intervals.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from poolproof.references.optional import optional
from poolproof.reports.rows.evidence import EvidenceError, Meta, call_lines, write_evidence, write_programs
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.isolation import landlock
from poolproof.suites.judging.evidence import evidence_of_row

_OWN_VARIABLES = re.compile(r"(?:POOLPROOF|PYTEST)_|(?:OMP_NUM_THREADS|PYTHONPATH)\Z")
"""Variables by which the suite, or a test, could be recognised."""

_ASSIGNMENT = re.compile(r"(\w+)=(.*)", re.DOTALL)


def call_blind(rows: Sequence[Row], seconds: float) -> Iterator[tuple[Row, str | None]]:
    """Make the calls of conforming rows once more, as many at a time as there are cores.

    Yields each row with what is wrong with its call now, empty if nothing is, and None if it cannot be made: no plain
    program makes calls of that backend, the case is too large, or its operands come from the backend itself.
    """
    with TemporaryDirectory() as folder, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        write_programs(Path(folder))
        yield from zip(rows, pool.map(lambda row: _outcome(row, Path(folder), seconds), rows), strict=True)


def _outcome(row: Row, folder: Path, seconds: float) -> str | None:
    evidence = folder / "evidence" / f"{row['case_id']}-{os.urandom(4).hex()}.npz"
    lines = call_lines(str(folder / "evidence" / "call.py"), str(evidence), row, _libraries(row))
    if row["verdict"] != Verdict.CONFORMS or not lines:
        return None
    if (made := evidence_of_row(row)) is None:
        return None
    try:
        write_evidence(evidence, made[0], made[1] | Meta(backend=row["backend"]))
    except EvidenceError:
        return None
    words = shlex.split(lines[0])
    variables = {found[1]: found[2] for word in words if (found := _ASSIGNMENT.fullmatch(word))}
    command = words[words.index("python") + 1 :]
    with TemporaryDirectory() as scratch:
        return _judged(command, _environment(variables) | {"TMPDIR": scratch}, seconds)


def _libraries(row: Row) -> list[object]:
    given = list(row.get("given") or ())
    named = [given[at + 1] for at, word in enumerate(given[:-1]) if word == "--aclnn-library"]
    is_emulated = row["backend"].startswith("emulator-")
    return [optional("poolproof.backends.emulator.build:library")()] if is_emulated else list(named)


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if not _OWN_VARIABLES.match(name)} | dict(variables)


def _judged(command: Sequence[str], environment: Mapping[str, str], seconds: float) -> str | None:
    """Run the program behind the wall; return what it says is wrong."""
    wall = [sys.executable, "-I", "-S", landlock.__file__, "", sys.executable]
    try:
        ended = subprocess.run(
            [*wall, *command, "--plain"], capture_output=True, text=True, env=environment, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return f"gave no answer within {seconds:g} s"
    if ended.returncode < 0:
        return f"ended by signal {-ended.returncode}"
    said = ended.stdout.strip().splitlines()[1:]
    if ended.returncode == 1 and said:
        return "; ".join(said[:2])
    return "" if ended.returncode == 0 else None
