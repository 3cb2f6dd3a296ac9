"""Verification of bundles: everything that can be derived is derived again.

Only the records of the run are taken from a bundle: run.json, rows, evidence. The cases are drawn again from the plan.
Each row is compared with itself, its waivers and its evidence. Every other file is made again and compared.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyarrow.parquet as pq

from poolproof.reports.bundle import attestation
from poolproof.reports.bundle.account import judged_line, left_out_line, unmet, verdict_word
from poolproof.reports.bundle.archive import NotABundle, opened
from poolproof.reports.bundle.comparisons import contradictions, disagreed
from poolproof.reports.bundle.packing import SUMS, VERDICT, derived_files
from poolproof.reports.bundle.unpacking import RECORDED, file_hash, hash_problems, read_small, unpacked_run
from poolproof.reports.figures.digest import Digest
from poolproof.reports.rows.arrow import SCHEMA
from poolproof.reports.rows.checks import SURVIVAL
from poolproof.reports.rows.environment import suite_identity
from poolproof.reports.rows.evidence import Evidence, EvidenceError, case_name, read_evidence
from poolproof.reports.rows.io_errors import CannotGoOn
from poolproof.reports.rows.records import parse_record
from poolproof.reports.rows.schema import SCHEMA_VERSION, Row
from poolproof.reports.rows.store import having, read_rows
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import BadInput, Overall, Verdict, gravest
from poolproof.suites.judging.evidence import contradiction
from poolproof.suites.verify.plan_rows import row_problems


@dataclass(frozen=True)
class Step:
    """One test of a bundle. Without problems ``text`` is the result; ``weight`` is the verdict of a problem."""

    text: str
    problems: tuple[str, ...] = ()
    weight: Overall = Overall.VIOLATES

    @property
    def overall(self) -> Overall:
        return self.weight if self.problems else Overall.CONFORMS


def _step(text: str, problems: Iterable[str]) -> Step:
    """Return a step with the first twenty problems and the number of others: another run's bundle has thousands."""
    left = iter(problems)
    listed = list(islice(left, 20))
    if more := sum(1 for _ in left):
        listed.append(f"and {count_of(more, 'more problem')} of this kind")
    return Step(text, tuple(listed))


@dataclass(frozen=True)
class Verification:
    """Result of the verification of a bundle.

    Attributes:
        fingerprint: SHA-256 by which two parties know that they have the same bundle.
        verdict: Verdict of its rows, with its sentences; empty if they cannot be read.
        account: Lines about what was left out, who signed it, and what was judged.
    """

    fingerprint: str
    steps: tuple[Step, ...]
    verdict: str = ""
    account: tuple[str, ...] = ()

    @property
    def overall(self) -> Overall:
        """The gravest step's verdict."""
        return gravest({step.overall: True for step in self.steps})


def verify(
    bundle: Path,
    fingerprint: str | None = None,
    signer: tuple[Path, Path] | None = None,
    agreed: Sequence[Path] = (),
    required: Sequence[str] = (),
) -> Verification:
    """Check a bundle without any network or backend; raise `NotABundle` if the file is none.

    Args:
        bundle: The file.
        fingerprint: Fingerprint that the other party named.
        signer: Public key that must have signed it, and the attestation.
        agreed: Files of agreed waivers; with one, only these and poolproof's own are accepted.
        required: Requirements of `unmet`.
    """
    with opened(bundle) as archive, tempfile.TemporaryDirectory() as scratch:
        if SUMS not in archive.namelist():
            raise NotABundle(f"{bundle} is no bundle: it has no {SUMS}")
        sums = read_small(archive, SUMS)
        actual = hashlib.sha256(sums).hexdigest()
        steps = []
        if fingerprint:
            other = [] if actual == fingerprint.lower() else [f"the fingerprint is {actual}, not {fingerprint}"]
            steps.append(_step("the fingerprint is the one given", other))
        files, changed = hash_problems(archive, sums)
        steps.append(_step(f"{count_of(files, 'file')}, all as they were hashed", changed))
        try:
            digest = unpacked_run(archive, Path(scratch) / "run", bundle)
        except CannotGoOn:  # this machine lacks room
            raise
        except BadInput as error:
            steps.append(Step("", (f"the run in it cannot be read: {error}",)))
            return Verification(actual, tuple(steps))
        vouches, beside = "nobody signed this", attestation.attestation_path(bundle)
        if signer:
            key, envelope = signer
            signed = f"signed with the key of {key.name}, with the libraries that were judged"
            steps.append(_step(signed, attestation.problems(bundle, digest, envelope, key)))
            vouches = "nobody: the signature does not fit" if steps[-1].problems else signed
        elif beside.exists():
            vouches += f"; attestation not checked without --signer: {beside.name}"
        if agreed:
            steps.append(_step("its waivers are those of the suite and those agreed on", disagreed(digest, agreed)))
        steps += _run_steps(archive, digest, Path(scratch) / "again")
        for each in required:
            missed = [f"--require {each}: {why}"] if (why := unmet(digest, each)) else []
            steps.append(Step(f"as required: {each}", tuple(missed), Overall.UNMET))
        lines = (left_out_line(digest), vouches, judged_line(digest))
        return Verification(actual, tuple(steps), _in_words(digest), lines)


