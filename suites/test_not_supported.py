"""What a backend cannot be asked at all: skipped in the open, with the backend's own reason."""

from collections.abc import Callable

from poolproof.suites.running.plans import Cell


def test_not_supported(unsupported_cell: Cell, note_unsupported: Callable[[Cell], None]) -> None:
    note_unsupported(unsupported_cell)
