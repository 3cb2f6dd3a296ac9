"""Text from outside, made safe to show: messages of libraries and plugins, names in bundles and waivers."""

from __future__ import annotations

import re

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and newline, marks that change the direction of writing, and halves of characters."""


def visible(text: str) -> str:
    """The text with what a terminal would obey, or a reader not see, spelled out as Python spells it."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
