"""Arrow schema of a row, and rows as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from poolproof.reports.rows.schema import COLUMNS, SCHEMA_VERSION, ColumnType, Row, check_columns

_TYPES = {
    ColumnType.TEXT: pa.string(),
    ColumnType.COUNT: pa.int64(),
    ColumnType.REAL: pa.float64(),
    ColumnType.FLAG: pa.bool_(),
    ColumnType.WORDS: pa.list_(pa.string()),
    ColumnType.COUNTS: pa.list_(pa.int64()),
    ColumnType.REALS: pa.list_(pa.float64()),
}

SCHEMA = pa.schema(
    [pa.field(column.name, _TYPES[column.kind]) for column in COLUMNS], {"poolproof": str(SCHEMA_VERSION)}
)


def to_table(rows: Iterable[Row]) -> pa.Table:
    """Make an Arrow table of the full schema; raise ValueError for a column the schema does not have."""
    rows = list(rows)
    for row in rows:
        check_columns(row)
    return pa.Table.from_pylist(rows, SCHEMA)
