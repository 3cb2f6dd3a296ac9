"""The wall around hosts, against a library that attacks its judge."""

from pathlib import Path

import pytest

from poolproof.backends.host.protocol import Description, Raised
from poolproof.suites.cases.case import Case
from poolproof.suites.isolation import landlock
from poolproof.suites.isolation.remote import RemoteBackend, adapter_error
from poolproof.suites.isolation.supervision import _writable
from poolproof.suites.isolation.survey import survey
from poolproof.suites.judging.faults import AdapterError
from poolproof.suites.judging.trial import Trial

CASE = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 1, 4, 4), kernel_size=(2,))

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


def test_a_backend_that_becomes_unavailable_in_a_call_says_why() -> None:
    remote = RemoteBackend(Description(), lambda *_: {"unavailable": "kernels cannot be kept"})
    with pytest.raises(AdapterError, match="kernels cannot be kept"):
        remote.memory_after(Trial(CASE, remote).new_call(), 1)


def test_a_host_of_kernels_may_write_to_the_cache_of_their_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = str(tmp_path / "poolproof" / "ascendc")
    assert built in _writable("ascendc:ops-nn/adaptive_max_pool3d-a2").split(":")
    assert built not in _writable("emulator-a2").split(":")


@pytest.mark.thorough
def test_what_is_writable_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows").write_text("violates")
    monkeypatch.setenv("TARGET", str(tmp_path))
    monkeypatch.setenv(landlock.WRITABLE_VARIABLE, str(tmp_path))
    said = survey("attacks:Attacker").environment
    assert said["rewrite rows"] == "done"
    assert said["isolation"].endswith(f"writable: {tmp_path}") or not landlock.version()
