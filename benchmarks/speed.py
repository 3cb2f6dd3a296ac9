"""Speed of poolproof relative to other tests in the same minute: one command, one table of ratios.

    python benchmarks/speed.py [--json FILE] [--large] [--find] [--part NAME]... [--operator NAME]...

Without --part it measures all parts except runs, the finding of defects and replays, which take minutes.

Every ratio is of two values measured in turns in this run. It needs torch; the samples of torch's operator database
also need the package expecttest. A figure that misses its bound is marked, and the exit status is then 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table

from large_cases import measure_large
from measuring import Figure, machine
from replays import measure_replays
from small_cases import OPERATORS_OF_TORCH, measure_rates, measure_stages
from whole_runs import measure_finding, measure_runs, measure_start, measure_workers


@dataclass(frozen=True)
class Settings:
    """The extent of the measurements. ``sizes`` are numbers of elements of large cases."""

    operators: tuple[str, ...]
    cases: int
    rounds: int
    sizes: tuple[int, ...]
    defects: tuple[str, ...]


PARTS: dict[str, Callable[[Settings], Iterator[Figure]]] = {
    "small": lambda wanted: measure_rates(wanted.operators, wanted.cases, wanted.rounds),
    "stages": lambda wanted: measure_stages(wanted.operators, wanted.cases, wanted.rounds),
    "large": lambda wanted: measure_large(wanted.operators, wanted.sizes, wanted.rounds),
    "workers": lambda wanted: measure_workers(wanted.operators, wanted.cases // 10, wanted.rounds),
    "replays": lambda wanted: measure_replays(wanted.sizes, wanted.rounds),
    "runs": lambda wanted: measure_runs(wanted.rounds),
    "start": lambda wanted: measure_start(wanted.rounds),
    "find": lambda wanted: measure_finding(wanted.defects, every=8),
}

USUAL = tuple(name for name in PARTS if name not in ("find", "replays", "runs"))


@click.command()
@click.option("--part", "parts", multiple=True, type=click.Choice(list(PARTS)), help="Only this part, repeatable.")
@click.option(
    "--operator",
    "operators",
    multiple=True,
    type=click.Choice(OPERATORS_OF_TORCH),
    help="Only this operator, repeatable.",
)
@click.option("--cases", default=200, show_default=True, help="Small cases per operator and round; a run has a tenth.")
@click.option("--rounds", default=3, show_default=True, help="Rounds of which medians are taken.")
@click.option("--large", is_flag=True, help="10^8 elements, too: takes minutes and up to 20 GiB.")
@click.option("--find", is_flag=True, help="The time to find a seeded defect, too: takes minutes, and g++.")
@click.option("--defect", "defects", multiple=True, help="Time to find this defect, repeatable.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="File to keep the figures in.")
def main(
    parts: tuple[str, ...],
    operators: tuple[str, ...],
    cases: int,
    rounds: int,
    large: bool,
    find: bool,
    defects: tuple[str, ...],
    file: Path | None,
) -> None:
    sizes = (10**6, 10**7, *[10**8] * large)
    wanted = Settings(operators or OPERATORS_OF_TORCH, cases, rounds, sizes, defects)
    record = {"machine": machine(), "arguments": sys.argv[1:]}
    figures: list[Figure] = []
    for part in parts or (*USUAL, *["find"] * (find or bool(defects))):
        click.echo(f"measuring: {part}", err=True)
        figures += PARTS[part](wanted)
        if file:
            file.write_text(json.dumps(record | {"figures": _records(figures)}, indent=2) + "\n", encoding="utf-8")
    _show(figures)
    sys.exit(any(figure.holds is False for figure in figures))


def _records(figures: Sequence[Figure]) -> list[dict[str, object]]:
    return [asdict(figure) | {"holds": figure.holds} for figure in figures]


def _show(figures: Sequence[Figure]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160)
    described = machine()
    console.print(f"{described['cpu']}, {described['cores']} cores, load {described['load'][0]}")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("part", "what", "ours", "unit", "beside", "other", "ratio", "bound", ""):
        table.add_column(heading, justify="right" if heading in ("ours", "other", "ratio") else "left", overflow="fold")
    for figure in figures:
        table.add_row(
            figure.part,
            figure.what,
            _number(figure.ours),
            figure.unit,
            figure.beside,
            _number(figure.other),
            _number(figure.ratio),
            figure.bound,
            " ".join(filter(None, ("MISSED" if figure.holds is False else "", figure.note))),
            style="red" if figure.holds is False else None,
        )
    console.print(table)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
