"""The journal of a run within a time budget: which cases its processes have taken, and how long they took.

A line holds a block's id with how many of its cases are taken, or with the seconds that some took.
"""

from __future__ import annotations

import fcntl
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path
from typing import Any

from poolproof.reports.rows.io_errors import writing
from poolproof.suites.plan.blocks import root_of


class Journal:
    """The state that processes share; read and written while `locked`.

    ``taken`` is by block; times are by the planned block that one extends (`root_of`).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._end: BufferedRandom | None = None
        self.taken: dict[str, int] = {}
        self.paces: dict[str, float] = {}
        """Seconds per case of the last portion."""
        self.spent: Counter[str] = Counter()
        """Seconds in all."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the journal and read what others wrote; `CannotWrite` if the file system has no locks."""
        with writing(self._path), self._path.open("a+b") as self._end:
            fcntl.flock(self._end, fcntl.LOCK_EX)
            self._catch_up(self._end)
            yield

    def take(self, block: str, stop: int) -> None:
        self._append({"block": block, "taken": stop})

    def record_time(self, block: str, cases: int, seconds: float) -> None:
        """Record the seconds that so many cases took together, 0 if unknown."""
        self._append({"block": block, "seconds": round(seconds / cases, 6), "cases": cases})

    def _catch_up(self, end: BufferedRandom) -> None:
        end.seek(self._read)
        text = end.read()
        if text and not text.endswith(b"\n"):
            end.write(b"\n")  # its writer died
        self._read = end.tell()
        for line in text.splitlines():
            self._learn(line)

    def _append(self, entry: Mapping[str, Any]) -> None:
        assert self._end is not None
        line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        self._end.write(line)
        self._end.flush()
        self._read += len(line)
        self._learn(line)

    def _learn(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            return  # cut short by the death of its writer: that portion was never judged
        root = root_of(entry["block"])
        if "taken" in entry:
            self.taken[entry["block"]] = entry["taken"]
            return
        if entry["seconds"]:
            self.paces[root] = entry["seconds"]
        self.spent[root] += entry["seconds"] * entry["cases"]
