"""Text from outside, made safe to show: messages of libraries and plugins, names in bundles and waivers."""

from __future__ import annotations

import re

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and newline, marks that change the direction of writing, and halves of characters."""

_COMMAND = re.compile(r"^(?P<before>(?:\s|\x1b\[[0-9;]*m)*):(?=:)|#(?=#(?:\[|vso\[))", re.MULTILINE)
"""What makes a line of a log a command of a CI service: ``::`` where it begins, ``##[`` and ``##vso[`` anywhere."""


def visible(text: str) -> str:
    """Spell out, as Python does, what a terminal would obey or a reader not see."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def without_commands(text: str) -> str:
    """Spell out the first character of what a CI service would take for a command."""
    return _COMMAND.sub(lambda found: (found["before"] or "") + f"\\x{ord(found[0][-1]):02x}", text)
