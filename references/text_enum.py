"""Enumerations of texts: `enum.StrEnum` for hosts with a Python before 3.11."""

from __future__ import annotations

from enum import Enum


class TextEnum(str, Enum):  # noqa: UP042
    """Members are texts, and `str` and `format` write them as such."""

    __str__ = str.__str__
    __format__ = str.__format__  # type: ignore[assignment]
