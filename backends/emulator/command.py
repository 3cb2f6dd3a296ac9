"""The command ``poolproof emulator``: the emulated NPU for programs that need a real one."""

from __future__ import annotations

import re
import shlex
from functools import partial

import click

from poolproof.backends.base import BackendUnavailable
from poolproof.backends.emulator.backend import KNOWN_PRODUCTS
from poolproof.backends.emulator.build import LIBRARY_FOLDER, library
from poolproof.reports.terminal.command_line import give_up

_HELP = """Build the emulated NPU and print its environment for a shell.

torch_npu uses it as a card:

\b
eval "$(poolproof emulator env --product 950)"
python -c "import torch, torch_npu; print(torch.ones(3).npu().cpu())"
"""

_VERSION = re.compile(r"\d{1,2}\.\d{1,2}([.-][0-9A-Za-z]{1,16}){1,3}")


def _checked(_context: click.Context, _parameter: click.Parameter, version: str | None) -> str | None:
    if version and not _VERSION.fullmatch(version):
        raise click.BadParameter(f"{version!r} is not a version such as 9.0.0 or 8.5.RC1")
    return version


@click.group()
def emulator() -> None:
    """Use the emulated NPU in other programs."""


@emulator.command(help=_HELP)
@click.option(
    "--product",
    type=click.Choice(KNOWN_PRODUCTS, case_sensitive=False),
    default="A2",
    show_default=True,
    help="The product to emulate.",
)
@click.option("--version", callback=_checked, help="The version of CANN to report.  [default: 9.0.0]")
def env(product: str, version: str | None) -> None:
    try:
        root = library("cann", tell=partial(click.echo, err=True))
    except BackendUnavailable as error:
        give_up(str(error))
    variables = {
        "ASCEND_HOME_PATH": root,
        "ASCEND_TOOLKIT_HOME": root,
        "ASCEND_OPP_PATH": root / "opp",
        "POOLPROOF_EMULATOR_PRODUCT": product,
        "POOLPROOF_EMULATOR_VERSION": version or "",
    }
    for name, value in variables.items():
        click.echo(f"export {name}={shlex.quote(str(value))}")
    folder = shlex.quote(str(root / LIBRARY_FOLDER))
    click.echo(f'export LD_LIBRARY_PATH={folder}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"')
