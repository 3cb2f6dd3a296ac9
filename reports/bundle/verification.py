"""Whether a bundle stands: its hashes, its suite, and its verdict judged again from the rows and the evidence in it."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import pyarrow.compute as pc
import pyarrow.parquet as pq

from poolproof.reports.bundle.packing import SUMS, VERDICT, derived_texts
from poolproof.reports.figures.conclusion import count_of
from poolproof.reports.figures.digest import Digest, judging_day, read_digest, waivers_of
from poolproof.reports.rows.environment import suite_identity
from poolproof.reports.rows.evidence import EvidenceError, file_name, read_evidence
from poolproof.reports.rows.records import read_record
from poolproof.reports.rows.schema import READABLE_VERSIONS, SCHEMA_VERSION
from poolproof.reports.rows.store import having, read_rows
from poolproof.reports.rows.verdicts import FAILED, BadInput, Overall, Verdict, gravest
from poolproof.reports.waivers import Waivers
from poolproof.reports.waivers.review import scope_columns

_MOST_PROBLEMS = 20
"""Problems of one step that are told apart; a bundle of another run has thousands."""


class NotABundle(BadInput):
    """The file is no bundle; the text says why."""


@dataclass(frozen=True)
class Step:
    """One question put to a bundle. Without problems ``text`` is the answer; problems weigh as much as ``weight``."""

    text: str
    problems: tuple[str, ...] = ()
    weight: Overall = Overall.VIOLATES

    @property
    def overall(self) -> Overall:
        return self.weight if self.problems else Overall.CONFORMS


@dataclass(frozen=True)
class Verification:
    """What was found about a bundle.

    ``fingerprint`` is the SHA-256 that two parties compare to know that they hold the same bundle; ``verdict`` what
    its rows say now, with its sentences, empty when they cannot be read.
    """

    fingerprint: str
    steps: tuple[Step, ...]
    verdict: str = ""

    @property
    def overall(self) -> Overall:
        """That of the gravest step; another suite's bundle can only be judged by other rules than its own."""
        return gravest({step.overall: True for step in self.steps})


def verify(bundle: Path, fingerprint: str | None = None) -> Verification:
    """Check a bundle without any network or backend; `NotABundle` if the file is none.

    ``fingerprint`` is what the other party says the bundle has.
    """
    with _open(bundle) as archive, tempfile.TemporaryDirectory() as scratch:
        sums = archive.read(SUMS)
        actual = hashlib.sha256(sums).hexdigest()
        steps = [_fingerprint_step(actual, fingerprint)] if fingerprint else []
        steps += [_hash_step(archive, sums.decode())]
        folder, verdict = Path(scratch), ""
        try:
            archive.extractall(folder)
            digest = read_digest(folder)
        except (BadInput, BadZipFile, KeyError) as error:
            steps.append(Step("", (f"the run in it cannot be read: {str(error).replace(scratch, 'it')}",)))
        else:
            steps += [_suite_step(digest.run), _schema_step(folder), _derived_step(digest)]
            steps += [_row_step(digest), _evidence_step(digest)]
            verdict = "; ".join((digest.conclusion.overall.word, *digest.conclusion.reasons))
    return Verification(actual, tuple(steps), verdict)


def _open(bundle: Path) -> ZipFile:
    try:
        archive = ZipFile(bundle)
    except FileNotFoundError:
        raise NotABundle(f"there is no file {bundle}") from None
    except (BadZipFile, OSError) as error:
        raise NotABundle(f"{bundle} is no bundle: {error}") from error
    if SUMS not in archive.namelist():
        raise NotABundle(f"{bundle} is no bundle: it has no {SUMS}")
    return archive


def _fingerprint_step(actual: str, expected: str) -> Step:
    same = actual == expected.lower()
    return Step("the fingerprint is the one given", () if same else (f"the fingerprint is {actual}, not {expected}",))


def _hash_step(archive: ZipFile, sums: str) -> Step:
    expected = {name: value for value, _, name in (line.partition("  ") for line in sums.splitlines())}
    present = set(archive.namelist()) - {SUMS}
    problems = [f"removed: {name}" for name in sorted(set(expected) - present)]
    problems += [f"added: {name}" for name in sorted(present - set(expected))]
    both = sorted(present & set(expected))
    problems += [f"changed: {name}" for name in both if _hash(archive, name) != expected[name]]
    return Step(f"{count_of(len(expected), 'file')}, all as they were hashed", tuple(problems))


def _hash(archive: ZipFile, name: str) -> str:
    """SHA-256 of a file; empty when the archive itself finds it damaged."""
    content = hashlib.sha256()
    try:
        with archive.open(name) as file:
            while block := file.read(1 << 20):
                content.update(block)
    except BadZipFile:
        return ""
    return content.hexdigest()


def _suite_step(run: Mapping[str, Any]) -> Step:
    made, here = run["suite"], suite_identity()
    if made == here:
        return Step(f"judged by poolproof {_suite_text(here)}, as installed here")
    problem = f"judged by poolproof {_suite_text(made)}, and now again by {_suite_text(here)}: the rules may differ"
    return Step("", (problem,), Overall.INCOMPLETE)


