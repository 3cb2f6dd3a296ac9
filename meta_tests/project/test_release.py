"""What is released: an sdist with all files of the commit, of which nothing says who made it, when and where."""

import io
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

import pytest

from build import check_out, left_out, level, unpack
from places import ROOT

DATE = 1_700_000_000
FILES = {"p-1/a.py": 0o644, "p-1/run": 0o755}


def packed(path: Path, files: Mapping[str, int], mtime: int, owner: str) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, mode in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime, member.uname = 2, mode, mtime, owner
            archive.addfile(member, io.BytesIO(b"1\n"))
    return path


def test_who_made_an_sdist_when_and_how_cannot_be_seen_in_it(tmp_path: Path) -> None:
    private = {name: mode & 0o700 for name, mode in reversed(FILES.items())}
    one, other = packed(tmp_path / "one", FILES, 1, "me"), packed(tmp_path / "other", private, 2, "you")
    third = packed(tmp_path / "third", {"p-1/third": 0o644}, 1, "me")
    assert one.read_bytes() != other.read_bytes()
    for path in (one, other, third):
        level(path, DATE)
    assert one.read_bytes() == other.read_bytes() != third.read_bytes()
    with tarfile.open(one) as archive:
        assert {member.name: member.mode for member in archive} == FILES
        assert {(member.mtime, member.uname, member.uid) for member in archive} == {(DATE, "", 0)}
    unpack(one, tmp_path / "unpacked")
    assert (tmp_path / "unpacked" / "p-1" / "a.py").read_text() == "1\n"


def built(kind: str, source: Path, folder: Path) -> Path:
    """Let the backend that pyproject.toml names build in a clone."""
    program = f"import sys; sys.path.append('release'); import backend; print(backend.build_{kind}(sys.argv[1]))"
    made = subprocess.run([sys.executable, "-c", program, str(folder)], cwd=source, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return folder / made.stdout.split()[-1]


def test_a_wheel_has_nothing_of_an_earlier_build(tmp_path: Path) -> None:
    (tmp_path / "release").symlink_to(ROOT / "release")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "p"\nversion = "1"\n[tool.setuptools]\npackages = []\n')
    stale = tmp_path / "build" / "lib" / "poolproof" / "stale.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    with ZipFile(built("wheel", tmp_path, tmp_path)) as wheel:
        assert not [name for name in wheel.namelist() if "stale" in name]


def test_the_sdist_has_every_file_of_the_commit(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not in a clone")
    source = check_out(tmp_path)
    committed = [path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()]
    sdist = built("sdist", source, tmp_path)
    committed = [path for path in committed if ".egg-info/" not in path]
    assert left_out(sdist, committed) == set()
    assert left_out(sdist, [*committed, "meta_tests/forgotten.py"]) == {"meta_tests/forgotten.py"}


def test_the_floor_is_that_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = dict(each.split(">=") for each in (*project["dependencies"], *extras["history"], *extras["attest"]))
    lines = (ROOT / "constraints-floor.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert set(tested) == {name.partition("[")[0] for name in wanted}
    for name, oldest in wanted.items():
        assert (tested[name.partition("[")[0]] + ".").startswith(oldest + "."), name
