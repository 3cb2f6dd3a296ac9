"""A run's verdicts for the terminal: the table, the details, and one line at the end with the conclusion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pandas as pd
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from poolproof.reports.clusters import FailureCluster, asides, describe, headline, tells_a_case, tells_a_cluster
from poolproof.reports.figures.clauses import follows, notable, totals
from poolproof.reports.figures.conclusion import Conclusion
from poolproof.reports.figures.coverage import COUNTS, group_text, met_in_all
from poolproof.reports.figures.digest import Digest
from poolproof.reports.figures.tables import COUNTS as VERDICTS
from poolproof.reports.figures.tables import Record, aspects_in_order, matrix_lines, records, total
from poolproof.reports.rows.failures import replay_line, what_failed
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import Overall
from poolproof.reports.terminal.painting import ending, frame_table
from poolproof.reports.waivers.review import Review, State

_MAX_GAPS, _MOST_FAILURES, _MOST_CLAUSES = 10, 12, 10
_FEW = 4
"""Most causes, and kinds of failures without one, to show for a run that violates."""
_STYLES_OF_STATES = {State.EXPIRED: "bold red", State.UNMATCHED: "yellow", State.NOT_NEEDED: "yellow"}

_MARGIN = "   "
_ON_THE_PAGE = ", shown on the page"
_folded = partial(Text, overflow="fold")

_MARKED = (
    ("violates", "✗", "bold red", "violated, crashed or timed out"),
    ("waived", "w", "yellow", "waived"),
    ("refused", "r", "dim", "of these refused as documented"),
    ("undocumented", "u", "yellow", "refused undocumented"),
    ("skipped", "s", "dim", "skipped"),
)
"""Counts in a square of the table besides the judged cases, with mark, style and meaning."""


def show(
    digest: Digest,
    console: Console,
    fault: str = "",
    remarks: Iterable[str] = (),
    *,
    whole: bool = True,
    status: int | None = None,
) -> None:
    """Print root causes, gaps and the conclusion; if the run has no failures, or ``whole``, also all details.

    Long lines are not wrapped, so that a replay line can be copied. ``fault`` of the system, if any, replaces the
    conclusion. ``remarks`` come before it. The exit ``status`` is the conclusion's, unless it is given.
    """
    whole = whole or not digest.clusters
    parts = root_causes(digest.clusters, whole)
    parts += _lists(digest)
    parts += _details(digest, console) if whole else []
    parts += _gaps(digest.gaps)
    if whole and (met := met_in_all(digest.factors)):
        parts.append(Text(f"\n{met}", style="dim"))
    parts += [Text(""), *map(Text, remarks)]
    if fault:
        parts.append(ending(Overall.COULD_NOT_RUN.word, Overall.COULD_NOT_RUN, fault))
    else:
        parts.append(_conclusion(digest.conclusion, digest.conclusion.overall if status is None else status))
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text))


def _details(digest: Digest, console: Console) -> list[RenderableType]:
    """Return the verdict table, the cases not judged, waivers and failures."""
    parts: list[RenderableType] = []
    if len(digest.supported_counts):
        parts += _verdict_table(digest.supported_counts, console)
    parts += _contract(digest.clauses)
    skips = records(digest.skips)
    lines = ((f"{skip['count']:>6}", skip["backend"], skip["verdict"], _folded(skip["reason"])) for skip in skips)
    parts += _listing("Not judged", lines)
    parts += _waivers(digest.relevant_waivers)
    parts += _kinds(digest.failures) if len(digest.failures) > len(digest.clusters) else []
    parts += _refusals(digest.refusals)
    parts += _never_run(digest.never_run)
    return parts


def _lists(digest: Digest) -> list[RenderableType]:
    """Return for each case list the verdicts beside those of its own standards."""
    parts: list[RenderableType] = []
    for (backend, name), group in digest.list_results.groupby(["backend", "list"]):
        parts += [Text(f"\nCase list {name} on {backend}", style="bold"), frame_table(group, _LIST_HEADINGS, "–")]
    return parts


def root_causes(found: Sequence[FailureCluster], whole: bool) -> list[RenderableType]:
    """Return what fails, and for each cluster when, with its smallest case; empty if nothing fails."""
    title, most = headline(found), len(found) if whole else _FEW
    if not title:
        return []
    first = title if tells_a_cluster(found) else ""
    parts: list[RenderableType] = [] if first else [Text(f"\n{title}", style="bold red")]
    if shown := found[: int(tells_a_case(found))]:
        parts.append(Text(f"{_MARGIN}{replay_line(shown[0].smallest)}", style="cyan"))
    parts += _numbered(found[len(shown) : most], len({cluster.backend for cluster in found}) > 1, whole, first)
    return parts + _more(len(found) - most, "kind", "\nand ", _ON_THE_PAGE)


def _numbered(found: Sequence[FailureCluster], several: bool, whole: bool, first: str = "") -> Iterator[RenderableType]:
    """List clusters, each with a sentence (of the first ``first``), its smallest case and the line to replay it."""
    for number, cluster in enumerate(found, 1):
        sentence, first = first or describe(cluster), ""
        sentence = f"{cluster.backend}: {sentence}" if several else sentence
        table = Table.grid(padding=(0, 1))  # of texts that a terminal folds beside the number
        table.add_column(width=len(_MARGIN) - 1, justify="right")
        table.add_column(overflow="fold")
        table.add_row(Text(str(number), style="bold red"), Text(sentence, style="red"))
        for aside in asides(cluster) if whole else cluster.probed[:1]:
            table.add_row("", Text(aside, style="dim"))
        table.add_row("", Text(f"smallest case: {cluster.message}"))
        yield from (Text(""), table, Text(f"{_MARGIN}{replay_line(cluster.smallest)}", style="cyan"))


def _conclusion(conclusion: Conclusion, status: int) -> Text:
    """Return the line for a CI engineer: verdict, exit status, reason, and how to continue."""
    totals = conclusion.totals
    notes = [*conclusion.reasons]
    if not notes:
        planned = f" of {conclusion.planned:,} planned" if conclusion.planned else ""
        notes.append(f"{conclusion.judged:,}{planned} cases judged, {conclusion.conforming_text}")
    if totals["refused"]:
        notes.append(f"{count_of(totals['refused'], 'call')} refused as documented, so never run")
    if totals["waived"] and conclusion.reasons:
        notes.append(f"{totals['waived']:,} waived")
    notes += filter(None, [conclusion.narrowed, conclusion.further_text, conclusion.mended_text])
    if status != conclusion.overall:
        notes.append(f"{status} is pytest's own status, of an interrupt or of other tests")
    if any("used up" in note for note in notes):
        notes.append("continue with --resume --budget TIME")
    return ending(*conclusion.shown, ". ".join(note[0].upper() + note[1:] for note in notes), status)


def _verdict_table(counts: pd.DataFrame, console: Console) -> list[RenderableType]:
    """Return the matrix with its key; only its last column if the terminal is too narrow."""
    table = _matrix(counts, aspects_in_order(counts))
    totals = counts.sum()
    key = "; ".join(["cases judged", *(f"{mark} {meaning}" for name, mark, _, meaning in _MARKED if totals[name])])
    if console.measure(table, options=console.options.update_width(1000)).maximum > console.width:
        table = _matrix(counts, [])
        key += "; a wider terminal shows each aspect"
    return [table, Text(key, style="dim")]


def _matrix(counts: pd.DataFrame, aspects: list[str]) -> Table:
    """Return one line per backend, operator and dtype pair, one column per aspect."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("operator", "dtype", "index"):
        table.add_column(heading, no_wrap=True)
    for aspect in aspects:
        table.add_column(aspect.replace("_", "\n"), justify="right", no_wrap=True)
    table.add_column("all", justify="right", no_wrap=True)
    shown = ""
    for (backend, *names), counted in matrix_lines(counts).items():
        if backend != shown:
            table.add_section()
            table.add_row(Text(backend, style="bold"))
            shown = backend
        squares = [_square(counted[aspect]) if aspect in counted else Text("") for aspect in aspects]
        table.add_row(*names, *squares, _square(total(counted.values(), VERDICTS)))
    return table


