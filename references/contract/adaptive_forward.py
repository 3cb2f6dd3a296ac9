"""Builders of the rules that both adaptive forward APIs have."""

from __future__ import annotations

from poolproof.references.contract.builders import empty_exit, last_is, longer, not_null, null_outputs
from poolproof.references.contract.rules import Breach, Page, Rule

OUTPUTS = ("outputOut", "indicesOut")
POINTERS = (*null_outputs(), *map(not_null, ("self", "outputSize", "outputOut", "indicesOut")))
OUTPUT_MISFITS = {"outputOut": {"shape": longer}, "indicesOut": {"shape": longer}}


def no_hollow_axis() -> Rule:
    return Rule(
        name="shape.hollow",
        statement="No axis of self but the first has length 0.",
        decides=lambda call, product: min(call.tensor("self").shape[1:]) < 1,
        breach=Breach(template={"shape": lambda shape: (shape[0], 0, *shape[2:])}),
    )


def size_positive(page: Page | None = None) -> Rule:
    return Rule(
        name="outputSize.positive",
        statement="Every value of outputSize is at least 1.",
        decides=lambda call, product: min(call.attribute("outputSize"), default=1) < 1,
        page=page,
        breach=Breach(template={"output_size": last_is(0)}),
    )


def no_batches_exit() -> Rule:
    return empty_exit("The first axis of self has not length 0; with it the call succeeds.", ("self",))
