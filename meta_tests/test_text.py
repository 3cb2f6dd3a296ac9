"""Text from outside does nothing to whoever reads it."""

from __future__ import annotations

from io import StringIO

from rich.text import Text

from poolproof.reports.rows.text import visible
from poolproof.reports.terminal.painting import SafeConsole


def test_what_a_terminal_would_obey_is_spelled_out() -> None:
    assert visible("a\x1b[2Jb\rc\x00\x9b") == "a\\x1b[2Jb\\rc\\x00\\x9b"
    assert visible("right\u202eto left") == "right\\u202eto left"
    assert visible("half \ud800") == "half \\ud800"


def test_what_people_write_stays_as_it_is() -> None:
    for text in ("two\nlines", "a\ttab", "ünïcödé 中文 ≤ 😀", ""):
        assert visible(text) == text


def test_a_console_shows_foreign_text_and_paints_its_own() -> None:
    target = StringIO()
    console = SafeConsole(file=target, force_terminal=True, width=80)
    console.print(Text("now \x1b]0;title\x07", style="bold"))
    assert "\\x1b]0;title" in target.getvalue()
    assert "\x1b]0;" not in target.getvalue()
    assert "\x1b[1m" in target.getvalue()
