"""The reference is complete: every command, option, variable, column, check and word that the code has is in it."""

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
import pytest

from generated import GENERATED
from places import ROOT
from poolproof.references.layouts import LAYOUTS
from poolproof.references.operators import OPERATORS
from poolproof.references.sequences import MANNERS, VERBS
from poolproof.references.variables import VARIABLES
from poolproof.reports.rows.checks import CHECK_IDS
from poolproof.reports.rows.schema import COLUMNS
from poolproof.reports.rows.store import NotARun, read_run, run_schema
from poolproof.reports.rows.verdicts import UNCAUGHT, Overall, Verdict
from poolproof.suites.cases.case import Case, CaseError, case_schema
from poolproof.suites.cases.recipes.gradients import GRADIENTS
from poolproof.suites.cases.recipes.indices import INDICES
from poolproof.suites.cases.recipes.values import VALUES
from poolproof.suites.cli import COMMANDS
from poolproof.suites.options import OPTIONS

FENCE = re.compile(r"```\{generated\} (\w+)\n.+\n```")
ROOMS = ("references", "backends", "suites", "reports", "meta_tests/score")
WINDOWED, ADAPTIVE = case_schema()["oneOf"]


def words_of(command: click.Command, path: str) -> Iterator[str]:
    yield path
    yield from (word for each in command.params if isinstance(each, click.Option) for word in each.opts)
    for name, inner in getattr(command, "commands", {}).items():
        yield from words_of(inner, f"{path} {name}")


def options() -> set[str]:
    commands = {word for name, late in COMMANDS.items() for word in words_of(late.load(), f"poolproof {name}")}
    return commands.union(*OPTIONS.values())


def texts(*rooms: str) -> str:
    paths = (path for room in rooms for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".cpp", ".h"))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths if path.name != "variables.py")


SOURCES, TESTS = texts(*ROOMS), texts("meta_tests") + (ROOT / "tox.ini").read_text(encoding="utf-8")
OURS = r"\bPOOLPROOF_[A-Z0-9_]+\b(?<!_PYTHON)(?<!_)"
READ = r"""(?:environ|environment|environ\.get|environment\.get|getenv|number)[\[(]"([A-Z_0-9]+)"""


def variables() -> set[str]:
    """Those that the sources read: ours by their prefix, others where a name is given to the environment."""
    return {*re.findall(READ, SOURCES), *re.findall(OURS, SOURCES + TESTS)}


PAGES = {
    "commands": options(),
    "environment": {*variables(), *(name for names in VARIABLES.values() for name in names)},
    "statuses": {str(int(status)) for status in (*Overall, 4, 5, UNCAUGHT)},
    "verdicts": {*Verdict},
    "columns": {column.name for column in COLUMNS},
    "case": {*OPERATORS, *WINDOWED["properties"], *ADAPTIVE["properties"], *LAYOUTS},
    "checks": {*CHECK_IDS},
    "host": {*VERBS, *MANNERS},
    "strategies": {*VALUES, *GRADIENTS, *INDICES, *LAYOUTS},
}


def missing(page: str, words: set[str]) -> list[str]:
    return sorted(word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", page))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_all_that_the_code_has(name: str) -> None:
    page = (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")
    built = FENCE.sub(lambda fence: GENERATED[fence[1]](), page)
    assert missing(built, PAGES[name]) == []
    assert missing(FENCE.sub("", page), PAGES[name])
    assert re.findall(r"^\.|\| \. \|", built, re.MULTILINE) == [], "a word without a description"


def test_no_variable_is_described_that_nothing_reads() -> None:
    known = {"POOLPROOF_<NAME>_PYTHON", "_POOLPROOF_COMPLETE"}  # click reads the second
    described = {name for names in VARIABLES.values() for name in names} - known
    assert [name for name in described if name not in SOURCES + TESTS] == []


LEGAL = {"operator": "aclnnMaxPool2dWithIndices", "shape": [2, 5, 5], "kernel_size": [2], "values": "between(-1,1)"}
FURTHER: dict[str, Any] = {"layouts": {"self": "sliced+7"}, "seed": 3, "operator": "max_pool2d_with_indices"}
ILLEGAL: dict[str, Any] = {"operator": "MaxPool", "shape": "2,5", "output_size": [2], "values": "odd", "seed": 0.5}


@pytest.mark.parametrize("change", [*FURTHER.items(), *ILLEGAL.items(), ("layouts", {"self": "odd"})], ids=str)
def test_the_schema_takes_what_a_case_takes(change: tuple[str, Any]) -> None:
    record, is_legal = LEGAL | dict([change]), change in FURTHER.items()
    schema = pytest.importorskip("jsonschema").Draft202012Validator(case_schema())
    assert schema.is_valid(record) == is_legal
    with nullcontext() if is_legal else pytest.raises(CaseError):
        Case.from_record(record)


WRONG: list[dict[str, Any]] = [{}, {"seed": "0"}, {"started": -1}, {"host": {"cores": 2}}, {"mandatory": [{}]}]


@pytest.mark.parametrize("change", WRONG, ids=str)
def test_the_schema_takes_what_a_run_takes(run: Path, change: dict[str, Any]) -> None:
    record = json.loads((run / "run.json").read_text("utf-8")) | change
    schema = pytest.importorskip("jsonschema").Draft202012Validator(run_schema())
    schema.check_schema(schema.schema)
    assert schema.is_valid(record) == (not change)
    (run / "run.json").write_text(json.dumps(record))
    with nullcontext() if not change else pytest.raises(NotARun):
        read_run(run)
    del record["plan"]
    assert not schema.is_valid(record)
