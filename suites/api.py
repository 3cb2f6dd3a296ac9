"""The suite as a library for your own tests: strategies of Hypothesis for cases, and a function that judges.

It draws and judges everything in the calling process; an implementation that may crash or hang needs a run.
"""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from hypothesis import strategies as st

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import Backend
from poolproof.backends.registry import create, is_installed
from poolproof.references.formats import FORMATS
from poolproof.references.nearest import unknown_name
from poolproof.references.operators import find_operator
from poolproof.reports.rows import failures
from poolproof.reports.rows.schema import Row
from poolproof.suites.cases import strategies
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.gradients import literal_gradients
from poolproof.suites.isolation.environment import replay_arguments
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.faults import answer
from poolproof.suites.judging.scores import scores
from poolproof.suites.plan.aspects import CASE_ASPECTS, EVERYTHING

__all__ = ["Case", "cases", "failure_text", "judge", "scores"]


def cases(
    operator: str,
    dtype: str = "float32",
    index_dtype: str = "int64",
    aspect: str = "values",
    abilities: Abilities | None = None,
    terms: int = 0,
) -> st.SearchStrategy[Case]:
    """Return a strategy for the cases of one of `CASE_ASPECTS`.

    ``operator`` is a name of aclnn or aten. ``abilities`` restrict the calls to those that an implementation has.
    KeyError lists the known names if one is unknown.

    With ``terms``, gradients are drawn one by one, for `hypothesis.target` to raise their `scores`. This many meet in
    one cell, through windows along one axis. Aspect and abilities do not count then; ValueError for a forward.
    """
    known = find_operator(operator)
    _check("dtype", dtype, FORMATS)
    _check("index_dtype", index_dtype, known.indices.dtypes)
    _check("aspect", aspect, CASE_ASPECTS)
    if terms and not known.is_backward:
        raise ValueError(f"{known.name} takes no gradients; terms are for backwards")
    if terms:
        return literal_gradients(known, dtype, index_dtype, terms)
    profile = CASE_ASPECTS[aspect].profile
    if abilities is not None:
        profile = profile.within(abilities)
    return strategies.cases(known, dtype, index_dtype, profile)


def judge(case: Case | str, backend: Backend | str, aspect: str = "") -> Row:
    """Judge a case, or its line of JSON, on a backend or on the one of that name, and return its row.

    A row has the columns of `poolproof.reports.rows.schema`; its ``verdict`` is "conforms", "violates", ..., and
    `failure_text` describes a failure. All checks judge the case, or those of one of `CASE_ASPECTS`; KeyError lists
    these if ``aspect`` is unknown. Waivers are not applied.
    """
    if aspect:
        _check("aspect", aspect, CASE_ASPECTS)
    judged = Case.from_json(case) if isinstance(case, str) else case
    claims = CASE_ASPECTS[aspect] if aspect else EVERYTHING
    made = create(backend) if isinstance(backend, str) else backend
    if made is not backend:
        made.open()
    name = backend if isinstance(backend, str) else _name(made)
    row = answer(CaseQuestion(judged, claims), made)
    given = replay_arguments(name, os.environ, () if is_installed(name) else _import_folders(name.partition(":")[0]))
    return row | {"backend": name, "product": made.product.name if made.product else "", "given": [*given] or None}


def failure_text(row: Row) -> str:
    """Describe a failed row in a few lines: fault, cause, the command that judges its case again, and a line to paste.

    The command works in a new shell if the backend is a class, or a function, of a module. It creates the backend
    without arguments. Paste the line ``@example(...)`` above a test of Hypothesis that has a parameter ``case``.
    """
    line = f"@example(case=Case.from_json({failures.smallest_case(row)!r}))"
    return f"{failures.failure_text(row)}\n  {line}"


def _check(what: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise KeyError(unknown_name(what, name, known))


def _name(made: Backend) -> str:
    """Return a backend's name for another process; a running program is named after its file."""
    module = type(made).__module__
    file = getattr(sys.modules.get(module), "__file__", None)
    return f"{Path(file).stem if module == '__main__' and file else module}:{type(made).__qualname__}"


def _import_folders(name: str) -> Iterator[str]:
    """Yield the folder from which another process imports a module, or the running program; none if installed."""
    module = sys.modules.get(name, sys.modules["__main__"])
    path = Path(getattr(module, "__file__", None) or "").absolute()
    if path.name == "__init__.py":
        path = path.parent
    if path.name.partition(".")[0] != name.rpartition(".")[2] or name.partition(".")[0] == "poolproof":
        return
    folder = str(path.parents[name.count(".")])
    if folder not in (*site.getsitepackages(), site.getusersitepackages()):
        yield folder
