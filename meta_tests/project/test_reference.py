"""The reference is complete: every command, option, variable, column, check and word that the code has is in it."""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import click
import pytest

from generated import GENERATED
from places import ROOT
from poolproof.references.layouts import LAYOUTS
from poolproof.references.sequences import MANNERS, VERBS
from poolproof.references.variables import VARIABLES
from poolproof.reports.rows.checks import CHECK_IDS
from poolproof.reports.rows.schema import COLUMNS
from poolproof.reports.rows.verdicts import UNCAUGHT, Overall, Verdict
from poolproof.suites.cases.case import Case, CaseError, case_schema
from poolproof.suites.cases.recipes.gradients import GRADIENTS
from poolproof.suites.cases.recipes.indices import INDICES
from poolproof.suites.cases.recipes.values import VALUES
from poolproof.suites.cli import COMMANDS
from poolproof.suites.options import OPTIONS

FENCE = re.compile(r"```\{generated\} (\w+)\n```")
ROOMS = ("references", "backends", "suites", "reports", "meta_tests/score")
WINDOWED, ADAPTIVE = case_schema()["oneOf"]


def words_of(command: click.Command, path: str) -> Iterator[str]:
    yield path
    for parameter in command.params:
        yield from [*parameter.opts, *parameter.secondary_opts] if isinstance(parameter, click.Option) else ()
    for name, inner in getattr(command, "commands", {}).items():
        yield from words_of(inner, f"{path} {name}")


def options() -> set[str]:
    commands = {word for name, late in COMMANDS.items() for word in words_of(late.load(), f"poolproof {name}")}
    return commands.union(*OPTIONS.values())


def texts(*rooms: str, kinds: tuple[str, ...] = (".py", ".cpp", ".h")) -> str:
    paths = (path for room in rooms for path in (ROOT / room).rglob("*") if path.suffix in kinds)
    known = ROOT / "references" / "variables.py"
    return "\n".join(path.read_text(encoding="utf-8") for path in paths if path != known)


SOURCES, TESTS = texts(*ROOMS), texts("meta_tests") + (ROOT / "tox.ini").read_text(encoding="utf-8")


def variables() -> set[str]:
    """Those that the sources read: ours by their prefix, others where a name is given to the environment."""
    others = re.findall(
        r"""(?:environ|environment|environ\.get|environment\.get|getenv|number)[\[(]"([A-Z_0-9]+)""", SOURCES
    )
    ours = re.findall(r"\bPOOLPROOF_[A-Z0-9_]+\b(?<!_PYTHON)(?<!_)", SOURCES + TESTS)
    return {*others, *ours}


PAGES = {
    "commands": options(),
    "environment": {*variables(), *(name for names in VARIABLES.values() for name in names)},
    "statuses": {
        *(str(int(overall)) for overall in Overall),
        *(each.word for each in Overall),
        "4",
        "5",
        str(UNCAUGHT),
    },
    "verdicts": {*Verdict},
    "columns": {column.name for column in COLUMNS},
    "case": {*WINDOWED["properties"], *ADAPTIVE["properties"], *LAYOUTS},
    "checks": {*CHECK_IDS},
    "host": {*VERBS, *MANNERS},
    "strategies": {*VALUES, *GRADIENTS, *INDICES, *LAYOUTS},
}


def missing(page: str, words: set[str]) -> list[str]:
    return sorted(word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", page))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_all_that_the_code_has(name: str) -> None:
    page = (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")
    assert missing(FENCE.sub(lambda fence: GENERATED[fence[1]](), page), PAGES[name]) == []
    assert missing(FENCE.sub("", page), PAGES[name])


def test_every_word_is_described() -> None:
    for name in ("values", "gradients", "indices", "layouts"):
        for row in GENERATED[name]().splitlines()[2:]:
            assert len(row.split("|")[2].strip()) > 4, row


def test_no_variable_is_described_that_nothing_reads() -> None:
    described = {name for names in VARIABLES.values() for name in names} - {"POOLPROOF_<NAME>_PYTHON"}
    described -= {"_POOLPROOF_COMPLETE"}  # click reads it
    assert [name for name in described if name not in SOURCES + TESTS] == []


LEGAL = {"operator": "aclnnMaxPool2dWithIndices", "shape": [2, 5, 5], "kernel_size": [2], "values": "between(-1,1)"}
ILLEGAL: list[dict[str, Any]] = [
    {"operator": "MaxPool"},
    {"shape": "2,5,5"},
    {"output_size": [2]},
    {"kernel_size": None},
    {"values": "nothing"},
    {"dtype": "float8"},
    {"layouts": {"self": "sideways"}},
]


@pytest.mark.parametrize("change", [{}, {"layouts": {"self": "sliced+7"}}, *ILLEGAL], ids=str)
def test_the_schema_takes_what_a_case_takes(change: dict[str, Any]) -> None:
    record = {name: value for name, value in (LEGAL | change).items() if value is not None}
    said = pytest.importorskip("jsonschema").Draft202012Validator(case_schema()).is_valid(record)
    assert said == (change not in ILLEGAL)
    with nullcontext() if said else pytest.raises(CaseError):
        Case.from_record(record)
