"""How many suspects one cause makes, and whether the first is named by what brings the defect about.

    python studies/suspects.py [-n 2] [--rounds 1] [--least 3] [--diagnose 30] [--table FILE] [DEFECT...]

Every seeded defect is asked the first rounds of the smoke plan, on the product that it is at home on, to their end: no
stop at the first find, and no smaller cases. One cause owes one suspect. For the defects of `TRIGGERS` what brings
them about is a condition on the call; the sentence names it if it has one of the words for each part of that condition.
They were written down before the first sentence was read, from the table of defects. Defects that fail fewer than
``--least`` cases there are counted apart: nothing can be claimed of them. With ``--diagnose`` further cases are asked,
as at the end of a session, and what was told before that is counted, too. Exits with 1 if the honest emulator has a
suspect.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import click
import pandas as pd

from poolproof.backends.emulator.defects import defects
from poolproof.references.core.compiled import compile_all
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED
from poolproof.reports.suspects import Suspect, suspects
from poolproof.reports.suspects.inquiry import Inquiry, open_ones
from poolproof.score.hunt import HONEST, answers, backend_name
from poolproof.score.questions import rounds
from poolproof.suites.judging.asked import Asked
from poolproof.suites.judging.judge import Question
from poolproof.suites.running.diagnosis import Diagnosis
from poolproof.suites.running.plans import PLANS, Subject
from poolproof.suites.running.processes import Overdue
from poolproof.suites.running.sandbox import row_without_answer, survey
from poolproof.suites.running.serving import may_be_damaged

_HALF = "half precision|float16|dtype"
_PLANES = r"N\*C|\bN\b|\bC\b|planes|elements"
_WINDOW = "several windows|windows per|windows >=|kernel"

TRIGGERS: dict[str, tuple[str, ...]] = {
    "decode_by_output_width": ("windows per row|stride|W",),
    "decode_by_padded_width": ("padding",),
    "extents_exchanged": ("H unlike W|differ",),
    "gradient_of_first_plane": (_PLANES,),
    "plane_offset_dropped": (_PLANES, "route"),
    "stride_of_last_axis": ("stride that differs|stride",),
    "index_in_padded_plane": ("padding", "forward|operator"),
    "channels_last_batch_order": ("NHWC|nhwc",),
    "uint16_plane_index": ("plane cells|elements|^[HWD] ",),
    "uint16_plane_counter": (r"N\*C|\bC\b|\bN\b",),
    "repeat_counter_wraps": ("windows per",),
    "stride_field_wraps": ("stride",),
    "uint8_window_offset": ("kernel",),
    "kernel_field_wraps": ("kernel",),
    "assign_not_accumulate": ("overlapping|stride|gradients in one cell",),
    "half_accumulator": (_HALF, "gradients in one cell|overlapping|indices recipe|gradient recipe"),
    "phases_rounded_down": ("multiple|overlapping",),
    "upsampling_assigns": ("longer|overlapping",),
    "unwritten_tail": ("mod",),
    "plane_tail_dropped": (r"N\*C",),
    "width_tail_dropped": ("windows per row",),
    "row_tail_not_flushed": ("W mod|W >=|tile",),
    "padded_lane_adds": ("windows per row",),
    "wide_lanes_halved": (r"N\*C",),
    "overhang_reads_next_row": ("beyond",),
    "adaptive_windows_of_one_size": ("divide",),
    "last_ceil_window_dropped": ("ceil_mode",),
    "ceil_clip_missing": ("ceil_mode",),
    "overhang_read_as_zero": ("beyond|padding", "forward|operator|negative"),
    "dilation_blind_overlap": ("dilat|stride >= kernel",),
    "dilation_of_first_axis": ("dilation that differs|dilation along",),
    "dilation_blind_phases": ("dilat",),
    "nan_dropped": ("gradient recipe",),
    "opposite_infinities_cancel": ("gradient recipe",),
    "nan_loses": ("values recipe",),
    "minus_infinity_unset": ("values recipe",),
    "last_maximum_wins": ("values recipe (=|among)|forward",),
    "first_nan_wins": ("values recipe",),
    "argmax_recomputed": ("indices recipe",),
    "compares_rounded_data": ("float32", "forward|operator|values"),
    "bfloat16_truncated": ("bfloat16",),
    "bfloat16_through_float16": ("bfloat16",),
    "float16_half_away": ("float16",),
    "float16_subnormals_flushed": ("float16",),
    "int64_read_as_int32": ("int64",),
    "float32_as_tf32": ("float32",),
    "gradient_strides_ignored": ("grad_output",),
    "indices_strides_ignored": ("indices",),
    "zero_stride_advances": ("expanded|layout",),
    "offset_ignored": ("offset of indices|layout of indices",),
    "offset_in_bytes": ("offset of grad_output|layout of grad_output",),
    "output_strides_ignored": ("grad_input",),
    "gaps_overwritten": ("grad_input",),
    "expanded_plane_ignored": ("expanded|layout",),
    "plane_gap_ignored": ("layout|strided",),
    "narrowed_rows_lost": ("layout|offset",),
    "merged_rows_collide": ("NHWC|nhwc",),
    "empty_refused": ("empty|N <|N =",),
    "half_padding_refused": ("half|padding",),
    "unbatched_refused": ("batch axis|rank",),
    "determinism_ignored": ("deterministic",),
    "deterministic_width_tail": ("deterministic",),
    "order_by_address": ("deterministic",),
    "simt_count_wraps": ("windows per plane = 256|windows",),
    "unit_kernel_ignores_stride": ("kernel of one|kernel",),
    "crash_on_uneven_cores": (r"N\*C",),
    "write_past_output": ("mod 32|mod 16|mod 8",),
    "indices_made_global": (_PLANES,),
    "zero_stride_accepted": ("clause|stride",),
    "null_result_as_invalid": ("clause|null",),
    "uint32_indices_accepted": ("clause|dtype of indices",),
    "dilation_accepted": ("clause|dilation",),
}
"""Defect -> for each part of its condition a pattern for the words of which one has to appear."""


@dataclass(frozen=True)
class Result:
    """What the rows of one defect led to."""

    defect: str
    rows: int
    failing: int
    before: tuple[Suspect, ...]
    found: tuple[Suspect, ...]
    further: int

    @property
    def claimed(self) -> str:
        """The sentence of the first suspect, empty without."""
        return self.found[0].sentence if self.found else ""

    @property
    def names_trigger(self) -> bool | None:
        """None for a defect whose trigger is no condition on the call."""
        return _named(self.defect, self.found)

    @property
    def named_before(self) -> bool | None:
        return _named(self.defect, self.before)

    def line(self) -> str:
        named = {None: "-", True: "yes", False: "NO"}[self.names_trigger]
        counts = f"{self.failing} of {self.rows} fail, further {self.further}"
        counts += f", suspects {len(self.found)}, named {named}"
        return f"{self.defect}: {counts}: {self.claimed}"


def _named(defect: str, found: Sequence[Suspect]) -> bool | None:
    parts = TRIGGERS.get(defect)
    if parts is None:
        return None
    said = ", ".join(map(str, found[0].terms)) if found else ""
    return all(re.search(part, said) for part in parts)


def rows_of(product: str, defect: str, questions: Sequence[Asked], timeout: float) -> Iterator[Row]:
    """The answers of the emulator with a defect, from a fresh process after one that may have damaged its own."""
    at = 0
    while at < len(questions):
        row = None
        for row in answers(product, defect, questions[at:], timeout):
            yield row
            at += 1
            if may_be_damaged(row):
                break
        if at < len(questions) and (row is None or not may_be_damaged(row)):
            yield row_without_answer(questions[at], Overdue(timeout))
            at += 1


class Judged:
    """The rows of a defect, the further ones among them."""

    def __init__(self, product: str, defect: str, timeout: float) -> None:
        self._product, self._defect, self._timeout = product, defect, timeout
        self.rows: list[Row] = []

    def ask(self, questions: Sequence[Asked]) -> None:
        labels = {"backend": backend_name(self._product), "product": self._product}
        self.rows += (row | labels for row in rows_of(self._product, self._defect, questions, self._timeout))

    def ask_further(self, question: Question, _backend: str) -> Row:
        self.ask([question])
        return self.rows[-1]

    def suspects(self) -> tuple[Suspect, ...]:
        return suspects(pd.DataFrame(self.rows))

    def inquiries(self) -> list[Inquiry]:
        return open_ones(self.suspects())

    @property
    def failing(self) -> int:
        return sum(row["verdict"] in FAILED for row in self.rows)


def result(
    defect: str, product: str, questions: Sequence[Asked], timeout: float, seconds: float, subjects: Sequence[Subject]
) -> Result:
    judged = Judged(product, defect, timeout)
    judged.ask(questions)
    planned, before, failed = len(judged.rows), judged.suspects(), judged.failing
    if judged.failing and seconds:
        Diagnosis(judged.inquiries, judged.ask_further, subjects, seconds, lambda _: None).run()
    return Result(defect, planned, failed, before, judged.suspects(), len(judged.rows) - planned)


def say(results: Sequence[Result], least: int) -> None:
    shown = [each for each in results if each.defect and each.failing >= least]
    triggers = [each for each in shown if each.names_trigger is not None]
    click.echo(f"{len(shown)} defects fail {least} cases or more, {len(triggers)} by a condition on the call")
    _say("", [each.before for each in shown], [each.named_before for each in triggers])
    if any(each.further for each in results):
        _say("with further cases: ", [each.found for each in shown], [each.names_trigger for each in triggers])
    few = [each for each in results if each.defect and each.failing < least]
    told = [each.defect for each in few if any(suspect.is_claimed for suspect in each.found)]
    click.echo(f"fewer: {', '.join(f'{each.defect} ({each.failing})' for each in few) or 'none'}")
    click.echo(f"of these with a condition all the same: {', '.join(told) or 'none'}")


def _say(begin: str, found: Sequence[tuple[Suspect, ...]], named: Sequence[bool | None]) -> None:
    one, few = (sum(len(each) <= most for each in found) for most in (1, 2))
    exact = sum(bool(each) and each[0].is_exact for each in found)
    click.echo(
        f"{begin}one suspect {one}, at most two {few}; first one exact {exact}; trigger named {sum(map(bool, named))}"
    )


def markdown(results: Sequence[Result], least: int) -> Iterator[str]:
    """A line for each defect that fails enough."""
    yield "| defect | what triggers it | suspects | the first |\n|---|---|--:|---|\n"
    for each in results:
        if each.defect and each.failing >= least:
            trigger, said = defects()[each.defect].trigger, each.claimed
            yield f"| `{each.defect}` | {trigger} | {len(each.found)} | {said.replace('*', chr(92) + '*')} |\n"


@click.command()
@click.option("--rounds", "most_rounds", default=1, help="of the smoke plan")
@click.option("--least", default=3, help="failing cases of a defect that counts")
@click.option("--diagnose", "seconds", default=0.0, help="seconds for further cases about each suspect")
@click.option("--table", type=click.Path(path_type=Path), help="file for a table in Markdown")
@click.option("--timeout", default=10.0, help="seconds for one case")
@click.option("-n", "workers", default=2, help="processes that draw")
@click.argument("names", nargs=-1)
def main(
    names: tuple[str, ...],
    most_rounds: int,
    least: int,
    seconds: float,
    table: Path | None,
    timeout: float,
    workers: int,
) -> None:
    chosen = [defects()[name] for name in names or defects()]
    products = list(dict.fromkeys(defect.products[0] for defect in chosen))
    surveys = {product: survey(backend_name(product)) for product in products}
    asked = list(islice(rounds(surveys, PLANS["smoke"], 0, workers), most_rounds))
    questions = {product: [each for part in asked for each in part.questions[product]] for product in products}
    compile_all()
    results = []
    for name, product in [*((HONEST, product) for product in products), *((one.id, one.products[0]) for one in chosen)]:
        asked_of = surveys[product].subjects
        results.append(result(name, product, questions[product], timeout, seconds, asked_of))
        print(results[-1].line() if name else f"honest {product}: {results[-1].failing} fail", flush=True)
    say(results, least)
    if table is not None:
        table.write_text("".join(markdown(results, least)), encoding="utf-8")
    sys.exit(any(each.found for each in results if not each.defect))


if __name__ == "__main__":
    main()
