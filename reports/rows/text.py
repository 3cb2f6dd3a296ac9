"""Text for people: numbers in words, and foreign text made safe to show."""

from __future__ import annotations

import re

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters except tab and newline, marks that change the direction of writing, and halves of characters."""

_COMMAND = re.compile(r"^(?P<before>(?:\s|\x1b\[[0-9;]*m)*):(?=:)|#(?=#(?:\[|vso\[))", re.MULTILINE)
"""Commands of CI services in a log: ``::`` at the start of a line, ``##[`` and ``##vso[`` anywhere."""


# a text beyond these limits is a pasted file, or a wrong variable
_LONG, _MOST, _MOST_LINES = re.compile(r"\S{2000,}"), 4_000, 40


def visible(text: str) -> str:
    """Escape, as Python does, characters that a terminal would obey or a reader would not see."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def without_commands(text: str) -> str:
    """Escape the first character of a CI service's commands."""
    return _COMMAND.sub(lambda found: (found["before"] or "") + f"\\x{ord(found[0][-1]):02x}", text)


def safe(text: str) -> str:
    """Make a sentence with foreign text safe for a terminal or a log: escape it, and shorten long quotations."""
    shown = visible(_LONG.sub(lambda found: f"{found[0][:100]}... ({len(found[0]):,} characters)", text))
    shown = without_commands(shown.replace("\n", "\\n") if shown.count("\n") > _MOST_LINES else shown)
    return shown if len(shown) <= _MOST else f"{shown[: _MOST // 2]} ... {shown[-_MOST // 2 :]}"


def duration(seconds: float) -> str:
    """Format a time: ``12 s``, ``10 min``, ``1 min 30 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return " ".join(f"{number} {unit}" for number, unit in ((minutes, "min"), (rest, "s")) if number) or "0 s"


def count_of(number: int, thing: str) -> str:
    """Format a number with its noun: ``1 case``, ``2,000 cases``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def raised(exponent: int) -> str:
    """Return an exponent in superscript digits."""
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def figure(value: object) -> object:
    """Format a number: counts with commas, measurements with four digits; return anything else unchanged."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else value


def percent(part: float, whole: float = 1.0) -> str:
    """Format a share: only nothing is 0, and only all is 100."""
    share = part / whole if whole else 0.0
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    text = f"{100.0 * share:.3g}"
    return f"{'> 99.9' if text == '100' else text if 'e' not in text else '< 0.0001'} %"


def spelled_value(value: int | str) -> str:
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)
