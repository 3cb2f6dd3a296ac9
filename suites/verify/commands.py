"""The command that verifies a bundle."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from poolproof.reports.bundle import attestation
from poolproof.reports.rows.verdicts import Overall
from poolproof.reports.terminal.command_line import PATH
from poolproof.reports.terminal.painting import STYLES, console, ending
from poolproof.suites.verify import verification


def _checked_fingerprint(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Refuse an invalid fingerprint: it is a typing error, and says nothing about the bundle."""
    if value is None or re.fullmatch("[0-9a-f]{64}", value):
        return value
    raise click.BadParameter("a fingerprint is 64 hexadecimal digits, as package prints them.")


_REQUIREMENTS = "conforms|conforms-in-part|no-waivers|isolated|plan=NAME"


def _checked_requirements(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> Sequence[str]:
    for value in values:
        if not re.fullmatch(r"conforms(-in-part)?|no-waivers|isolated|plan=\S+", value):
            raise click.BadParameter(f"{value!r:.80} is none of {_REQUIREMENTS.replace('|', ', ')}.")
    return values


@click.command("verify")
@click.argument("bundle", type=PATH)
@click.option(
    "--fingerprint", callback=_checked_fingerprint, help="The fingerprint that the maker of the bundle published."
)
@click.option("--signer", type=PATH, help="Public key (OpenSSH or PEM) that the bundle must be signed with.")
@click.option("--waivers", "agreed", multiple=True, type=PATH, help="File of the waivers agreed on; repeatable.")
@click.option("--attestation", "signed", type=PATH, help="The signature [default: BUNDLE.intoto.json].")
@click.option(
    "--require",
    "required",
    multiple=True,
    metavar=_REQUIREMENTS,
    callback=_checked_requirements,
    help="What the run in it has to be; repeatable. Of a narrowed run only conforms-in-part holds.",
)
def verify(
    bundle: Path,
    fingerprint: str | None,
    signer: Path | None,
    agreed: tuple[Path, ...],
    signed: Path | None,
    required: tuple[str, ...],
) -> None:
    """Check a BUNDLE offline: everything that can be derived is derived again.

    The cases are drawn again from the plan. Each row is compared with itself, the waivers and the evidence. Tables are
    made again from the rows. Exits with 0 if the bundle stands, whatever its verdict is. Exits with 1 if it was changed
    or contradicts itself, and with 2 if it is sound, but another version of poolproof judged it. Exits with 3 if it is
    no bundle, or cannot be opened safely, and with 6 if it stands, but its run does not meet --require.
    """
    by = (signer, signed or attestation.attestation_path(bundle)) if signer else None
    verified = verification.verify(bundle, fingerprint, by, agreed, required)
    show_verification(verified, console())
    sys.exit(verified.overall)


_WORDS = {
    Overall.CONFORMS: "stands",
    Overall.VIOLATES: "does not stand",
    Overall.INCOMPLETE: "sound, but judged by another suite",
    Overall.UNMET: "stands, but is not what was required",
}


def show_verification(verified: verification.Verification, console: Console) -> None:
    for step in verified.steps:
        if not step.problems:
            console.print(Text("✓ ", style="green").append(step.text, style="default"), soft_wrap=True)
        for problem in step.problems:
            mark = "✗ " if step.overall is Overall.VIOLATES else "! "
            console.print(Text(mark, style=STYLES[step.overall]).append(problem, style="default"), soft_wrap=True)
    about = verified.verdict and f"the run in it {verified.verdict}"
    console.print(ending(_WORDS[verified.overall], verified.overall, about), soft_wrap=True)
    console.print(Text(f"fingerprint {verified.fingerprint}", style="dim"), soft_wrap=True)
    for what, line in zip(("left out", "vouched for", "judged"), verified.account, strict=False):
        console.print(Text(f"{what}: {line}"), soft_wrap=True)
