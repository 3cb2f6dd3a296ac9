"""Entries of ``run.json``, checked one by one: people may have damaged the file or made it up."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

import msgspec

Time = Annotated[float, msgspec.Meta(ge=0, lt=2.5e11)]
"""Unix time in seconds, before the year 9999."""

Texts = dict[str, str]


class SuiteRecord(msgspec.Struct):
    version: str
    content_hash: str


class GroupRecord(msgspec.Struct):
    """The number of rows of a mandatory group, whose other entries are columns with the text that rows have there."""

    planned: Annotated[int, msgspec.Meta(ge=0)]


class PluginRecord(msgspec.Struct):
    kind: str
    name: str
    package: str
    fault: str


class BudgetRecord(msgspec.Struct):
    """Seconds, how many it took, when they end, and per block [cases asked, of how many] and cases beyond."""

    seconds: Time
    took: Time
    until: Time
    asked: dict[str, tuple[int, int]] = {}
    beyond: dict[str, Annotated[int, msgspec.Meta(gt=0)]] = {}

    def __post_init__(self) -> None:
        if not all(0 < cases < total for cases, total in self.asked.values()):
            raise ValueError("a part has at least one case, and not all")


class MergedRecord(msgspec.Struct):
    shard: str
    id: str
    host: Texts
    started: Time
    rows: int
    finished: Time | None = None


ENTRIES: dict[str, tuple[str, *tuple[Any, ...]]] = {
    "id": ("a text", str),
    "plan": ("a text", str),
    "seed": ("an integer", int),
    "arguments": ("a list of texts", list[str]),
    "started": ("a Unix time", Time),
    "finished": ("a Unix time, or null while the run goes on", Time | None),
    "mandatory": ("a list of groups with the number of their cases", list[GroupRecord], list[dict[str, str | int]]),
    "suite": ("a version and a content_hash", SuiteRecord, Texts),
    "host": ("an object of texts", Texts),
    "backends": ("an object of objects of texts", dict[str, Texts]),
    "waivers": ("a list of waivers", list[dict[str, Any]]),
    "waivers_judged_on": ("a day like 2027-03-31", date),
    "strict_waivers": ("true or false", bool),
}
"""Entries of every run.json: what each should be, and the types that its value has to have."""

OPTIONAL: dict[str, tuple[str, *tuple[Any, ...]]] = {
    "plan_cases": ("an integer", int),
    "budget": ("seconds, took, until, and of blocks what was asked: [cases, of so many], and beyond", BudgetRecord),
    "selection": ("an object", dict[str, Any]),
    "merged": ("a list of parts, each with shard, id, host, started, finished and rows", list[MergedRecord]),
    "plugins": ("a list of plugins, each with kind, name, package and fault", list[PluginRecord], list[Texts]),
}
"""Entries of some run.json."""


def objection(record: Mapping[str, Any]) -> str:
    """Return what is wrong with the entries of a record that has them all; empty if nothing is."""
    for name, (expected, *kinds) in (ENTRIES | OPTIONAL).items():
        try:
            for kind in kinds if name in ENTRIES or name in record else ():
                msgspec.convert(record[name], kind)
        except msgspec.ValidationError:
            return f"entry {name!r} should be {expected}"
    return ""
