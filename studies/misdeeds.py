"""Libraries that harm their process: they may change the verdicts of the harmful calls only.

    python studies/misdeeds.py [--only NAME]... [--cases 24]

It judges cases on a correct backend, of which a third of the calls do one misdeed, in the processes of a real run. It
prints for each misdeed the verdicts of those calls, and whether all other rows are those of an honest run. Exits with 1
if more harmful calls conform than deaths after a call are reported, if another call's row differs, or if a pickle from
a call was run. `twenty_gigabytes` may exhaust a small machine's memory and runs only by name. Misdeeds that the machine
cannot do are skipped, with the reason.

A call that signals the parent may end before the signal arrives, and then conforms; one death may follow two such
calls. The sender of a SIGKILL is unknown, and one from outside is nobody's fault. So calls conform after
`sigkill_to_the_parent`, and the reason of a row may say that it was judged again.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click

SUPPORT = Path(__file__).parents[1] / "meta_tests" / "support"
sys.path.insert(0, str(SUPPORT))

from misdeed_backends import LEFT_OUT, MISDEEDS, RUN_BY_A_PICKLE
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED
from poolproof.suites.cases.case import Case
from poolproof.suites.isolation.environment import set_import_folders
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.plan.aspects import ASPECTS
from poolproof.suites.run.sandbox import Sandbox

VARIES = {"seconds", "call_seconds", "judged_at", "backend", "given", "worker"}
BY_NAME_ALONE = ("twenty_gigabytes",)
KILLS_LATE = ("sigterm_to_the_parent", "sigkill_to_the_parent")
"""Misdeeds that may end the process only after the call."""
ACCUSES_NOBODY = ("output_of_131_megabytes", "numpy_monkeypatched", "sigkill_to_the_parent")
"""Misdeeds that break no claim about a call: to print, to change code that the adapter uses, and to be killed after the
call, as from outside."""


def questions(cases: int) -> list[CaseQuestion]:
    case = Case.of(operator="MaxPool2dWithIndicesBackward", shape=(2, 2, 9, 8), kernel_size=(3,), gradient="uniform")
    windows = [replace(case.attributes, stride=(2,), ceil_mode=number % 3 == 1) for number in range(cases)]
    return [
        CaseQuestion(replace(case, seed=number, attributes=attributes), ASPECTS["values"])
        for number, attributes in enumerate(windows)
    ]


def judged(backend: str, cases: list[CaseQuestion]) -> list[Row]:
    with TemporaryDirectory() as scratch:
        sandbox = Sandbox(f"misdeed_backends:{backend}", Path(scratch), "study", 5.0)
        try:
            rows = [*sandbox.judge(cases)]
        finally:
            sandbox.close()
        return [*rows, *sandbox.unplanned]


def comparable(row: Row, varies: set[str] = VARIES) -> Row:
    return {name: value for name, value in row.items() if name not in varies}


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(MISDEEDS)), help="Only this misdeed, repeatable.")
@click.option("--cases", default=24, show_default=True)
def main(only: tuple[str, ...], cases: int) -> None:
    set_import_folders([SUPPORT])
    cases_to_judge = questions(cases)
    honest = judged("Scatter", cases_to_judge)
    wrong = False
    for name in only or [name for name in MISDEEDS if name not in BY_NAME_ALONE]:
        if name in LEFT_OUT:
            click.echo(f"{name:26} left out: {LEFT_OUT[name]}")
            continue
        RUN_BY_A_PICKLE.unlink(missing_ok=True)
        began = time.monotonic()
        rows = judged(f"backend_{name}", cases_to_judge)
        harming = [row for row, each in zip(rows, cases_to_judge, strict=False) if each.case.attributes.rounds_up]
        varies = VARIES | {"reason"} if name == "sigkill_to_the_parent" else VARIES
        others = [
            comparable(row, varies) == comparable(right, varies)
            for row, right, each in zip(rows, honest, cases_to_judge, strict=False)
            if not each.case.attributes.rounds_up
        ]
        late = rows[len(cases_to_judge) :]
        accused = [row for row in [*harming, *late] if row["verdict"] in FAILED]
        ends = Counter(f"{row['verdict']}: {row['reason'][:60]}" for row in accused or harming)
        unnoticed = sum(row["verdict"] == "conforms" for row in harming) > len(late)
        if name in KILLS_LATE:
            unnoticed = not (accused or late)
        wrong |= not all(others) or (unnoticed and name not in ACCUSES_NOBODY)
        if RUN_BY_A_PICKLE.exists():
            wrong = True
            click.echo(f"{name:26} had a pickle run")
        click.echo(
            f"{name:26} {len(accused)} of {len(harming)} that do it accused, {sum(others)} of {len(others)} others as "
            f"honest, {time.monotonic() - began:.1f} s; {ends.most_common(1)[0][0]}"
        )
    sys.exit(int(wrong))


if __name__ == "__main__":
    main()
