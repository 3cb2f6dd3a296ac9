"""Comparisons of a run's records with each other: times, counts, parts, libraries and waivers.

Each is small and has an entry in the table `COMPARISONS`: the sentence that holds without contradictions, and a
function that yields contradictions. A forger must change everything that one entry is compared with.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from poolproof.references.kernels.judge import ULP_EDGES
from poolproof.references.summary import ULP_CLASSES
from poolproof.reports.figures.digest import Digest, judging_day, waivers_of
from poolproof.reports.figures.tables import COUNTED_CASES
from poolproof.reports.rows.environment import library_contents
from poolproof.reports.rows.store import read_rows
from poolproof.reports.waivers import WaiverError, check_terms, load, shipped

DAY = 86_400.0
"""Tolerance for clocks and time zones of several machines."""

MOST_TIME = 2.5e11
"""A time before the year 9999."""

_COUNTS = ("n_single_valued", "n_reject", "n_bitexact", "n_inexact", *ULP_CLASSES, "ulp_nonfinite")
_NEVER_NEGATIVE = ("seconds", "call_seconds", "max_abs_err", "mean_abs_err", "max_ulp", "mere", "mare", "repeat_n")
_ROUNDING = 1 + 1e-9
"""Factor by which a mean may exceed the largest of its values, from rounding."""

_NOTED = (
    *("case_id", "backend", "aspect", "elements", "n", *_COUNTS, *_NEVER_NEGATIVE, "bias_ulp"),
    *("asked_again", "failed_again", "judged_at", "worker"),
)


def _column_rules() -> Iterator[tuple[str, pc.Expression]]:
    """Yield sentences about a row, each with a filter for the rows that it is true of."""
    of, n = pc.field, pc.field("n")
    for name in _COUNTS:
        yield f"counts in {name} what is not between 0 and its n", (of(name) < 0) | (of(name) > n)
    for name in _NEVER_NEGATIVE:
        yield f"has a {name} that is not a number from 0", ~(of(name) >= 0)
    in_classes = [of(name) for name in ULP_CLASSES]
    finite = reduce(add, in_classes)
    yield "has another n than its call has elements", n != of("elements")
    yield "has other cells by ulp than n", finite + of("ulp_nonfinite") != n
    yield "has more inexact cells than finite ones", of("n_inexact") > finite
    yield "has fewer exact cells than cells without any error", of("n_bitexact") < of("ulp_0")
    near = of("ulp_0") + of("ulp_le05") + of("ulp_nonfinite")
    yield "has more exact cells than cells that err by half an ulp at most", of("n_bitexact") > near
    for number, edge in enumerate(ULP_EDGES):
        beyond = reduce(add, in_classes[number + 1 :])
        sentence = f"errs by more than {edge:g} ulp at most, or in some cells, and not in both"
        yield sentence, (of("max_ulp") > edge) != (beyond > 0)
    yield "errs more in the mean than at most", of("mean_abs_err") > of("max_abs_err") * _ROUNDING
    yield "errs more in the mean than at most, relatively", of("mere") > of("mare") * _ROUNDING
    yield "errs more outwards than at most", pc.abs(of("bias_ulp")) > of("max_ulp") * _ROUNDING
    erring = finite - of("ulp_0")  # an error far below an ulp counts as 0 ulp, but is not 0
    yield "errs in some cells, and nowhere", ~(of("max_abs_err") > 0) & (erring > 0)
    yield "failed more often than it was repeated", of("failed_again") > of("asked_again")


def _columns(_digest: Digest, rows: pa.Table) -> Iterator[str]:
    for sentence, selects in _column_rules():
        for row in rows.filter(selects).select(["case_id", "backend"]).to_pylist():
            yield f"case {row['case_id']} on {row['backend']} {sentence}"


def _times(digest: Digest, rows: pa.Table) -> Iterator[str]:
    """Compare the times of a run with those of its rows, and each worker's time with the time available."""
    run, at = digest.run, pc.field("judged_at")
    end = _end(run, rows)
    if end < run["started"] - DAY:
        yield "the run finished before it was started"
    if end > time.time() + DAY:
        yield f"the run ended in the future, on {datetime.fromtimestamp(min(end, MOST_TIME), UTC).date()}"
    outside = rows.filter(~((at >= run["started"] - DAY) & (at <= end + DAY)))
    for row in outside.select(["case_id", "backend"]).to_pylist():
        yield f"case {row['case_id']} on {row['backend']} was judged outside the time of the run"
    parts = max(1, len(run.get("merged", ())))
    budget = run.get("budget")
    available = parts * (end - run["started"] + DAY)
    if budget and run["finished"] is not None:
        available = min(available, budget["took"] * 1.1 + 600.0 * parts)  # a case may begin as the time ends
        if budget["took"] > available:
            yield "the budget took more time than there was from start to end"
    timed = rows.select(["aspect", "worker", "seconds"])
    spent = timed.filter(COUNTED_CASES).group_by("worker").aggregate([("seconds", "sum")])
    for worker, seconds in zip(spent["worker"].to_pylist(), spent["seconds_sum"].to_pylist(), strict=True):
        if seconds == 0.0:
            yield f"worker {worker} judged in no time"
        if seconds is not None and seconds > available:
            yield f"worker {worker} judged for {seconds:,.0f} s, and had {available:,.0f} s"


