"""Verdicts of a row, their order of gravity, and the exit statuses for scripts."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum


class BadInput(Exception):
    """An input cannot be used; the text is one sentence for the person who gave it."""


class Verdict(StrEnum):
    """Verdict on one case on one backend."""

    CONFORMS = "conforms"
    VIOLATES = "violates"
    WAIVED = "waived"
    REFUSED = "refused as documented"
    UNDOCUMENTED = "refused undocumented"
    NOT_SUPPORTED = "not supported"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    NOT_RUN = "not run"
    SUITE_ERROR = "suite error"
    ADAPTER_ERROR = "adapter error"

    @property
    def overall(self) -> Overall:
        """Overall verdict of a session with this verdict and no graver one."""
        if self in FAILED:
            return Overall.VIOLATES
        return Overall.INCOMPLETE if self in SKIPPED else Overall.CONFORMS


VERDICT_MEANINGS = {
    Verdict.CONFORMS: "Every check that applies passes.",
    Verdict.VIOLATES: "A check fails, and no waiver covers it.",
    Verdict.WAIVED: "A check fails, and a waiver accepts it.",
    Verdict.REFUSED: "The implementation refuses the call, as its contract or its documents allow.",
    Verdict.UNDOCUMENTED: "The implementation refuses the call, and no known document allows or forbids it.",
    Verdict.NOT_SUPPORTED: "The backend does not support the call.",
    Verdict.CRASHED: "The process of the implementation dies.",
    Verdict.TIMED_OUT: "The call takes longer than `--case-timeout`.",
    Verdict.NOT_RUN: "The environment prevents the call, such as too little memory or a missing kernel.",
    Verdict.SUITE_ERROR: "poolproof raises an exception; the finding is its traceback.",
    Verdict.ADAPTER_ERROR: "The adapter raises an exception; the finding is its traceback.",
}
"""Meanings of the verdicts, for the reference."""

JUDGED = frozenset(
    {Verdict.CONFORMS, Verdict.VIOLATES, Verdict.WAIVED, Verdict.REFUSED, Verdict.CRASHED, Verdict.TIMED_OUT}
)
"""Verdicts about the implementation."""

FAILED = frozenset({Verdict.VIOLATES, Verdict.CRASHED, Verdict.TIMED_OUT})
"""Verdicts of a deviation that no waiver accepts."""

RAISED = frozenset({Verdict.SUITE_ERROR, Verdict.ADAPTER_ERROR})
"""Exceptions of poolproof or of an adapter, never of the implementation; the finding is the traceback."""

SKIPPED = frozenset({Verdict.NOT_SUPPORTED, Verdict.NOT_RUN, Verdict.UNDOCUMENTED}) | RAISED
"""Verdicts without a result; the row's reason says why."""


class Overall(IntEnum):
    """Verdict on a whole session or command. The number is its exit status, everywhere in this project.

    Pytest's own statuses: 4 for unknown options, 5 for no tests. A signal ends a process as usual.
    """

    CONFORMS = 0
    VIOLATES = 1
    INCOMPLETE = 2
    COULD_NOT_RUN = 3
    UNMET = 6

    @property
    def word(self) -> str:
        return self.name.lower().replace("_", " ")

    @classmethod
    def of_word(cls, word: str) -> Overall:
        return cls[word.upper().replace(" ", "_")]


BY_GRAVITY = (Overall.COULD_NOT_RUN, Overall.VIOLATES, Overall.INCOMPLETE, Overall.UNMET, Overall.CONFORMS)
"""Overall verdicts, the gravest first: a deviation outweighs a gap."""


def gravest(causes: Mapping[Overall, object]) -> Overall:
    """Return the gravest ending with a cause; without any, the run conforms."""
    return next((overall for overall in BY_GRAVITY if causes.get(overall)), Overall.CONFORMS)


UNCAUGHT = 70
"""Exit status of a command that ends with its own exception (EX_SOFTWARE of sysexits.h). A script must not take it for
a verdict."""

MEANINGS = {
    Overall.CONFORMS: "all that had to be judged was judged and nothing deviates; nothing regressed; a bundle stands",
    Overall.VIOLATES: "something deviates that nobody waived; something regressed; a bundle contradicts itself",
    Overall.INCOMPLETE: "nothing deviates as far as was judged, but something that had to be judged was not",
    Overall.COULD_NOT_RUN: "nothing was judged: a bad option, a missing file, a backend that cannot run here; or not "
    "all was recorded or published: a full disk, a file not writable, a plugin that fails",
    Overall.UNMET: "a bundle stands, and its run does not meet verify --require",
}
"""Meanings of the exit statuses, as in ``poolproof --help``."""
