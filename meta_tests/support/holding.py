"""Aspects made for a test: nothing is claimed but that certain checks hold."""

from __future__ import annotations

from poolproof.suites.judging.question import Aspect


def holding(*checks: str, repeats: int = 1) -> Aspect:
    return Aspect("meta", "", checks, repeats)
