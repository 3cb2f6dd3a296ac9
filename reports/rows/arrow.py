"""Arrow schema of a row, and rows as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from poolproof.reports.rows.schema import COLUMNS, SCHEMA_VERSION, Column, Row, check_columns


def _type(column: Column) -> pa.DataType:
    value = pa.type_for_alias(column.kind.removeprefix("list<").removesuffix(">"))
    return pa.list_(value) if column.kind.is_list else value


SCHEMA = pa.schema([pa.field(column.name, _type(column)) for column in COLUMNS], {"poolproof": str(SCHEMA_VERSION)})


def to_table(rows: Iterable[Row]) -> pa.Table:
    """Make an Arrow table of the full schema; raise ValueError for a column the schema does not have."""
    rows = list(rows)
    for row in rows:
        check_columns(row)
    return pa.Table.from_pylist(rows, SCHEMA)
