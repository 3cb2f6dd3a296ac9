"""Arrow schema of a row, and rows as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from poolproof.reports.rows.schema import COLUMNS, SCHEMA_VERSION, Column, Row


def _type(column: Column) -> pa.DataType:
    value = pa.type_for_alias(column.kind.removeprefix("list<").removesuffix(">"))
    return pa.list_(value) if column.kind.is_list else value


SCHEMA = pa.schema([pa.field(column.name, _type(column)) for column in COLUMNS], {"poolproof": str(SCHEMA_VERSION)})


def to_table(rows: Iterable[Row]) -> pa.Table:
    """Return rows as an Arrow table of the full schema.

    ValueError is raised for an unknown column, TypeError for a row that is not a JSON object.
    """
    rows, known = list(rows), frozenset(SCHEMA.names)
    for row in rows:
        if not isinstance(row, dict):
            raise TypeError(f"a row is a JSON object, not {row!r:.40}")
        if unknown := sorted(row.keys() - known):
            raise ValueError(f"rows have no column {unknown[0]!r}")
    return pa.Table.from_pylist(rows, SCHEMA)
