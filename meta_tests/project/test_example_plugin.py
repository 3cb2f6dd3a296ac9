"""The example of a package of plugins, one of each kind: installed, listed, judged, removed."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from places import ROOT
from poolproof import reports
from poolproof.reports.rows.verdicts import Overall
from poolproof.suites.cases.case import Case

EXAMPLE = ROOT / "examples" / "plugin"


POOL = '{"operator":"MaxPool2dWithIndicesBackward","shape":[2,3,8,9],"kernel_size":[3,2],"stride":[2]}'
PADDED = POOL.replace("}", ',"padding":[1]}')
_COMMANDS = """
import json, sys
from click.testing import CliRunner
from poolproof.suites.cli import main
ended = [CliRunner().invoke(main, arguments) for arguments in json.loads(sys.argv[1])]
print(json.dumps([each.output for each in ended]))
sys.exit(max(each.exit_code for each in ended))
"""
_ASKED = ("--aspect", "values", "--aspect", "precision", "--aspect", "special_values", "--cases", "6")


@dataclass(frozen=True)
class Environment:
    """A scratch environment, which has besides its own what that of these tests has."""

    folder: Path

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "GITHUB_ACTIONS")}
        command = [str(each) for each in (self.folder / "bin" / "python", *arguments)]
        return subprocess.run(
            command, cwd=self.folder, env=variables, stdout=-1, stderr=-2, text=True, timeout=300, check=False
        )

    def pip(self, *arguments: object) -> None:
        ended = self.run("-m", "pip", *arguments, "--disable-pip-version-check", "--quiet")
        assert ended.returncode == 0, ended.stdout

    def poolproof(self, *commands: Sequence[object]) -> list[str]:
        """What commands print, one after the other in one process: most of a short one is the start of its Python."""
        ended = self.run("-c", _COMMANDS, json.dumps([[str(each) for each in command] for command in commands]))
        assert ended.returncode == 0, ended.stdout
        said: list[str] = json.loads(ended.stdout.splitlines()[-1])
        return said

    def judge(self, *options: object, asked: Sequence[object] = _ASKED) -> tuple[int, str]:
        suite = ("-m", "pytest", "--pyargs", "poolproof.suites", "-q", "-p", "no:cacheprovider")
        ended = self.run(*suite, "--no-shrink", "--diagnose", "0", "--backend", "example", *asked, *options)
        return ended.returncode, ended.stdout


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    venv.create(tmp_path / "environment", with_pip=False)
    made = Environment(tmp_path / "environment")
    own = Path(sysconfig.get_path("purelib", vars={"base": str(made.folder)}))
    theirs = [path for path in sys.path if path.endswith("site-packages")]
    lines = [f"import site; site.addsitedir({path!r})\n" for path in theirs]
    (own / "of-the-tests.pth").write_text("".join(lines))
    return made


def test_the_example_is_installed_listed_judged_and_removed(environment: Environment, tmp_path: Path) -> None:
    source = shutil.copytree(EXAMPLE, tmp_path / "example")
    environment.pip("install", "--no-deps", "--no-build-isolation", "--no-index", source)
    written, again = tmp_path / "written.pools", tmp_path / "again.jsonl"
    plugins, exported, _ = environment.poolproof(
        ["plugins"],
        ["export", "--format", "example-pools", "--case", PADDED, "--case", POOL, "-o", written],
        ["export", "--format", "json", "--case-list", written, "-o", again],
    )
    listed = [line.split()[-5:] for line in plugins.splitlines()]
    for kind in ("backend", "waivers", "standard", "format"):
        assert [kind, "example", "poolproof-example", "1.0", "yes"] in listed
    assert "1 left out: what is neither shape, kernel nor stride" in exported
    assert written.read_text() == "pools of the example\n2x3x8x9 kernel 3x2 stride 2\n"
    assert Case.from_json(again.read_text()).id == Case.from_json(POOL).id

    status, said = environment.judge("--report", tmp_path / "run")
    assert status == Overall.CONFORMS, said
    assert "used  example-nan-gradients" in said
    run = reports.load(tmp_path / "run")
    counts = run.verdicts.sum()
    assert counts["waived"] > 0
    assert "got 0, expected nan" in run.rows.loc[run.rows["verdict"] == "waived", "reason"].iloc[0]
    assert counts["conforms"] + counts["waived"] == counts["judged"] == len(run.rows[run.rows["aspect"] != ""]) == 30
    passed = run.rows["standards_passed"].dropna()
    assert len(passed) == 6
    assert all("example-contract" in names for names in passed)

    pools = tmp_path / "ours.pools"
    pools.write_text("pools of the example\n2x3x8x8 kernel 3 stride 2\n2x3x8x8 kernel 3\n")
    status, said = environment.judge("--report", tmp_path / "listed", asked=("--case-list", pools))
    assert status == Overall.INCOMPLETE, said
    assert "row 3 of ours.pools (3): stride: it is missing" in " ".join(said.split())
    assert reports.load(tmp_path / "listed").verdicts["conforms"].sum() == 1

    environment.pip("uninstall", "--yes", "poolproof-example")
    (plugins,) = environment.poolproof(["plugins"])
    assert "example" not in plugins
    status, said = environment.judge("--report", tmp_path / "removed")
    assert status == Overall.COULD_NOT_RUN
    assert "unknown backend 'example'" in said
