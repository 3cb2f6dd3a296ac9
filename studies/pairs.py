"""Choose anew the cases of the aspects `pairs` and `triples`, in which classes of factors of an operator meet.

    python studies/pairs.py [--seed 0] [--count 2000] [--operator NAME]...

It is needed for a new operator, and after a change of a factor or a class (a test reports it). It chooses among three
kinds of cases. These are stored ones of the operator, stored ones of similar operators that were made calls of it, and
--count cases of each aspect, drawn as by plans. It takes each case that visits something new. So stored meetings stay
visited, and meetings that none of these cases visits do not count as possible.

With its own lists hidden, MaxPool2dWithMask gets all of its 6,102 pairs from the three operators like it.
MaxPool3dWithArgmaxBackward has one such operator, of the other direction, and gets 10,119 of 10,522 pairs and 66,556 of
79,434 triples. The lists began with a search for each combination that no rule excludes: `git show
4ffbf273:studies/pairs.py`, and `pair_rules.py` beside it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import click
import numpy as np

from poolproof.references.operators import OPERATORS, Operator
from poolproof.references.products import PRODUCTS, Product
from poolproof.reports.rows import meetings
from poolproof.reports.rows.factors import Scope, classes_of
from poolproof.reports.rows.features import features_of
from poolproof.reports.rows.meetings import PLACES, TOGETHER, call_of, choose, space_of
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.generation import derive_seed, generate
from poolproof.suites.cases.pairs import cost_of, file_of, row_of, stored
from poolproof.suites.cases.strategies import cases
from poolproof.suites.plan.aspects import CASE_ASPECTS

SCOPES: tuple[tuple[tuple[str, ...], Product | None], ...] = (((), None), (("NHWC",), None), ((), PRODUCTS["A2"]))
"""Tags and product of the calls to complete, in turn: some products have no dilation."""

LARGE = 1 << 22
"""`cost_of` a case that is taken only if no smaller one visits the same."""


def call_in(case: Case) -> tuple[int, ...]:
    return call_of(classes_of(features_of(row_of(case))))


def as_call_of(operator: Operator, case: Case) -> Case:
    """Return a case as one of another operator; raise `CaseError` if that has no such call."""
    layouts = tuple((tensor, layout) for tensor, layout in case.layouts if tensor in operator.strided)
    dtypes = operator.indices.dtypes
    index_dtype = case.index_dtype if case.index_dtype in dtypes else dtypes[0]
    made = replace(case, operator=operator.name, layouts=layouts, index_dtype=index_dtype)
    return Case.from_json(made.to_json())


def candidates(operator: Operator, seed: int, count: int) -> Iterator[Case]:
    """Yield stored cases, those of the operator first, then drawn ones."""
    kind = operator.windows, operator.spatial_rank
    alike = [each for each in OPERATORS.values() if (each.windows, each.spatial_rank) == kind]
    for other in sorted(alike, key=lambda each: (each is not operator, each.direction != operator.direction)):
        for size in TOGETHER:
            for line in stored(other, size) if file_of(other, size).exists() else ():
                with suppress(CaseError):
                    yield as_call_of(operator, Case.from_json(line))
    for aspect in CASE_ASPECTS.values():
        is_tagged = bool(aspect.profile.tagged)
        if aspect.weight and operator.direction in aspect.directions and is_tagged <= operator.takes_tags:
            for index_dtype in operator.indices.dtypes:
                make = cases.make(operator, "float32", index_dtype, aspect.profile)
                yield from generate(make, count, derive_seed(seed, aspect.id, index_dtype))


def cases_of(operator: Operator, seed: int, count: int) -> Iterator[list[Case]]:
    """Yield the cases of pairs, then those that also visit triples."""
    known = sorted(candidates(operator, seed, count), key=lambda case: cost_of(case) > LARGE)
    calls, selected = [call_in(case) for case in known], list[int]()
    for size in TOGETHER:
        before = len(selected)
        for tags, product in SCOPES:
            space = space_of(Scope(operator, operator.indices.dtypes, tags, product))
            order = dict.fromkeys([*selected, *range(len(known))])
            own = {number: calls[number] for number in order if space.has(calls[number])}
            chosen = choose(own, np.ones((len(PLACES),) * size, np.bool_))
            selected += [number for number in chosen if number not in selected]
        click.echo(f"{operator.name}: {len(selected)} cases visit {TOGETHER[size]}", err=True)
        yield [replace(known[number], seed=place) for place, number in enumerate(selected[before:], before)]


def store(operator: Operator, lists: Sequence[Sequence[Case]]) -> None:
    """Write the lists of an operator, and the classes of their cases."""
    classes = {}
    for (size, name), chosen in zip(TOGETHER.items(), lists, strict=True):
        lines = "".join(f"{case.to_json()}\n" for case in chosen)
        file_of(operator, size).write_bytes(gzip.compress(lines.encode(), mtime=0))
        classes[name] = np.array([call_in(case) for case in chosen], np.int8, order="F")
    np.savez_compressed(meetings.file_of(operator), **classes)


@click.command()
@click.option("--seed", default=0, show_default=True)
@click.option("--count", default=2000, show_default=True, help="Cases that are drawn of each aspect.")
@click.option("--operator", "operators", multiple=True, type=click.Choice(list(OPERATORS)), help="Only these.")
def main(seed: int, count: int, operators: tuple[str, ...]) -> None:
    for operator in (OPERATORS[name] for name in operators or OPERATORS):
        store(operator, [*cases_of(operator, seed, count)])


if __name__ == "__main__":
    main()
