"""The example of a package with a backend and a format of case lists: installed and judged."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import forked
from places import ROOT
from poolproof import reports
from poolproof.reports.rows.verdicts import Overall
from poolproof.suites.cases.case import Case
from sessions import run_session, surroundings

POOL = '{"operator":"MaxPool2dWithIndicesBackward","shape":[2,3,8,9],"kernel_size":[3,2],"stride":[2]}'
PADDED = POOL.replace("}", ',"padding":[1]}')
ASKED = ("--aspect", "values", "--aspect", "precision", "--aspect", "special_values", "--cases", "6", "--no-shrink")


@pytest.fixture
def path(tmp_path: Path) -> dict[str, str]:
    """The variable that finds the example, which pip has installed into a folder."""
    source, site = shutil.copytree(ROOT / "examples" / "plugin", tmp_path / "example"), tmp_path / "site"
    alone = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet")
    subprocess.run([sys.executable, "-m", "pip", "install", *alone, "--target", site, source], check=True)
    return {"PYTHONPATH": str(site)}


def test_the_example_writes_its_format(path: dict[str, str], tmp_path: Path) -> None:
    def poolproof(*arguments: str) -> str:
        ended = forked.run(forked.Command("poolproof", arguments, tmp_path, surroundings() | path))
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    asked = ("export", "--format", "example-pools", "--case", PADDED, "--case", POOL, "-o", "written.pools")
    assert "1 left out: what is neither shape, kernel nor stride" in poolproof(*asked)
    assert (tmp_path / "written.pools").read_text() == "pools of the example\n2x3x8x9 kernel 3x2 stride 2\n"
    poolproof("export", "--format", "json", "--case-list", "written.pools", "-o", "again.jsonl")
    assert Case.from_json((tmp_path / "again.jsonl").read_text()).id == Case.from_json(POOL).id


def test_the_example_is_judged_and_so_are_its_case_lists(path: dict[str, str], tmp_path: Path) -> None:
    waivers = ("--waivers", "none", "--waivers", str(ROOT / "examples" / "plugin" / "waivers.toml"))
    ended = run_session(tmp_path / "run", "example", *waivers, asked=ASKED, variables=path)
    assert ended.status == Overall.CONFORMS, ended.output
    assert "used  example-nan-gradients" in ended.output
    run = reports.load(ended.folder)
    counts = run.verdicts.sum()
    assert counts["waived"] > 0
    assert "got 0, expected nan" in run.rows.loc[run.rows["verdict"] == "waived", "reason"].iloc[0]
    assert counts["conforms"] + counts["waived"] == counts["judged"] == len(run.rows[run.rows["aspect"] != ""]) == 30

    pools = tmp_path / "ours.pools"
    pools.write_text("pools of the example\n2x3x8x8 kernel 3 stride 2\n2x3x8x8 kernel 3\n")
    ended = run_session(tmp_path / "listed", "example", asked=("--case-list", str(pools)), variables=path)
    assert ended.status == Overall.INCOMPLETE, ended.output
    assert "row 3 of ours.pools (3): stride: it is missing" in " ".join(ended.output.split())
    assert reports.load(ended.folder).verdicts["conforms"].sum() == 1
