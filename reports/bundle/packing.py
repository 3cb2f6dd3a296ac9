"""The acceptance bundle: one zip with everything that a verdict rests on, the same bytes whenever it is made.

run.json, rows/, evidence/       the run as it was recorded, byte for byte: unpacked, the bundle is a run's folder
verdict.json                     the overall verdict, with the sentences that say why
tables/*.csv                     verdicts, coverage of the mandatory groups, clauses, checks, precision, failures
environment.json, waivers.toml   on what it was judged, and what was accepted beforehand
failures/CASE/                   per kind of failure, and per case with evidence: row, case, reproducer
evidence/rejudge.py, call.py     judge a file of evidence again, and make its call, without poolproof
SHA256SUMS                       of every other file, as sha256sum reads it; its own hash is the fingerprint

Pages follow from the rows, and `poolproof show BUNDLE --pages FOLDER` makes them.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import pandas as pd
import pyarrow.compute as pc

from poolproof.reports.figures.digest import Digest, read_digest
from poolproof.reports.figures.tables import HAS_FAILED, Record, load, records, spreadsheet, with_violated
from poolproof.reports.rows.evidence import case_name, program_lines_of, programs, unclaimed
from poolproof.reports.rows.failures import SHOWN, message, replay_line, smallest_case
from poolproof.reports.rows.io_errors import check_replaceable, replacing, writing
from poolproof.reports.rows.store import having, read_rows, recorded_files
from poolproof.reports.rows.text import visible
from poolproof.reports.waivers import to_toml

SUMS = "SHA256SUMS"
VERDICT = "verdict.json"

_EPOCH = (1980, 1, 1, 0, 0, 0)


def package(run: Path, output: Path) -> str:
    """Write the bundle of a run; return its fingerprint. Raise `NotARun` if the folder is not a run."""
    check_replaceable(output)
    digest = read_digest(run)
    with replacing(output) as aside, ZipFile(aside, "w") as archive, tempfile.TemporaryDirectory() as scratch:
        orphans = set(unclaimed(run))
        recorded = {name: path for name, path in recorded_files(run) if path not in orphans}
        contents = recorded | derived_files(digest, Path(scratch))
        sums = "".join(f"{_add(archive, name, contents[name])}  {name}\n" for name in sorted(contents))
        _add(archive, SUMS, _text_file(Path(scratch), SUMS, sums))
    return hashlib.sha256(sums.encode()).hexdigest()


def derived_files(digest: Digest, scratch: Path) -> dict[str, Path]:
    """Write everything that follows from the record below ``scratch``; a verifier derives it again."""
    texts = _tables(digest) | _case_texts(digest)
    return {name: _text_file(scratch, name, text) for name, text in texts.items()}


def _tables(digest: Digest) -> dict[str, str]:
    run = digest.run
    waivers = [(review.waiver.id, str(review.state), review.cases, review.waiver.expires) for review in digest.waivers]
    return {
        VERDICT: _json(digest.conclusion.to_record()),
        "tables/verdicts.csv": _csv(digest.counts.reset_index()),
        "tables/coverage.csv": _csv(digest.coverage),
        "tables/clauses.csv": _csv(digest.clauses),
        "tables/checks.csv": _csv(digest.checks.reset_index()),
        "tables/precision.csv": _csv(digest.precision.reset_index()),
        "tables/failures.csv": _csv(_failure_list(digest)),
        "tables/waivers.csv": _csv(pd.DataFrame(waivers, columns=["waiver", "state", "cases", "expires"])),
        "environment.json": _json(
            {"plan": {name: run[name] for name in ("plan", "seed", "arguments")}}
            | {name: run[name] for name in ("suite", "host", "backends")}
        ),
        "waivers.toml": to_toml([review.waiver for review in digest.waivers]),
    }


def _failure_list(digest: Digest) -> pd.DataFrame:
    """Return the failed rows with their replay lines; of very many, the first by backend, aspect and case id."""
    order = ["backend", "aspect", "case_id"]
    first = load(digest.folder, order, HAS_FAILED).sort_values(order).head(10_000)
    chosen = having("case_id", first["case_id"])
    listed = [*order, "operator", "dtype", "index_dtype", "verdict", "reason"]
    columns = list(dict.fromkeys([*listed, *SHOWN, "checks_violated"]))
    failed = load(digest.folder, columns, HAS_FAILED & chosen)
    failed = with_violated(failed.merge(first, on=order).sort_values(order))
    rows = records(failed)
    failed["reason"], failed["replay"] = list(map(message, rows)), list(map(replay_line, rows))
    return failed[[*listed, "violated", "replay"]]


def _case_texts(digest: Digest) -> dict[str, str]:
    """Return the files of failing cases: the smallest of each kind, and all with evidence."""
    texts = {f"evidence/{name}": text for name, text in programs().items()}
    for row in _chosen_rows(digest):
        folder = f"failures/{case_name(row['case_id'], row['backend'])}"
        texts[f"{folder}/row.json"] = _json(row)
        texts[f"{folder}/case.json"] = visible(smallest_case(row)) + "\n"
        texts[f"{folder}/reproduce.sh"] = _shell_script(digest.folder, row)
    return texts


def _chosen_rows(digest: Digest) -> list[Record]:
    chosen = {(row["backend"], row["case_id"]): row for row in records(digest.failures)}
    stems = {path.stem for path in (digest.folder / "evidence").glob("*.npz")}
    ids = {stem.rpartition("-")[2] for stem in stems}
    deviates = pc.list_value_length(pc.field("checks_violated")) > 0
    for row in read_rows(digest.folder, where=deviates & having("case_id", ids)).to_pylist():
        if case_name(row["case_id"], row["backend"]) in stems:
            chosen.setdefault((row["backend"], row["case_id"]), row)
    return [chosen[key] for key in sorted(chosen)]


def _shell_script(run: Path, row: Record) -> str:
    """Write how to rerun a case, and its original result."""
    lines = ["#!/bin/sh", *(f"# {line}" for line in message(row).splitlines())]
    given = None if row["given"] is None else list(row["given"])  # in a data frame it is an array
    if without := program_lines_of(run, row | {"given": given}):
        lines.append("# without poolproof, in the folder that the bundle is unpacked to:")
        lines += [f"#   {line}" for line in without]
    return visible("\n".join([*lines, replay_line(row), ""]))


def _text_file(scratch: Path, name: str, content: str) -> Path:
    path = scratch / name
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="\n")
    return path


def _add(archive: ZipFile, name: str, path: Path) -> str:
    """Add a file and return its SHA-256; add nothing about the machine or the day."""
    entry = ZipInfo(name, _EPOCH)
    entry.compress_type = ZIP_STORED if path.suffix in (".parquet", ".npz") else ZIP_DEFLATED
    entry.external_attr = (0o755 if path.suffix == ".sh" else 0o644) << 16
    entry.create_system = 3
    entry.file_size = path.stat().st_size
    content = hashlib.sha256()
    with path.open("rb") as source, archive.open(entry, "w") as target:
        while block := source.read(1 << 20):
            content.update(block)
            target.write(block)
    return content.hexdigest()


def _json(value: object) -> str:
    return json.dumps(value, indent=2, default=str) + "\n"


def _csv(frame: pd.DataFrame) -> str:
    return spreadsheet(frame).to_csv(index=False, lineterminator="\n")
