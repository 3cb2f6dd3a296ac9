"""What every command and session says when it is given something it cannot use."""

from __future__ import annotations


class BadInput(Exception):
    """Something given cannot be used; the text is one sentence for the person who gave it."""
