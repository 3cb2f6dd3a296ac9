"""Enumerations of texts, as `enum.StrEnum`, which Python has from 3.11 on: hosts run older ones."""

from __future__ import annotations

from enum import Enum


class TextEnum(str, Enum):  # noqa: UP042
    """Members are texts, and are written as such."""

    __str__ = str.__str__
    __format__ = str.__format__  # type: ignore[assignment]
