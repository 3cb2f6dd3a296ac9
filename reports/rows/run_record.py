"""Entries of ``run.json``, checked one by one: people may have damaged the file or made it up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

Holds = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _integer(value: Any) -> bool:
    return isinstance(value, int) and not _flag(value)


def _time(value: Any) -> bool:
    """Accept Unix time in seconds, before the year 9999."""
    return (_integer(value) or isinstance(value, float)) and math.isfinite(value) and 0 <= value < 2.5e11


def _day(value: Any) -> bool:
    try:
        return _text(value) and bool(date.fromisoformat(value))
    except ValueError:
        return False


def _list_of(holds: Holds) -> Holds:
    return lambda value: isinstance(value, list) and all(map(holds, value))


def _mapping_to(holds: Holds) -> Holds:
    return lambda value: isinstance(value, dict) and all(map(holds, value.values()))


def _suite(value: Any) -> bool:
    return _mapping_to(_text)(value) and {"version", "content_hash"} <= set(value)


def _group(value: Any) -> bool:
    """Accept columns with the text that rows have there, and ``planned``, how many rows."""
    if not isinstance(value, dict) or not _integer(value.get("planned")) or value["planned"] < 0:
        return False
    return all(_text(there) for name, there in value.items() if name != "planned")


def _plugin(value: Any) -> bool:
    return _mapping_to(_text)(value) and {"kind", "name", "package", "fault"} <= set(value)


def _budget(value: Any) -> bool:
    """Accept seconds, how many it took, when they end, and per block [cases asked, of how many] and cases beyond."""
    if not isinstance(value, dict) or not all(_time(value.get(name)) for name in ("seconds", "took", "until")):
        return False
    return _mapping_to(_part)(value.get("asked", {})) and _mapping_to(_count)(value.get("beyond", {}))


def _count(value: Any) -> bool:
    return _integer(value) and value > 0


def _part(value: Any) -> bool:
    return _list_of(_integer)(value) and len(value) == 2 and 0 < value[0] < value[1]


def _merge_input(value: Any) -> bool:
    if not isinstance(value, dict) or not all(_text(value.get(name)) for name in ("shard", "id")):
        return False
    if not _mapping_to(_text)(value.get("host")) or not _integer(value.get("rows")):
        return False
    return _time(value.get("started")) and (value.get("finished") is None or _time(value["finished"]))


ENTRIES: dict[str, tuple[Holds, str]] = {
    "id": (_text, "a text"),
    "plan": (_text, "a text"),
    "seed": (_integer, "an integer"),
    "arguments": (_list_of(_text), "a list of texts"),
    "started": (_time, "a Unix time"),
    "finished": (lambda value: value is None or _time(value), "a Unix time, or null while the run goes on"),
    "mandatory": (_list_of(_group), "a list of groups with the number of their cases"),
    "suite": (_suite, "a version and a content_hash"),
    "host": (_mapping_to(_text), "an object of texts"),
    "backends": (_mapping_to(_mapping_to(_text)), "an object of objects of texts"),
    "waivers": (_list_of(lambda value: isinstance(value, dict)), "a list of waivers"),
    "waivers_judged_on": (_day, "a day like 2027-03-31"),
    "strict_waivers": (_flag, "true or false"),
}
"""Entries of every run.json: (whether a value can be it, what it should be)."""

OPTIONAL: dict[str, tuple[Holds, str]] = {
    "plan_cases": (_integer, "an integer"),
    "budget": (_budget, "seconds, took, until, and of blocks what was asked: [cases, of so many], and beyond"),
    "selection": (lambda value: isinstance(value, dict), "an object"),
    "merged": (_list_of(_merge_input), "a list of parts, each with shard, id, host, started, finished and rows"),
    "plugins": (_list_of(_plugin), "a list of plugins, each with kind, name, package and fault"),
}
"""Entries of some run.json."""


def objection(record: Mapping[str, Any]) -> str:
    """Return what is wrong with the entries of a record that has them all; empty if nothing is."""
    for name, (holds, expected) in (ENTRIES | OPTIONAL).items():
        if (name in ENTRIES or name in record) and not holds(record[name]):
            return f"entry {name!r} should be {expected}"
    return ""
