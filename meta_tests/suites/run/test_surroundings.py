"""Faults of the surroundings end a session with status 3 and one sentence; its rows stand, and --resume completes."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

import pytest

import forked
from forked import Command
from limits import limit_files
from places import ROOT
from poolproof.reports.recorder import sentence
from poolproof.reports.rows.io_errors import CannotWrite
from poolproof.reports.rows.store import RowWriter, read_rows, read_run
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import Overall
from sessions import Ended, surroundings
from shared_runs import made_once

BACKEND = "plugged_backends:loses_threes"
ASKED = ["--operator", "MaxPool2dWithIndicesBackward", "--aspect", "values", "--dtype", "float16"]
QUICK = ["--no-shrink", "--diagnose", "0"]
ARGUMENTS = ["-q", "-p", "no:cacheprovider", "--no-search", "--backend", BACKEND, "--waivers", "none", *ASKED, *QUICK]

LIMITS = (100, 10_500, 22_000, 20_000, 30_000, 29_000, 32_500, 31_000, 34_000, 35_000)
"""Bytes of a file at ten points: too few for run.json, in the rows, in a part that takes their place.

Without waivers, whose texts are in run.json: it would outgrow them.
"""

FAULTS: dict[str, dict[str, Any]] = {
    "index.html": {"full": "index.html"},
    "summary.md": {"full": "summary.md"},
    "job summary": {"environment": {"GITHUB_STEP_SUMMARY": "/dev/full"}, "more": ["--ci", "github"]},
    **{hook: {"environment": {"DISTURBANCE": hook}} for hook in ("sessionfinish", "terminal_summary", "unconfigure")},
}


def test_what_the_end_of_a_run_needs_is_tried_at_its_start(tmp_path: Path) -> None:
    said = "pyarrow requires NumPy 2.0 or newer, found 1.26.4"
    (tmp_path / "pyarrow.py").write_text(f"raise ImportError({said!r})\n")
    environment = surroundings() | {"PYTHONPATH": f"{tmp_path}:{surroundings()['PYTHONPATH']}"}
    by_name = ["-c", "from poolproof.suites.cli import main; main()", "run"]
    for words in (["-m", "pytest", *told_to()], by_name):
        command = [sys.executable, *words]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, stdout=PIPE, stderr=STDOUT, text=True)
        assert f"{said}; install versions that go together" in ended.stdout.splitlines()[-1]
        assert ended.returncode == Overall.COULD_NOT_RUN
        assert not (tmp_path / "run").exists()


def rows_of(folder: Path) -> Counter[tuple[str, ...]]:
    columns = ["block", "case_id", "verdict"]
    return Counter(tuple(str(row[name]) for name in columns) for row in read_rows(folder, columns).to_pylist())


def told_to(*options: str) -> list[str]:
    return [str(ROOT / "suites"), *ARGUMENTS, "-p", "disturbing", "--report", "run", *options]


def sessions_of(factory: pytest.TempPathFactory, name: str, steps: list[dict[str, Any]]) -> list[Ended]:
    """Sessions of one run, and its folder as each left it; made once, else each worker would make them all again."""

    def make(folder: Path) -> None:
        for number, step in enumerate(steps):
            (folder / f"said-{number}").write_text(session(folder, **step), encoding="utf-8")
            shutil.copytree(folder / "run", folder / f"after-{number}", symlinks=True)

    folder = made_once(factory, name, make)
    said = [(folder / f"said-{number}").read_text(encoding="utf-8").partition("\n") for number in range(len(steps))]
    return [Ended(int(status), text, folder / f"after-{number}") for number, (status, _, text) in enumerate(said)]


def session(
    folder: Path,
    limit: int | None = None,
    full: str | None = None,
    environment: Mapping[str, str] | None = None,
    more: Sequence[str] = (),
) -> str:
    """The status of a session and what it said; no file may be larger than ``limit``, for ``full`` there is no room."""
    before = None if limit is None else partial(limit_files, limit)
    page = folder / "run" / (full or "")
    if full:
        page.unlink(missing_ok=True)
        page.symlink_to("/dev/full")
    asked = told_to("--cases", "60", *more)
    ended = forked.run(Command("pytest", asked, folder, surroundings() | dict(environment or {}), before=before))
    if full:
        page.unlink()
    return f"{ended.returncode}\n{ended.stdout}{ended.stderr}"


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> list[Ended]:
    """The sessions of one run: at each limit, with each fault behind the last row, and undisturbed."""
    limited = [{"limit": limit} for limit in LIMITS]
    steps = [{"more": [], **step} for step in (*limited, *FAULTS.values(), {})]
    for step in steps[3:]:
        step["more"] = [*step["more"], "--resume"]
    return sessions_of(tmp_path_factory, "chain", steps)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    (step,) = sessions_of(tmp_path_factory, "undisturbed", [{}])
    return step


def told_once(step: Ended, sentence: str) -> None:
    """The sentence is told, and no traceback."""
    assert step.status == Overall.COULD_NOT_RUN, step.output
    assert sentence in " ".join(step.output.split()), step.output
    assert "Traceback" not in step.output
    assert "INTERNALERROR" not in step.output


@pytest.mark.thorough
def test_a_disk_that_is_full_at_ten_points_all_over_a_run_costs_no_row(chain: list[Ended], undisturbed: Ended) -> None:
    before: Counter[tuple[str, ...]] = Counter()
    told, counts = set(), set()
    for step in chain[: len(LIMITS)]:
        told_once(step, "File too large; make room for it")
        assert step.output.count("make room for it") == 1, step.output
        assert "VIOLATES" not in step.output
        told |= set(re.findall(r"cannot write \S*?([\w.-]+):", step.output))
        now = rows_of(step.folder) if (step.folder / "rows").is_dir() else Counter()
        assert before <= now
        before = now
        counts.add(len(now))
    assert {"run.json", "main-0000.jsonl", "main-0000.parquet"} <= told
    assert len(counts) >= 6, counts
    assert chain[-1].status == Overall.VIOLATES, chain[-1].output
    assert rows_of(chain[-1].folder) == rows_of(undisturbed.folder)
    assert max(rows_of(undisturbed.folder).values()) == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_the_end_is_told_and_loses_nothing(chain: list[Ended], undisturbed: Ended, fault: str) -> None:
    step = chain[len(LIMITS) + [*FAULTS].index(fault)]
    if fault in ("sessionfinish", "terminal_summary", "unconfigure"):
        told_once(step, f"a plugin failed at the end of the session: LookupError: no server to upload to, in {fault}")
    else:
        told_once(step, f"cannot write {'/dev/full' if fault == 'job summary' else f'run/{fault}'}: No space left")
    assert read_run(step.folder)["finished"]
    assert rows_of(step.folder) == rows_of(undisturbed.folder)


@pytest.mark.thorough
def test_a_full_disk_stops_workers_for_good(tmp_path: Path) -> None:
    """A disk that really is full, in a session with workers: they stop, are not replaced, and --resume completes."""
    unshare = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*unshare, "mount -t tmpfs none /mnt"], check=False).returncode:
        pytest.skip("no file system may be mounted here")
    script = (
        'mkdir run; mount -t tmpfs -o size=112k none run; "$@"; echo "=== $?"; cp -r run full;'
        'mount -o remount,size=8m run; "$@" --resume; echo "=== $?"; cp -r run again'
    )
    asked = [*unshare, script, "sh", sys.executable, "-m", "pytest", *told_to("-n", "2", "--cases", "30")]
    said = subprocess.run(asked, cwd=tmp_path, env=surroundings(), text=True, stdout=PIPE, stderr=STDOUT).stdout
    (full, status), (again, last) = re.findall(r"(.*?)^=== (-?\d+)\n", said, flags=re.MULTILINE | re.DOTALL)
    room = "No space left on device; make room for it, and go on with --resume"
    told_once(Ended(int(status), full, tmp_path / "full"), room)
    assert "replacing crashed worker" not in full
    assert int(last) == Overall.VIOLATES, again
    rows = rows_of(tmp_path / "again")
    assert max(rows.values()) == 1
    assert sum(rows.values()) == 60


def test_a_row_or_a_folder_that_has_no_room_leaves_the_rows_before(tmp_path: Path) -> None:
    """Half of the row is written, and there is no room for the rest."""
    (tmp_path / "file").touch()
    with pytest.raises(CannotWrite, match="Not a directory"):
        RowWriter(tmp_path / "file", "main")
    program = (
        "import resource, sys; from pathlib import Path; from poolproof.reports.rows.store import RowWriter;"
        "writer = RowWriter(Path(sys.argv[1]), 'main'); writer.append({'case_id': 'a'});"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (30, -1)); writer.append({'case_id': 99 * 'b'})"
    )
    ended = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False)
    assert "CannotWrite" in ended.stderr
    (journal,) = tmp_path.glob("rows/*.jsonl")
    assert json.loads(journal.read_bytes()) == {"case_id": "a"}


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("n 16", "raise the limit of open files (ulimit -n), which is 16"),
        ("v 600000", "(ulimit -v), which is 600,000"),
    ],
)
def test_a_limit_that_ends_a_session_is_named(tmp_path: Path, limit: str, said: str) -> None:
    session = f"ulimit -{limit} && exec poolproof run --operator AdaptiveMaxPool2d --aspect values --cases 1 --report r"
    ended = subprocess.run(["sh", "-c", session], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, said in ended.stdout + ended.stderr) == (Overall.COULD_NOT_RUN, True), ended.stderr


def test_a_part_whose_writer_died_before_its_journal_was_gone_counts_once(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path, "main")
    writer.append({"case_id": "a"})
    journal = next(tmp_path.glob("rows/*.jsonl"))
    lines = journal.read_bytes()
    writer.close()
    journal.write_bytes(lines)
    assert read_rows(tmp_path, ["case_id"]).to_pylist() == [{"case_id": "a"}]
    writer.append({"case_id": "b"})
    writer.close()
    assert sorted(read_rows(tmp_path, ["case_id"])["case_id"].to_pylist()) == ["a", "b"]


def test_an_error_of_ours_is_laid_at_no_plugin() -> None:
    with pytest.raises(ValueError, match="Cannot specify") as raised:
        count_of("many", "case")  # type: ignore[arg-type]
    assert re.match(r"poolproof itself failed at the end of the session: .*\(text.py, line ", sentence(raised.value))