def _square(counts: Record) -> Text:
    text = Text(str(counts["judged"]))
    marked = [(f" {mark}{counts[name]}", style) for name, mark, style, _ in _MARKED if counts[name]]
    for mark_text, style in marked:
        text.append(mark_text, style=style)
    if not marked:
        text.stylize("green")
    return text


def _listing(title: str, lines: Iterable[tuple[RenderableType, ...]]) -> list[RenderableType]:
    """Return a titled table of lines; empty without lines."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for line in lines:
        table.add_row(*line)
    return [Text(f"\n{title}", style="bold"), table] if table.row_count else []


def _more(number: int, thing: str, before: str = "       and ", after: str = "") -> list[RenderableType]:
    """Return the number of further things in a list; empty if there are none."""
    return [Text(f"{before}{count_of(number, f'more {thing}')}{after}", style="dim")] if number > 0 else []


def _contract(clauses: pd.DataFrame) -> list[RenderableType]:
    """Return one line per backend, and the clauses that are violated or answered as their page says."""
    if clauses.empty:
        return []
    parts: list[RenderableType] = [Text("\nContract", style="bold")]
    for line in records(totals(clauses)):
        scope = f"{count_of(line['clauses'], 'clause')} of {count_of(line['operators'], 'operator')}"
        scope += f" in {count_of(line['judged'], 'call')}"
        where = "where code and page of the library disagree, it follows"
        answers = f"{where} the code in {count_of(line['as_code'], 'call')} and the page in {line['as_page']:,}"
        answers += f"; {count_of(line['as_earlier'], 'answer')} of an earlier release" if line["as_earlier"] else ""
        parts.append(Text(f"{line['backend']} {line['product']}: {scope}, {line['violates']:,} violated; {answers}"))
    chosen = notable(clauses).sort_values(["violates", "as_page"], ascending=False, kind="stable")
    lines = []
    for line in records(chosen.head(_MOST_CLAUSES)):
        violated = Text(f"✗{line['violates']}", style="bold red")
        mark = violated if line["violates"] else Text(follows(line), style="dim")
        clause = line["backend"], line["operator"], line["clause"] or "legal"
        lines.append((mark, *clause, _folded(line["statement"])))
    parts += _listing("Clauses that are violated or answered as the page says", lines)
    return [*parts, *_more(len(chosen) - _MOST_CLAUSES, "clause", "and ", _ON_THE_PAGE)]


_LIST_HEADINGS = {
    "list_standard": "its own standard",
    "rows": "rows",
    "judged": "judged",
    "conforms": "conform",
    "violates": "violate",
    "waived": "waived",
    "refused": "refused as\ndocumented",
    "passed": "standard\npasses",
    "failed": "\nfails",
    "missed": "passes what\nviolates",
    "accused": "fails what\nconforms",
}


def _waivers(reviews: Iterable[Review]) -> list[RenderableType]:
    lines: list[tuple[RenderableType, ...]] = []
    folded = []
    for review in reviews:
        if review.state is State.UNMATCHED and not review.is_asked:
            folded.append(review.waiver.id)
            continue
        state = Text(review.description, style=_STYLES_OF_STATES.get(review.state, ""))
        lines.append((f"{review.cases:>6}", state, review.waiver.id, _folded(review.waiver.reason)))
    if folded:
        lines.append((f"{0:>6}", "unmatched", _folded(", ".join(folded)), "of operators that were not judged"))
    return _listing("Waivers", lines)


def _never_run(never: pd.DataFrame) -> list[RenderableType]:
    names = ("backend", "operator", "dtype", "class")
    lines = (
        (f"{line['refused']:>6,}", *(line[name] for name in names), _folded(line["because"]))
        for line in records(never.head(_MAX_GAPS))
    )
    title = "Never run, only refused"
    return _listing(title, lines) + _more(len(never) - _MAX_GAPS, "line")


def _gaps(gaps: pd.DataFrame) -> list[RenderableType]:
    """Return the mandatory groups with missing cases, by operator and dtype, the largest gaps first."""
    if gaps.empty:
        return []
    columns = [name for name in gaps.columns if name not in (*COUNTS, "index_dtype", "aspect", "clause")]
    together = gaps.groupby([*columns, "because"], dropna=False, as_index=False)[["missing", "planned"]].sum()
    worst = together.sort_values("missing", ascending=False, kind="stable")
    lines = (
        (f"{gap['missing']:>6,}", f"of {gap['planned']:,}", group_text(gap), Text(gap["because"]))
        for gap in records(worst.head(_MAX_GAPS))
    )
    return _listing("Planned, but not judged", lines) + _more(len(worst) - _MAX_GAPS, "line")


def _refusals(found: Sequence[FailureCluster]) -> list[RenderableType]:
    title = "\nRefused without a known document that allows it"
    parts: list[RenderableType] = [Text(title, style="bold yellow")] if found else []
    return [*parts, *_numbered(found, len({cluster.backend for cluster in found}) > 1, False)]


def _kinds(failed: pd.DataFrame) -> list[RenderableType]:
    lines = []
    for row in records(failed.head(_MOST_FAILURES)):
        what = _folded(row["operator"]), _folded(what_failed(row)), Text(row["case_id"], style="dim")
        lines.append((f"{row['cases']:>6,}", row["backend"], *what))
    listed = _listing("Violations by kind, with a case of each", lines)
    return listed + _more(len(failed) - _MOST_FAILURES, "kind", after=_ON_THE_PAGE)
