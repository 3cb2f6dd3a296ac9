"""Programs that tests start import the helpers in this folder, as the tests themselves do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from poolproof.backends.emulator.build import SINGLE_NAME
from poolproof.suites.running.identity import mapped_libraries


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="module")
def _no_emulator_in_this_process() -> Iterator[None]:
    """The emulator reads its product and its defect once, and every copy loaded later would call into the first one."""
    yield
    assert not [path for path in mapped_libraries() if path.endswith(SINGLE_NAME)], "a test loaded the emulator itself"
