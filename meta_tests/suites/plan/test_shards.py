"""A plan in shards: dealt out whole and evenly, and joined into the run that one session would have made."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from poolproof.reports.figures.digest import read_digest
from poolproof.reports.rows.merging import CannotMerge
from poolproof.reports.rows.merging import merge as join
from poolproof.reports.rows.store import read_rows, read_run, write_run
from poolproof.reports.rows.verdicts import BadInput, Overall
from poolproof.suites.merge import merge as command
from poolproof.suites.plan.selection import Shard, balance, mandatory
from sessions import run_session
from shared_runs import made_once, verified

ASKED = [
    *("--operator", "MaxPool2dWithIndicesBackward", "--dtype", "float32", "--dtype", "float64", "--no-shrink"),
    *("--aspect", "values", "--aspect", "special_values", "--cases", "4"),
]
BACKEND = "scatter_backends:lost"
SHARDS = ("1/3", "2/3", "3/3")
COMPARED = ("verdict", "checks_judged", "checks_violated", "waivers", "status_code", "output_digest", "case")


@given(st.dictionaries(st.text(max_size=4), st.floats(0.01, 1e6), max_size=60), st.integers(1, 8))
def test_everything_is_dealt_once_and_evenly(costs: dict[str, float], hands: int) -> None:
    dealt = balance(costs, hands)
    assert sorted(name for hand in dealt for name in hand) == sorted(costs)
    loads = [sum(costs[name] for name in hand) for hand in dealt]
    assert max(loads) <= (sum(costs.values()) / hands + max(costs.values(), default=0.0)) * (1 + 1e-9)


@pytest.mark.parametrize(
    "text", ["", "2", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b", "1.5/2", "1/99999", "\u00b2/4", "1 /2"]
)
def test_what_is_no_shard_is_named(text: str) -> None:
    with pytest.raises(BadInput, match="a shard is I/N, the I-th of N parts"):
        Shard.parse(text)


def test_more_shards_than_parts_are_refused() -> None:
    for number in (1, 2, 3):
        with pytest.raises(BadInput, match=f"--shard {number}/3: .* 2 parts: use fewer shards"):
            Shard(number, 3).names({"a": 1.0, "b": 2.0})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``whole``, and the three shards of the same plan; and a session with another seed.

    Each worker has a copy of its own: who joins shards keeps all others out of them.
    """

    def make(folder: Path) -> None:
        run_session(folder / "whole", BACKEND, asked=ASKED)
        for shard in SHARDS:
            run_session(folder / shard[0], BACKEND, "--shard", shard, asked=ASKED)
        run_session(folder / "seed", BACKEND, "--shard", "1/3", "--seed", "1", asked=ASKED)

    made = made_once(tmp_path_factory, "shards", make)
    return Path(shutil.copytree(made, tmp_path_factory.mktemp("shards") / "own"))


def parts(runs: Path) -> list[Path]:
    return [runs / shard[0] for shard in SHARDS]