def _end(run: Mapping[str, Any], rows: pa.Table) -> float:
    """Return the time when a run finished, or when its last row was judged."""
    last = pc.max(rows["judged_at"]).as_py()
    return float(run["finished"] or max(run["started"], min(last or 0.0, MOST_TIME)))


def _days(digest: Digest, rows: pa.Table) -> Iterator[str]:
    """Compare the day of waivers with the times of the run, and with the terms of waivers."""
    run, day = digest.run, judging_day(digest.run)
    first, last = (datetime.fromtimestamp(at, UTC).date() for at in (run["started"], _end(run, rows)))
    if not first - timedelta(1) <= day <= last + timedelta(1):
        yield f"waivers were judged on {day}, and the run was made from {first} to {last}"
    try:
        check_terms([*waivers_of(run), *shipped()], day)
    except WaiverError as error:
        yield f"the run is older than its suite, or than a waiver in it: {error}"


def _waiver_texts(digest: Digest, _rows: pa.Table) -> Iterator[str]:
    ours = {waiver.id.casefold(): waiver for waiver in shipped()}
    for waiver in waivers_of(digest.run):
        if waiver != ours.get(waiver.id.casefold(), waiver):  # ids differ by more than case
            yield f"waiver {waiver.id} differs from the one in poolproof"


def disagreed(digest: Digest, agreed: Sequence[Path]) -> Iterator[str]:
    """Yield the waivers of a run that neither poolproof nor the ``agreed`` files contain."""
    known = [*shipped(), *(waiver for path in agreed for waiver in load(path))]
    for waiver in waivers_of(digest.run):
        if waiver not in known:
            yield f"waiver {waiver.id} of {waiver.owner} was not agreed on"


def _merged(digest: Digest, rows: pa.Table) -> Iterator[str]:
    """Compare a merged run with the sums of its parts."""
    run, parts = digest.run, digest.run["merged"]
    if (number := sum(part["rows"] for part in parts)) != rows.num_rows:
        yield f"its parts have {number:,} rows together, and it has {rows.num_rows:,}"
    if run["started"] != min((part["started"] for part in parts), default=run["started"]):
        yield "its start is not that of its first part"
    if run["finished"] not in (None, max((part["finished"] or 0.0 for part in parts), default=None)):
        yield "its end is not that of its last part"
    ids = " ".join(sorted(part["id"] for part in parts))
    if run["id"] != hashlib.sha256(ids.encode()).hexdigest()[:32]:
        yield "its id is not that of its parts"
    shards = {part["shard"] for part in parts}
    count = max((shard.partition("/")[2] for shard in shards), default="")
    if shards != {f"{place}/{count}" for place in range(1, len(shards) + 1)} or count != str(len(shards)):
        yield f"its parts are shards {', '.join(sorted(shards))}, and not all of one plan"


_LIBRARY = re.compile(r"sha256:[0-9a-f]{64}, .*", re.DOTALL)


def _libraries(digest: Digest, _rows: pa.Table) -> Iterator[str]:
    """Compare the identity of libraries with the backend's record: file names, hashes and versions."""
    for backend, environment in digest.run["backends"].items():
        hashed = library_contents(environment)
        for name, text in environment.items():
            if name.startswith("library ") and not (name in hashed and _LIBRARY.fullmatch(text)):
                yield f"{backend} has a {name} without a hash"
            elif name in hashed and Path(name.removeprefix("library ")).name != Path(text.partition(", ")[2]).name:
                yield f"{backend} has a {name} in {text.partition(', ')[2]}"
        for name in filter(None, environment.get("libraries", "").split(", ")):
            if not any(Path(library.removeprefix("library ")).name == name for library in hashed):
                yield f"{backend} loaded {name}, which has no hash"
        for name, text in environment.items():
            package, version = name.removeprefix("wheel "), text.partition(",")[0]
            installed = environment.get(package, version) if name.startswith("wheel ") else version
            if installed.partition("+")[0] != version.partition("+")[0]:
                yield f"{backend} is {package} {installed}, of a wheel of {version}"


Comparison = tuple[str, Callable[[Digest, pa.Table], Iterator[str]]]

COMPARISONS: tuple[Comparison, ...] = (
    ("the columns of each row agree with each other", _columns),
    ("rows were judged during the run, within the available time", _times),
    ("waivers were in force on the days of the run", _days),
    ("waivers of poolproof are unchanged", _waiver_texts),
    ("libraries are identified as the backend names them", _libraries),
    ("a merged run is the sum of its parts", _merged),
)


def contradictions(digest: Digest) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield each comparison's sentence with its contradictions."""
    rows = read_rows(digest.folder, _NOTED)
    for sentence, compare in COMPARISONS if "merged" in digest.run else COMPARISONS[:-1]:
        yield sentence, compare(digest, rows)
