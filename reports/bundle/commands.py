"""The command that packs a run into a bundle."""

from __future__ import annotations

from pathlib import Path

import click

from poolproof.reports.bundle import attestation, packing
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.terminal.command_line import PATH


@click.command()
@click.argument("run", type=PATH)
@click.option("-o", "--output", type=PATH, required=True, help="The zip file to write.")
@click.option("--sign", "key", type=PATH, help="Private key (OpenSSH or PEM) to sign the bundle with.")
def package(run: Path, output: Path, key: Path | None) -> None:
    """Put the RUN and everything that its verdict needs into one archive.

    Prints the bundle's fingerprint: the receiver can compare it (poolproof verify --fingerprint). A signature is
    written next to the archive, as OUTPUT.intoto.json.
    """
    fingerprint = packing.package(run, output)
    if key:
        click.echo(f"signed: {attestation.sign(output, read_digest(run), key)}")
    click.echo(f"{output}: {output.stat().st_size:,} bytes, fingerprint {fingerprint}")
