"""The wall around hosts, against a library that attacks its judge."""

from pathlib import Path

import pytest

from poolproof.backends.host.protocol import Raised
from poolproof.suites.isolation import landlock
from poolproof.suites.isolation.remote import adapter_error
from poolproof.suites.isolation.survey import survey

SIGNALS = {"signal the judge", "signal the guardian"}
WORKS = {"write a temporary file"}


@pytest.mark.skipif(landlock.version() < 3, reason="this kernel has no Landlock 3")
def test_a_hostile_library_reaches_nothing_outside_of_its_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows").write_text("violates")
    monkeypatch.setenv("TARGET", str(tmp_path))
    monkeypatch.setenv(landlock.WRITABLE_VARIABLE, "")
    said = dict(survey("attacks:Attacker").environment)
    assert said.pop("isolation") == landlock.describe()
    works = {what for what, outcome in said.items() if outcome == "done"}
    assert works == WORKS | (SIGNALS if landlock.version() < 6 else set())
    assert (tmp_path / "rows").read_text() == "violates"


def test_an_adapter_that_may_not_write_is_told_where_it_may() -> None:
    text = str(adapter_error(Raised(type="PermissionError", text="[Errno 13] Permission denied: 'log'")))
    assert "Permission denied: 'log'; a host may write in its TMPDIR and in the folders of POOLPROOF_WRITABLE" in text


def test_what_is_writable_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows").write_text("violates")
    monkeypatch.setenv("TARGET", str(tmp_path))
    monkeypatch.setenv(landlock.WRITABLE_VARIABLE, str(tmp_path))
    said = survey("attacks:Attacker").environment
    assert said["rewrite rows"] == "done"
    assert said["isolation"].endswith(f"writable: {tmp_path}") or not landlock.version()
