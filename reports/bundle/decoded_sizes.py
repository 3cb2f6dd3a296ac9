"""Sizes of what a bundle holds once it is decoded, from headers, before any of it is decoded.

A dictionary of one text of a mebibyte, named by each of 20,000 rows, is a small file and takes gibibytes as a table; so
does an array of zeros.
"""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile, ZipFile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from poolproof.reports.bundle.archive import UNREADABLE, NotABundle
from poolproof.reports.rows.store import ROWS_PER_PART

_MAX_ROWS = 20_000_000
_FEW_ROWS = 10_000
"""Rows that may be so alike that they take less than a byte each: every case has a hash of its own."""

_TEXT, _TEXT_PER_ROW = 64 << 20, 16 << 10
"""Bytes of all texts of a part, for a start and for each row."""

_JOURNAL = 32 << 20
_EVIDENCE = 4 << 30
"""Bytes of one journal, and of all arrays of all evidence."""


def check_decoded_sizes(folder: Path) -> None:
    """Raise `NotABundle` where a run, unpacked into a folder, would take more memory than a run takes."""
    rows = 0
    for part in sorted((folder / "rows").glob("*.parquet")):
        try:
            rows += _check_part(part)
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise NotABundle(f"rows/{part.name} is damaged: {str(error).splitlines()[0]}") from error
    if rows > _MAX_ROWS:
        raise NotABundle(f"it has {rows:,} rows, and no run has more than {_MAX_ROWS:,}")
    for journal in sorted((folder / "rows").glob("*.jsonl")):
        with journal.open("rb") as lines:
            is_long = sum(1 for _ in zip(lines, range(ROWS_PER_PART + 1), strict=False)) > ROWS_PER_PART
        if is_long or journal.stat().st_size > _JOURNAL:
            raise NotABundle(f"rows/{journal.name} is longer than any journal")
    arrays = sum(map(_array_bytes, (folder / "evidence").rglob("*.npz")))
    if arrays > _EVIDENCE:
        raise NotABundle(f"its evidence takes {arrays:,} bytes, and that of no run more than {_EVIDENCE:,}")


def _check_part(part: Path) -> int:
    """Return the number of rows of a part."""
    metadata = pq.read_metadata(part)
    rows, allowed = metadata.num_rows, _TEXT + _TEXT_PER_ROW * metadata.num_rows
    if rows > _FEW_ROWS + part.stat().st_size:
        raise NotABundle(f"rows/{part.name} has {rows:,} rows in {part.stat().st_size:,} bytes")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    columns = [group.column(number) for group in groups for number in range(group.num_columns)]
    stored = sum(column.total_uncompressed_size for column in columns)
    if stored > allowed + 8 * rows * metadata.num_columns:
        raise NotABundle(f"rows/{part.name} takes {stored:,} bytes, which no {rows:,} rows do")
    texts = _decoded_texts(part)
    if texts > allowed:
        raise NotABundle(f"rows/{part.name} has texts of {texts:,} bytes, which no {rows:,} rows have")
    return rows


def _decoded_texts(part: Path) -> int:
    """Count the bytes of all texts of a part as a table has them; what is read are dictionaries and places in them."""
    leaves = [column.path for column in pq.ParquetFile(part).schema if column.physical_type == "BYTE_ARRAY"]
    file, total = pq.ParquetFile(part, read_dictionary=leaves), 0
    for leaf in leaves:
        for batch in file.iter_batches(columns=[leaf]):
            words = batch.column(0)
            words = words.flatten() if pa.types.is_list(words.type) else words
            lengths = pc.binary_length(words.dictionary if pa.types.is_dictionary(words.type) else words)
            lengths = lengths.take(words.indices) if pa.types.is_dictionary(words.type) else lengths
            total += pc.sum(lengths.cast(pa.int64())).as_py() or 0
    return total


def _array_bytes(path: Path) -> int:
    """Sum up the arrays of a file of evidence; nothing for one that cannot be read, which is said where it is."""
    try:
        with ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist())
    except (BadZipFile, *UNREADABLE):
        return 0
