"""Hostile archives: a sentence and an exit status for each, soon, in bounded memory, and nothing written elsewhere."""

import time
from pathlib import Path
from zipfile import ZipFile

import pytest

from hostile import HOSTILE, Files
from poolproof.reports.rows.verdicts import Overall
from sessions import poolproof
from shares import a_share

SECONDS = 30.0
MEBIBYTES = 512


@pytest.fixture(scope="module")
def standing(failing_run: Path) -> Files:
    """The members of a bundle that stands, of a real failing run."""
    with ZipFile(failing_run / "bundle.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _forget_the_peak() -> None:
    """From here on the peak of this process's memory is counted anew (proc(5), clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak() -> float:
    """The most memory that this process had since then, in MiB."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


@pytest.mark.usefixtures("deriving_once")
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", a_share(HOSTILE))
def test_a_hostile_archive_is_told(name: str, standing: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    HOSTILE[name](tmp_path / "bundle.zip", standing)
    _forget_the_peak()
    began, before = time.monotonic(), _peak()
    result = poolproof("verify", tmp_path / "bundle.zip")
    assert time.monotonic() - began < SECONDS
    assert _peak() - before < MEBIBYTES
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert result.exit_code in (Overall.VIOLATES, Overall.COULD_NOT_RUN), result.output
    assert "Traceback" not in result.output
    assert "\x1b" not in result.output
    assert list((tmp_path / "here").iterdir()) == []
    assert not (tmp_path / "outside.txt").exists()
    if result.exit_code == Overall.COULD_NOT_RUN:
        assert len(result.output.strip().splitlines()) == 1


def test_memory_that_was_taken_and_given_back_is_seen() -> None:
    assert len(HOSTILE) >= 40
    for _ in range(2):
        _forget_the_peak()
        before = _peak()
        bytearray(MEBIBYTES + 64 << 20)
        assert _peak() - before > MEBIBYTES
