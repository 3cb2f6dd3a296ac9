"""``python -m bad_inputs``, in meta_tests/support: tries bad inputs, prints those that do not end as they should."""

from __future__ import annotations

import re
import sys
import time
from random import Random

import click

from bad_inputs.generating import generated
from bad_inputs.trying import told, try_all


@click.command()
@click.option("--number", default=500, show_default=True, help="How many.")
@click.option("--seed", default=0, show_default=True, help="Chooses and draws them.")
@click.option("--only", default="", help="Of these, those whose name this regular expression is found in.")
@click.option("--for-real", default=0, show_default=True, help="How many to try as processes of their own.")
def command(number: int, seed: int, only: str, for_real: int) -> None:
    """Try so many bad inputs; exits with 1 when one ends otherwise than it should."""
    began = time.monotonic()
    inputs = [given for given in generated(number, seed) if re.search(only, given.name)]
    # whoever hangs while it is loaded is given minutes by a process of its own
    # and only forks are kept from damaging a device
    patient = [given.name for given in inputs if not re.search("hang|device", f"{given.name} {given.arguments}")]
    tried = try_all(inputs, frozenset(Random(seed).sample(patient, min(for_real, len(patient)))))
    bad = [each for each in tried if each.objections]
    click.echo("\n\n".join(map(told, bad)))
    slowest = max(tried, key=lambda each: each.seconds)
    click.echo(
        f"{len(tried)} tried in {time.monotonic() - began:.0f} s, {for_real} of them as processes of their own, "
        f"{len(bad)} ended otherwise than they should; slowest: {slowest.given.name} ({slowest.seconds:.1f} s)"
    )
    sys.exit(bool(bad))


command()
