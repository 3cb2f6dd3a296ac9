"""The sdist and wheel of the last commit, reproducible byte for byte with the same tools.

    python release/build.py FOLDER

builds both twice, in two folders and under two umasks, and compares; `tox -e release` has the tools, of the versions in
constraints.txt. Times are those of the commit, or SOURCE_DATE_EPOCH. The wheel is made from the sdist.
"""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
UMASKS = (0o022, 0o077)


class Unfit(Exception):
    """A build that cannot be released; the text says why."""


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def source_date() -> int:
    """Seconds since 1970."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))


def check_out(folder: Path) -> Path:
    """List the files of the last commit."""
    archive, source = folder / "commit.tar", folder / "source"
    git("archive", f"--output={archive}", "HEAD")
    unpack(archive, source)
    return source


def unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as files:
        files.extraction_filter = getattr(tarfile, "data_filter", None)  # which Python 3.11.2 has not
        files.extractall(folder)


def level(sdist: Path, date: int) -> None:
    """Leave nothing in an sdist of who made it, when and where: setuptools keeps times, owners and modes of files."""
    with tarfile.open(sdist) as files:
        contents = sorted(
            (member.name, member.mode & 0o100, files.extractfile(member)) for member in files if member.isfile()
        )
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as levelled:
            for name, executable, content in contents:
                data = content.read()
                member = tarfile.TarInfo(name)
                member.size, member.mtime, member.mode = len(data), date, 0o755 if executable else 0o644
                levelled.addfile(member, io.BytesIO(data))
    sdist.write_bytes(gzip.compress(packed.getvalue(), mtime=date))


def build(folder: Path, date: int) -> tuple[Path, Path]:
    """(sdist, wheel)."""
    out = folder / "out"
    _build("--sdist", check_out(folder), out, date)
    (sdist,) = out.glob("*.tar.gz")
    level(sdist, date)
    unpack(sdist, folder / "unpacked")
    (unpacked,) = (folder / "unpacked").iterdir()
    _build("--wheel", unpacked, out, date)
    (wheel,) = out.glob("*.whl")
    return sdist, wheel


def _build(kind: str, source: Path, out: Path, date: int) -> None:
    """Under one umask, for wheels keep the modes of files that are made while they are built."""
    command = [sys.executable, "-m", "build", "--no-isolation", kind, f"--outdir={out}", str(source)]
    own = os.environ | {"SOURCE_DATE_EPOCH": str(date)}
    ended = subprocess.run(command, env=own, umask=0o022, capture_output=True, text=True)
    if ended.returncode:
        raise Unfit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")


def left_out(sdist: Path, committed: Sequence[str]) -> set[str]:
    """Files of the commit that are not in an sdist."""
    with tarfile.open(sdist) as files:
        packed = {member.name.partition("/")[2] for member in files}
    return set(committed) - packed


def build_alike(folder: Path) -> tuple[Path, Path]:
    """(sdist, wheel), `Unfit` where two builds of them differ or the sdist has not all files of the commit."""
    date, built = source_date(), []
    for umask in UMASKS:
        at = folder / f"{umask:03o}"
        at.mkdir()
        before = os.umask(umask)
        try:
            built.append(build(at, date))
        finally:
            os.umask(before)
    first, second = built
    if differing := [
        one.name for one, other in zip(first, second, strict=True) if one.read_bytes() != other.read_bytes()
    ]:
        raise Unfit(f"two builds of {' and '.join(differing)} differ")
    if missing := left_out(first[0], git("ls-tree", "-r", "--name-only", "HEAD").splitlines()):
        raise Unfit(f"not in the sdist, see MANIFEST.in: {', '.join(sorted(missing))}")
    return first


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as at:
        for path in build_alike(Path(at)):
            (folder / path.name).write_bytes(path.read_bytes())
            print(f"built twice, alike: {folder / path.name}")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except Unfit as error:
        sys.exit(str(error))
