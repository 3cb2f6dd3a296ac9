"""Failed rows as text: what failed, which failures are of one kind, and the replay line."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import safe, without_commands
from poolproof.reports.rows.verdicts import Verdict

KIND = ("backend", "operator", "verdict", "violated")
"""Columns of a kind of failure; `violated_text` makes ``violated``."""

SHOWN = (
    *("backend", "case", "reason", "shrunk", "shrunk_reason", "asked_again", "failed_again", "given"),
    *("clause", "statement"),
)
"""Columns that `message` and `replay_line` read."""


def kind_of(row: Row) -> tuple[str, ...]:
    return row["backend"], row["operator"], row["verdict"], violated_text(row["checks_violated"])


def evidence_kinds(row: Row) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keys that count the evidence of a failure: (backend, verdict, first violated check), and its kind."""
    return (row["backend"], row["verdict"], *row["checks_violated"][:1]), kind_of(row)


def violated_text(checks: Iterable[str] | None) -> str:
    return ", ".join(() if checks is None else checks)


def what_failed(row: Row) -> str:
    """Return the violated checks of a failed row, or its verdict if its call gave no answer to check."""
    return violated_text(row["checks_violated"]) if row["verdict"] == Verdict.VIOLATES else str(row["verdict"])


def smallest_case(row: Row) -> str:
    """Return the smallest case with the failure of a row: the shrunk one if there is one."""
    return str(row["shrunk"] if is_shrunk(row) else row["case"])


GUESSED_RULE = re.compile(r"; declared \S+; all of it would be right as \S+(?=;|$)")
"""Part of a finding with the accumulation model, or forward rule, that would make a whole output right."""

MAX_GUESSED = 1 << 16
"""Most cells of a case for such a guess."""


def message(row: Row) -> str:
    """Return what is wrong with the case of `replay_line`, and its failure rate unless it always fails.

    A call about a clause or a scenario quotes it, unless the finding does.
    """
    parts = [(row.get("shrunk_reason") if is_shrunk(row) else None) or str(row["reason"])]
    clause, statement = row.get("clause"), row.get("statement")
    if isinstance(clause, str) and clause and statement:
        is_quoted = clause in parts[0] or str(statement).rstrip(".") in parts[0]
        parts += [] if is_quoted else [f"{clause}: {statement}"]
    repeated, failed = row.get("asked_again"), row.get("failed_again")
    if repeated and failed is not None and failed != repeated:
        parts.append(f"fails {int(failed)} of {int(repeated)} repetitions in a fresh process")
    return "; ".join(filter(None, parts))


def replay_line(row: Row) -> str:
    """Return the shell command that judges the case again, with the backend's variables and options."""
    arguments = row.get("given")
    words = [] if arguments is None else list(arguments)
    options = [word for word in words if not _VARIABLE.fullmatch(word)]
    command = ["poolproof", "replay", "--backend", row["backend"], *options, smallest_case(row)]
    return " ".join([*assignments(words), *map(shlex.quote, command)])


def assignments(given: Iterable[str]) -> list[str]:
    """Return the variables among a backend's words as shell assignments."""
    variables = (word.partition("=") for word in given if _VARIABLE.fullmatch(word))
    return [f"{name}={shlex.quote(value)}" for name, _, value in variables]


_VARIABLE = re.compile(r"POOLPROOF_[A-Z_]+=.*", re.DOTALL)
"""A word to assign in front of a command; no row can name another variable there."""


def failure_text(row: Row) -> str:
    """Return a failed row in a few lines: fault, cause, and replay line."""
    case = f"case {row['case_id']}{', made smaller' if is_shrunk(row) else ''}"
    subject = " ".join(filter(None, (row["backend"], row["operator"], row["dtype"])))
    title = f"{row['verdict']}: {what_failed(row)} ({subject}, {case})"
    return without_commands(f"{title}\n  {message(row)}\n  {replay_line(row)}")


_LINE = 120
"""Most characters of a message in a line during a run."""


Progress = tuple[dict[str, int], int, dict[str, str]]
"""Results of a test: the cases of each aspect, the number of failures, and a line for the first of each kind."""


def progress_of(cases: Mapping[str, int], failures: Sequence[Row]) -> Progress:
    lines: dict[str, str] = {}
    for row in failures:
        what = f"{row['backend']}: {what_failed(row)}"
        lines.setdefault(what, safe(f"{what}: {textwrap.shorten(message(row), _LINE, placeholder=' ...')}"))
    return dict(cases), len(failures), lines


def properties_of(failures: Iterable[Row]) -> list[tuple[str, object]]:
    """Return properties for the report of a test, such as ``--junitxml``: failing cases, and their replay lines."""
    named = ((("case_id", row["case_id"]), ("reproducer", replay_line(row))) for row in failures)
    return [each for pair in named for each in pair]


def is_shrunk(row: Row) -> bool:
    """Tell whether a smaller case was found; missing values of tables are not texts."""
    shrunk = row.get("shrunk")
    return isinstance(shrunk, str) and bool(shrunk)