def _suite_text(suite: Mapping[str, str]) -> str:
    return f"{suite['version']} ({suite['content_hash'][:12]})"


def _schema_step(folder: Path) -> Step:
    versions = sorted({_schema_version(part) for part in (folder / "rows").glob("*.parquet")})
    unread = [version for version in versions if version not in READABLE_VERSIONS]
    problems = tuple(f"rows of schema {version}, this is {SCHEMA_VERSION}" for version in unread)
    return Step(f"rows of schema {', '.join(versions) or SCHEMA_VERSION}", problems)


def _schema_version(part: Path) -> str:
    metadata = pq.read_schema(part).metadata or {}
    return metadata.get(b"poolproof", b"unknown").decode()


def _derived_step(digest: Digest) -> Step:
    """Verdict and tables against those that follow from the rows; of another suite's bundle only the verdict."""
    stored, now = _stored_verdict(digest.folder), digest.conclusion.overall.word
    problems = [] if stored == now else [f"the verdict is stored as {stored!r}, and the rows say {now!r}"]
    if digest.run["suite"] == suite_identity():
        problems += [
            f"{name} does not follow from the rows"
            for name, text in derived_texts(digest).items()
            if not _says(digest.folder / name, text)
        ]
    judged = count_of(digest.conclusion.totals["judged"], "judged case")
    return Step(f"verdict and tables follow from {judged}", tuple(problems))


def _stored_verdict(folder: Path) -> str:
    try:
        return str(read_record(folder / VERDICT, NotABundle, "the bundle is damaged", ["verdict"])["verdict"])
    except NotABundle:
        return "unreadable"


def _says(path: Path, text: str) -> bool:
    return path.exists() and path.read_bytes() == text.encode()


def _row_step(digest: Digest) -> Step:
    """Whether each row's verdict agrees with its own findings and with the waivers."""
    problems = [*_conforming_rows_that_deviate(digest), *_wrongly_waived_rows(digest)]
    return Step("each row's verdict agrees with its findings and the waivers", _shortened(problems))


def _conforming_rows_that_deviate(digest: Digest) -> Iterator[str]:
    deviates = (pc.list_value_length(pc.field("checks_violated")) > 0) | (pc.field("n_reject") > 0)
    rows = read_rows(digest.folder, ["case_id", "backend"], (pc.field("verdict") == str(Verdict.CONFORMS)) & deviates)
    for row in rows.to_pylist():
        yield f"case {row['case_id']} on {row['backend']} is said to conform, and its own columns say it deviates"


def _wrongly_waived_rows(digest: Digest) -> Iterator[str]:
    given = waivers_of(digest.run)
    waivers = Waivers(given, judging_day(digest.run))
    deviating = having("verdict", [*FAILED, Verdict.WAIVED])
    columns = dict.fromkeys(("case_id", "backend", "verdict", "checks_violated", *scope_columns(given)))
    batches = read_rows(digest.folder, list(columns), deviating).to_batches()
    for row in (row for batch in batches for row in batch.to_pylist()):
        covering = waivers.covering(row, digest.run["backends"].get(row["backend"], {}))
        if row["verdict"] == Verdict.WAIVED and not covering:
            yield f"case {row['case_id']} on {row['backend']} is said to be waived, and no waiver covers it"
        if row["verdict"] != Verdict.WAIVED and covering:
            yield f"case {row['case_id']} on {row['backend']} is covered by {', '.join(covering)}, but not waived"


def _evidence_step(digest: Digest) -> Step:
    """Each stored output against the stored intervals, and the row's count of rejected cells."""
    paths = sorted((digest.folder / "evidence").glob("*.npz"))
    wanted = having("case_id", [path.stem.rpartition("-")[2] for path in paths])
    columns = ["case_id", "backend", "verdict", "n_reject"]
    rows = read_rows(digest.folder, columns, wanted).to_pylist()
    by_stem = {f"{file_name(row['backend'])}-{row['case_id']}": row for row in rows}
    problems = [problem for path in paths if (problem := _contradiction(path, by_stem.get(path.stem)))]
    return Step(f"evidence of {count_of(len(paths), 'case')} judged again, with the same result", _shortened(problems))


def _contradiction(path: Path, row: Mapping[str, Any] | None) -> str:
    """What is wrong with a file of evidence, given its row; empty when they agree."""
    if row is None:
        return f"{path.name} belongs to no row"
    try:
        rejected = int(read_evidence(path).rejected.sum())
    except EvidenceError as error:
        return str(error).replace(str(path), path.name)
    counted = row["n_reject"]
    if counted is not None and rejected != counted:
        return f"{path.name} has {count_of(rejected, 'rejected cell')}, its row says {counted:,}"
    if rejected and row["verdict"] == Verdict.CONFORMS:
        return f"{path.name} has {count_of(rejected, 'rejected cell')}, its row is said to conform"
    return ""


def _shortened(problems: list[str]) -> tuple[str, ...]:
    more = len(problems) - _MOST_PROBLEMS
    return (*problems[:_MOST_PROBLEMS], *([f"and {count_of(more, 'more problem')} of this kind"] if more > 0 else []))