@pytest.fixture
def part(runs: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of one of them, to be changed."""
    return lambda name: Path(shutil.copytree(runs / name, tmp_path / f"copy-of-{name}"))


def outcomes(folder: Path) -> dict[tuple[str, ...], tuple[Any, ...]]:
    rows = read_rows(folder).to_pylist()
    key = ("backend", "block", "case_id", "operator", "dtype", "index_dtype")
    told = {tuple(str(row[name]) for name in key): tuple(row[name] for name in COMPARED) for row in rows}
    assert len(told) == len(rows)
    return told


def test_a_merged_run_is_the_whole_one(runs: Path, tmp_path: Path) -> None:
    join(parts(runs), tmp_path / "run", mandatory)
    merged, whole = read_digest(tmp_path / "run"), read_digest(runs / "whole")
    assert outcomes(merged.folder) == outcomes(whole.folder)
    assert merged.conclusion == whole.conclusion
    assert merged.run["selection"] == whole.run["selection"]
    assert merged.run["mandatory"] == whole.run["mandatory"]
    assert [part["shard"] for part in merged.run["merged"]] == list(SHARDS)
    assert sum(part["rows"] for part in merged.run["merged"]) == len(outcomes(whole.folder))
    assert "--shard" not in merged.run["arguments"]
    assert {path.name for path in (tmp_path / "run" / "evidence").glob("*.npz")} == {
        path.name for part in parts(runs) for path in (part / "evidence").glob("*.npz")
    }


def test_shards_say_what_they_are(runs: Path) -> None:
    conclusions = [read_digest(part).conclusion for part in parts(runs)]
    whole = read_digest(runs / "whole")
    assert sum(each.planned for each in conclusions) == whole.conclusion.planned
    assert [each.narrowed.rpartition(", ")[2] for each in conclusions] == ["shard 1/3", "shard 2/3", "shard 3/3"]


@pytest.mark.thorough
def test_a_merged_run_ends_is_packed_and_goes_on_like_another(runs: Path, tmp_path: Path) -> None:
    """It is resumed without the shards, and finds that nothing is left to do."""
    ended = CliRunner().invoke(command, [*map(str, parts(runs)), "-o", str(tmp_path / "run")])
    assert (ended.exit_code, (tmp_path / "run" / "index.html").exists()) == (Overall.VIOLATES, True), ended.output
    assert ended.output.splitlines()[-1].startswith("VIOLATES (exit status 1): ")
    for folder in (tmp_path / "run", runs / "2"):
        verified(folder, tmp_path)
    before = outcomes(tmp_path / "run")
    again = run_session(tmp_path / "run", BACKEND, "--resume", asked=ASKED)
    assert (again.status, outcomes(tmp_path / "run")) == (Overall.VIOLATES, before), again.output


def test_a_cut_shard_and_its_repetition_count_once(runs: Path, part: Callable[[str], Path], tmp_path: Path) -> None:
    cut = interrupted(part("2"))
    join([*parts(runs), cut], tmp_path / "run", mandatory)
    assert outcomes(tmp_path / "run") == outcomes(runs / "whole")
    assert read_run(tmp_path / "run")["finished"] is not None


def test_what_an_interrupted_shard_has_left_is_missing(runs: Path, part: Callable[[str], Path], tmp_path: Path) -> None:
    cut = interrupted(part("1"))
    join([cut, *parts(runs)[1:]], tmp_path / "run", mandatory)
    digest = read_digest(tmp_path / "run")
    lost = len(outcomes(runs / "1")) - len(outcomes(cut))
    assert digest.conclusion.missing == lost > 0
    assert "the run has not finished" in digest.conclusion.reasons


def test_a_row_that_nothing_was_learned_by_gives_way(runs: Path, part: Callable[[str], Path], tmp_path: Path) -> None:
    first = part("3")
    change_rows(first, lambda row: row | {"verdict": "not run", "reason": "no memory", "checks_judged": None})
    join([first, *parts(runs)], tmp_path / "run", mandatory)
    assert outcomes(tmp_path / "run") == outcomes(runs / "whole")


def refused(folders: list[Path], into: Path) -> str:
    ended = CliRunner().invoke(command, [*map(str, folders), "-o", str(into)])
    assert isinstance(ended.exception, CannotMerge), ended.output
    assert not (into / "run.json").exists()
    return str(ended.exception)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"suite": {"version": "0.0.9", "content_hash": "0" * 64}}, "suite version is '0.1.0' in the one, '0.0.9'"),
        ({"backends": {BACKEND: {"library": "other"}}}, f"backends {BACKEND}"),
        ({"waivers": [{"id": "w", "expires": "2099-01-01"}]}, " is only in the first"),
        ({"narrowed": {"selected": 1, "planned": 2, "tests": []}}, "judged only the tests that -k or ids chose"),
    ],
)
def test_parts_of_other_runs_are_refused(
    runs: Path, part: Callable[[str], Path], tmp_path: Path, entries: Mapping[str, Any], said: str
) -> None:
    other = part("2")
    write_run(other, read_run(other) | dict(entries))
    assert said in refused([runs / "1", other, runs / "3"], tmp_path / "run")


def test_what_is_no_whole_of_shards_is_refused(runs: Path, part: Callable[[str], Path], tmp_path: Path) -> None:
    """Another seed, missing shards, a whole run beside them, one twice with different rows; a folder in use."""
    into = tmp_path / "run"
    said = refused([runs / "seed", *parts(runs)[1:]], into)
    assert said.endswith("are no parts of one run: seed is 1 in the one, 0 in the other")
    assert refused([runs / "1", runs / "3"], into) == "missing: shard 2/3: name its folder, too"
    assert refused([runs / "3"], into) == "missing: shard 1/3, 2/3: name their folders, too"
    assert "they overlap" in refused([runs / "whole", *parts(runs)], into)
    twice = part("2")
    change_rows(twice, lambda row: row | {"checks_judged": [*row["checks_judged"], "determinism"]})
    said = refused([*parts(runs), twice], into)
    assert "both judged case" in said
    assert said.endswith("leave one of them out")
    assert refused(parts(runs), tmp_path) == f"{tmp_path} is not empty: name another folder"


def interrupted(folder: Path) -> Path:
    """With 0.4 of its rows."""
    write_run(folder, read_run(folder) | {"finished": None})
    rows = read_rows(folder).to_pylist()
    asked = [row for row in rows if row["block"]]
    write_rows(folder, [row for row in rows if not row["block"]] + asked[: round(0.4 * len(asked))])
    for done in (folder / "rows").glob("*.done"):
        done.unlink()
    return folder


def change_rows(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Of the first row that was judged."""
    rows = read_rows(folder).to_pylist()
    at = next(number for number, row in enumerate(rows) if row["checks_judged"] and row["block"])
    rows[at] = change(rows[at])
    write_rows(folder, rows)


def write_rows(folder: Path, rows: list[dict[str, Any]]) -> None:
    """As a session leaves them that was killed: in a journal."""
    for path in (folder / "rows").glob("*.parquet"):
        path.unlink()
    (folder / "rows" / "main-0099.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