def _run_steps(archive: ZipFile, digest: Digest, scratch: Path) -> Iterator[Step]:
    yield _suite_step(digest.run)
    yield _schema_step(digest.folder)
    rows, planned = _row_steps(digest)
    yield rows
    yield _evidence_step(digest.folder)
    for sentence, found in contradictions(digest) if digest.run["suite"] == suite_identity() else ():
        yield _step(sentence, found)
    yield planned
    if not rows.problems:
        yield _derived_step(archive, digest, scratch)


def _suite_step(run: Mapping[str, Any]) -> Step:
    made, here = run["suite"], suite_identity()
    if made == here:
        return Step(f"judged by poolproof {_suite_text(here)}, as installed here")
    problem = (
        f"judged by poolproof {_suite_text(made)}, and now again by {_suite_text(here)}: the rules may differ; "
        "install the same commit, from a clean clone"
    )
    return Step("", (problem,), Overall.INCOMPLETE)


def _suite_text(suite: Mapping[str, str]) -> str:
    return f"{suite['version']} ({suite['content_hash'][:12]})"


def _schema_step(folder: Path) -> Step:
    parts = {part.name: pq.read_metadata(part) for part in sorted((folder / "rows").glob("*.parquet"))}
    schemas = {name: part.schema.to_arrow_schema() for name, part in parts.items()}
    metadata = [schema.metadata or {} for schema in schemas.values()]
    versions = sorted({entry.get(b"poolproof", b"unknown").decode(errors="replace") for entry in metadata})
    others = [version for version in versions if version != str(SCHEMA_VERSION)]
    problems = [f"rows of schema {version}, this is {SCHEMA_VERSION}" for version in others]
    problems += [f"rows/{name} has other columns than this schema" for name in schemas if schemas[name] != SCHEMA]
    problems += [f"rows/{name} has no rows" for name, part in parts.items() if not part.num_rows and len(parts) > 1]
    return _step(f"rows of schema {', '.join(versions) or SCHEMA_VERSION}", problems[: len(others)] or problems)


def _row_steps(digest: Digest) -> tuple[Step, Step]:
    """Compare rows with themselves and their plan; another poolproof's plan is not judged."""
    redraws, further = digest.run["suite"] == suite_identity(), digest.conclusion.further
    by_themselves = "each row's verdict agrees with its findings and the waivers"
    further_rows = f"; the others are {count_of(further, 'further case')}" if further else " and no other rows"
    try:
        own, planned = row_problems(digest, redraws)
    except BadInput as error:
        own, _ = row_problems(digest, False)
        return _step(by_themselves, own), Step("", (f"its cases cannot be drawn again: {error}",))
    if not redraws:
        drawn = Step("", ("its cases were drawn by another suite: not drawn again",), Overall.INCOMPLETE)
    else:
        drawn = _step(f"the plan, drawn again, has one row for each of its cases{further_rows}", planned)
    return _step(by_themselves, own), drawn


