"""Reading of hosts' replies: a host may send anything, so all types are checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from poolproof.backends.abilities import ALL, Abilities
from poolproof.backends.base import Call, Outcome
from poolproof.backends.host.protocol import DECLARATIONS, Description, ProtocolError, Raised, StateChange
from poolproof.references.products import PRODUCTS, Product

_Record = TypeVar("_Record")

_MOST = 1 << 63
"""Strides are smaller."""


def read(kind: type[_Record], record: Any) -> _Record:
    """Read a dataclass; raise `ProtocolError` if a field is unknown, missing, or of another type."""
    try:
        known = kind.__dataclass_fields__.keys()  # type: ignore[attr-defined]
        if isinstance(record, dict) and not record.keys() <= known:
            raise ValueError(f"it has a field that is none of {', '.join(known)}")
        return msgspec.convert(record, kind)
    except ValueError as error:
        raise ProtocolError(f"{record!r:.200} is no {kind.__name__}: {error}") from None


def read_outcome(record: Any, call: Call, changes: tuple[tuple[str, str, str], ...] = ()) -> Outcome:
    """Read the outcome of ``call``, which changed (what, before, after) of its process."""
    if not isinstance(record, dict) or "changed" in record:
        raise ProtocolError(f"{record!r:.200} is no outcome")
    outcome = read(Outcome, {**record, "changed": changes})
    is_about_outputs = {*outcome.results, *outcome.strides} <= {*call.operator.outputs}
    lengths = (abs(stride) for strides in outcome.strides.values() for stride in strides)
    if not (is_about_outputs and outcome.seconds >= 0 and all(length < _MOST for length in lengths)):
        raise ProtocolError(f"{record!r:.200} is no outcome of the call")
    return outcome


def read_changes(record: Any) -> list[StateChange]:
    """Read the changes that a call made to its process."""
    if not isinstance(record, list):
        raise ProtocolError(f"{record!r:.80} is no list of changes")
    return [read(StateChange, change) for change in record]


def read_description(record: Any) -> Description:
    """Read the description of a backend."""
    if not isinstance(record, dict):
        raise ProtocolError(f"{record!r:.80} is no description")
    structured = {name: record[name] for name in record.keys() & _STRUCTURED.keys()}
    plain = read(Description, {name: record[name] for name in record.keys() - _STRUCTURED.keys()})
    try:
        return replace(plain, **{name: _STRUCTURED[name](value) for name, value in structured.items()})
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ProtocolError(f"{structured!r:.200} describe no backend: {error!r:.200}") from None


_STRUCTURED: Mapping[str, Callable[[Any], Any]] = {
    # all fields, or the name of a known product
    "product": lambda value: PRODUCTS[value] if isinstance(value, str) else msgspec.convert(value, Product | None),
    "abilities": lambda value: {name: ALL if flags == {} else read(Abilities, flags) for name, flags in value.items()},
    "unsupported": lambda value: {
        (operator, dtype, stored): reason
        for operator, dtype, stored, reason in msgspec.convert(value, list[tuple[str, str, str, str | None]])
    },
}
"""Fields of a description that need their own reader."""


def read_declarations(record: Any) -> dict[str, Any]:
    """Read the result of each of `DECLARATIONS`, or the exception (`Raised`)."""
    if not isinstance(record, dict) or record.keys() | {"may_refuse"} != DECLARATIONS.keys():
        raise ProtocolError(f"{record!r:.80} are no declarations")
    return {"may_refuse": ""} | {name: _declaration(name, value) for name, value in record.items()}


def _declaration(name: str, value: Any) -> Any:
    kind = DECLARATIONS[name]
    if isinstance(value, dict):
        return read(Raised, value.get("raised"))
    try:
        msgspec.convert(value, bool if kind is bool else str)
        return value if kind in (bool, str) else _parsed(kind, value)
    except ValueError as error:
        raise ProtocolError(f"{name}: {error}") from None


@lru_cache(256)
def _parsed(kind: Any, text: str) -> Any:
    return kind.parse(text)
