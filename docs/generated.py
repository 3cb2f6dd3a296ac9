"""The parts of the reference that come from the code, as Markdown: `GENERATED` has them by name.

A page names one in a fence, ```` ```{generated} columns ````; conf.py puts it there when the site is built.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from inspect import cleandoc
from typing import Any

import click

from poolproof.references.layouts import LAYOUTS
from poolproof.references.operators import OPERATORS
from poolproof.references.sequences import VERBS
from poolproof.references.variables import VARIABLES
from poolproof.reports.rows.checks import GRAVE, OTHER_CLAIMS
from poolproof.reports.rows.schema import COLUMNS, Column
from poolproof.reports.rows.store import run_schema
from poolproof.reports.rows.verdicts import MEANINGS, UNCAUGHT, VERDICT_MEANINGS
from poolproof.suites.cases.case import case_schema
from poolproof.suites.cases.recipes.gradients import GRADIENTS
from poolproof.suites.cases.recipes.indices import INDICES
from poolproof.suites.cases.recipes.spreads import SPREADS
from poolproof.suites.cases.recipes.values import VALUES
from poolproof.suites.cli import PARTS
from poolproof.suites.judging.checks import CHECKS
from poolproof.suites.options import OPTIONS
from poolproof.suites.plan.aspects import ASPECTS
from poolproof.suites.plan.plans import PLANS


def table(headings: str, rows: Iterable[Iterable[object]]) -> str:
    """Write a table of Markdown; ``headings`` are separated by commas."""
    lines = [headings.split(", "), ["---"] * len(headings.split(", ")), *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def code(word: object) -> str:
    return f"`{word}`"


def sentence(text: str) -> str:
    """Write a text of the code as a sentence of Markdown."""
    text = " ".join(text.replace("``", "`").split())
    first = text.partition(" ")[0]
    return (text.capitalize()[:1] if first.isalpha() else text[:1]) + text[1:] + ("" if text.endswith(".") else ".")


def titled(parts: Mapping[str, str], level: str = "##") -> str:
    return "".join(f"{level} {title}\n\n{text}\n" for title, text in parts.items())


def option(spelled: str, *about: str) -> str:
    return f"```{{option}} {spelled}\n{' '.join(filter(None, about))}\n```\n\n"


def run_options() -> str:
    """Describe the options of a run, in their groups."""
    return titled(
        {title.capitalize(): "".join(map(_run_option, options.items())) for title, options in OPTIONS.items()}
    )


def _run_option(named: tuple[str, Mapping[str, Any]]) -> str:
    name, about = named
    choices = f"One of {', '.join(map(code, about['choices']))}." if "choices" in about else ""
    default = f"Default: `{about['default']}`." if about.get("default") and "(default" not in about["help"] else ""
    return option(f"{name} {about.get('metavar', '')}".strip(), sentence(about["help"]), choices, default)


def commands() -> str:
    """Describe every command with its arguments and options, in their parts."""
    return titled(
        {
            title: "".join(_command(f"poolproof {name}", late.load()) for name, late in here.items())
            for title, here in PARTS.items()
        }
    )


def _command(path: str, command: click.Command) -> str:
    pieces = command.collect_usage_pieces(click.Context(command))
    usage = " ".join(pieces).replace("[OPTIONS] [OPTIONS]...", "[OPTIONS]")  # of run, which has all of pytest's
    said = f"### {path}\n\n```text\n{path} {usage}\n```\n\n"
    said += f"{_paragraphs(cleandoc(command.help or ''))}\n\n```{{program}} {path}\n```\n\n"
    said += "".join(_option(each) for each in command.params if isinstance(each, click.Option))
    if isinstance(command, click.Group):
        said += "".join(_command(f"{path} {name}", inner) for name, inner in command.commands.items())
    return said


def _paragraphs(text: str) -> str:
    """Write a help text as Markdown; lines that click keeps as they are become code."""
    parts = text.partition("\f")[0].split("\n\n")
    return "\n\n".join(f"```text\n{part[2:]}\n```" if part.startswith("\b") else part for part in parts)


def _option(given: click.Option) -> str:
    spelled = ", ".join([*given.opts, *given.secondary_opts])
    kind = "" if given.is_flag else f" {given.make_metavar(click.Context(click.Command('')))}"
    default = f"Default: `{given.default}`." if given.show_default and type(given.default) in (str, int, float) else ""
    return option(spelled + kind, sentence(given.help or ""), default)


def columns() -> str:
    """Describe the columns of a row."""
    return "".join(f"```{{describe}} {each.name}\n{sentence(each.meaning)} {_kind(each)}\n```\n\n" for each in COLUMNS)


def _kind(column: Column) -> str:
    unit, combines = (f" in {column.unit}" if column.unit else ""), (f", {column.combines}" if column.combines else "")
    return f"`{column.kind}`{unit}, *{column.made}{combines}*."


def environment() -> str:
    return titled(
        {
            title: "".join(f"```{{envvar}} {name}\n{meaning}\n```\n\n" for name, meaning in names.items())
            for title, names in VARIABLES.items()
        }
    )


def statuses() -> str:
    """Describe the exit statuses, those of pytest and of a fault too."""
    own = [(int(overall), overall.word, sentence(meaning)) for overall, meaning in MEANINGS.items()]
    pytest = [(4, "", "pytest does not know an option."), (5, "", "pytest found no test.")]
    fault = (UNCAUGHT, "", "poolproof itself is at fault; it prints a traceback. This is no verdict.")
    return table("status, name, meaning", sorted([*own, *pytest, fault]))


def verdicts() -> str:
    rows = ((verdict, sentence(text), verdict.overall.word) for verdict, text in VERDICT_MEANINGS.items())
    return table("verdict, meaning, the run then", rows)


def checks() -> str:
    """Describe the checks: those of values, and all others."""
    values = ((code(name), sentence(check.claim)) for name, check in CHECKS.items())
    others = ((code(name), sentence(claim)) for name, claim in OTHER_CLAIMS.items())
    grave = " and ".join(map(code, sorted(GRAVE)))
    heading = "check, claim"
    return (
        f"## Checks of values\n\n{table(heading, values)}\n## Further checks\n\n{table(heading, others)}\n"
        f"A waiver covers {grave} only if it names them.\n"
    )


def aspects() -> str:
    return table("aspect, claim", ((code(each.id), sentence(each.claim)) for each in ASPECTS.values()))


def plans() -> str:
    rows = ((code(plan.name), plan.cases, sentence(plan.purpose)) for plan in PLANS.values())
    return table("plan, cases, purpose", rows)


def recipes(words: Mapping[str, Any]) -> str:
    """Describe recipes by the first paragraph of their docstrings."""
    rows = ((code(name), sentence((recipe.__doc__ or "").partition("\n\n")[0])) for name, recipe in words.items())
    return table("recipe, data", rows)


def operators() -> str:
    rows = (
        (code(each.name), code(each.aten) if each.aten else "", ", ".join(each.inputs), ", ".join(each.outputs))
        for each in OPERATORS.values()
    )
    return table("operator, aten, inputs, outputs", rows)


def fields() -> str:
    """Describe the fields of a case, of windowed and adaptive operators."""
    windowed, adaptive = (kind["properties"] for kind in case_schema()["oneOf"])
    rows = (
        (code(name), about["description"], code(json.dumps(about["default"])) if "default" in about else "required")
        for name, about in (windowed | adaptive).items()
    )
    return table("field, meaning, default", rows)


GENERATED: Mapping[str, Callable[[], str]] = {
    "actions": lambda: table("do, what", ((code(verb), sentence(what)) for verb, what in VERBS.items())),
    "aspects": aspects,
    "checks": checks,
    "columns": columns,
    "commands": commands,
    "environment": environment,
    "fields": fields,
    "gradients": lambda: recipes(GRADIENTS),
    "indices": lambda: recipes(INDICES),
    "layouts": lambda: table("layout, elements", ((code(name), each.about) for name, each in LAYOUTS.items())),
    "operators": operators,
    "plans": plans,
    "run_options": run_options,
    "run_schema": lambda: f"```json\n{json.dumps(run_schema(), indent=1)}\n```\n",
    "schema": lambda: f"```json\n{json.dumps(case_schema(), indent=1)}\n```\n",
    "spreads": lambda: table("recipe, data", ((code(spelling), text) for spelling, text in SPREADS.items())),
    "statuses": statuses,
    "values": lambda: recipes(VALUES),
    "verdicts": verdicts,
}
"""Name in a page -> the Markdown that stands in its place."""