def _derived_step(archive: ZipFile, digest: Digest, scratch: Path) -> Step:
    """Make all derived files again and compare them; of another poolproof's bundle only the verdict."""
    if digest.run["suite"] != suite_identity():
        stored, now = "unreadable", digest.conclusion.overall.word
        with suppress(BadInput, KeyError):
            text = read_small(archive, VERDICT).decode(errors="replace")
            stored = str(parse_record(text, VERDICT, NotABundle, ["verdict"])["verdict"])
        problems = [] if stored == now else [f"the verdict is stored as {stored!r}, and the rows say {now!r}"]
        return _step("the verdict follows from the rows", problems)
    try:
        derived = derived_files(digest, scratch)
    except CannotGoOn:
        raise
    except (BadInput, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return Step("", (f"tables cannot be made from the rows: {type(error).__name__}: {error}",))
    present = {name for name in archive.namelist() if name != SUMS and not RECORDED.fullmatch(name)}
    problems = [f"{name} follows from no row" for name in sorted(present - set(derived))]
    problems += [f"{name} is missing" for name in sorted(set(derived) - present)]
    for name in sorted(present & set(derived)):
        with derived[name].open("rb") as file:
            if file_hash(archive, name) != hashlib.file_digest(file, "sha256").hexdigest():
                problems.append(f"{name} does not follow from the rows")
    judged = count_of(digest.conclusion.totals["judged"], "judged case")
    return _step(f"verdict and tables follow from {judged}", problems)


_OF_EVIDENCE = (
    *("case_id", "backend", "verdict", "n_reject", "checks_violated", "case", "data", "model", "output_digest"),
    *("shrunk", "decoded_faults"),
)


def _evidence_step(folder: Path) -> Step:
    """Judge each stored output again, and compare evidence with its row and case."""
    paths = sorted((folder / "evidence").glob("*.npz"))
    paths += sorted((folder / "evidence" / "shrunk").glob("*.npz"))
    wanted = having("case_id", {path.stem.rpartition("-")[2] for path in paths})
    by_stem = defaultdict[str, list[Row]](list)  # several if several claims judge a case
    for row in read_rows(folder, _OF_EVIDENCE, wanted).to_pylist():
        by_stem[case_name(row["case_id"], row["backend"])].append(row)
    faults = filter(None, (_contradicting_evidence(path, by_stem[path.stem]) for path in paths))
    return _step(f"evidence of {count_of(len(paths), 'case')} judged again, with the same result", faults)


def _contradicting_evidence(path: Path, rows: Sequence[Row]) -> str:
    """Return the fault of a file of evidence, given its case's rows; empty if it agrees with one."""
    is_shrunk = path.parent.name == "shrunk"
    try:
        evidence = read_evidence(path)
    except EvidenceError as error:
        return str(error).replace(str(path), path.name)
    problems = []
    for row in (row for row in rows if row["shrunk"] or not is_shrunk):
        problem = ("" if is_shrunk else _disagreement(evidence, row)) or _other_account(evidence, row)
        problems.append(problem or contradiction(row, evidence, is_shrunk))
    problem = min(problems, key=bool, default="belongs to no row")
    return f"{path.name} {problem}" if problem else ""


def _other_account(evidence: Evidence, row: Row) -> str:
    """Return the contradiction of evidence, or of its shrunk case, with its row; empty if none."""
    meta, violated = evidence.meta, list(row["checks_violated"] or ())
    checks = meta.get("checks", [SURVIVAL])  # after a death there are no findings
    if meta.get("backend") != row["backend"]:
        return f"is of the backend {meta.get('backend')!r}"
    if violated and not {*checks} & {*violated}:
        return f"violates {', '.join(checks)}, and its row {', '.join(violated)}"
    if "interval" in checks and not evidence.rejected.any():
        return "violates the check 'interval', and has no rejected cell"
    return ""


def _disagreement(evidence: Evidence, row: Row) -> str:
    rejected, counted = int(evidence.rejected.sum()), row["n_reject"]
    if counted is not None and rejected != counted:
        return f"has {count_of(rejected, 'rejected cell')}, its row says {counted:,}"
    if rejected and row["verdict"] == Verdict.CONFORMS:
        return f"has {count_of(rejected, 'rejected cell')}, its row conforms"
    if not row["checks_violated"]:
        return "is evidence, and its row violates nothing"
    if evidence.meta.get("checks", [SURVIVAL]) != list(row["checks_violated"]):
        return f"names other checks than its row: {', '.join(row['checks_violated'])}"
    faults = json.loads(row["decoded_faults"] or "[]")
    return "has other faults than its row says" if faults and evidence.meta.get("faults") != faults else ""


def _in_words(digest: Digest) -> str:
    """Describe the verdict of a run, its reasons and waivers; omissions are a separate line."""
    conclusion, used = digest.conclusion, [review.waiver.id for review in digest.used_waivers]
    waived = f"{count_of(conclusion.totals['waived'], 'case')} waived by {', '.join(used)}" if used else ""
    return "; ".join(filter(None, (verdict_word(digest), *conclusion.reasons, waived)))
