"""Statuses of AscendCL and aclnn, in words and as exceptions."""

from __future__ import annotations

from poolproof.references.contract.statuses import NAMES

SUCCESS = 0


def describe(code: int) -> str:
    """Spell a status: ``161002 (invalid argument)``."""
    return f"{code} ({NAMES.get(code, 'unknown status')})"


class AclError(Exception):
    """A call that did not return success: ``code`` is its status, ``text`` the library's own."""

    def __init__(self, function: str, code: int, text: str = "") -> None:
        super().__init__(f"{function} returned {describe(code)}" + (f": {text}" if text else ""))
        self.code, self.text = code, text
