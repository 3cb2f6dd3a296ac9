"""What installed packages add: it is used, and one that is broken is one line and costs nothing else."""

import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path

import pytest
from click.testing import Result

from places import ROOT, SUPPORT
from poolproof.backends.registry import create, names
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.rows.plugins import PluginKind, other_plugins
from poolproof.reports.rows.verdicts import Overall
from poolproof.reports.waivers.plugins import choose
from poolproof.suites import plugged as plugging
from poolproof.suites.api import judge
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.lists import ListError, formats_of_packages, read_lists
from poolproof.suites.commands import LISTED
from poolproof.suites.judging import budget, measure
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.plan.aspects import EVERYTHING
from poolproof.suites.plugged import LoadedPlugins
from scatter import Scatter
from sessions import poolproof, run_session, waiver
from shared_runs import verified

LINE = '{"operator":"MaxPool2dWithIndicesBackward","shape":[1,1,4,4],"kernel_size":[3],"stride":[1]}'
STANDARD = """
from dataclasses import dataclass
from poolproof.references.standards import Standard

@dataclass(frozen=True, kw_only=True)
class Told(Standard):
    answer: object

    def judge(self, deviations):
        if isinstance(self.answer, BaseException):
            raise self.answer
        if callable(self.answer):
            self.answer()
        return self.answer

def told(name, answer):
    return Told(name=name, source="us", answer=answer)
"""

Package = Callable[..., Path]


def lay(folder: Path, points: str, files: Mapping[str, str]) -> Path:
    """A package as it lies where packages are installed."""
    about = {"theirs-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n"}
    for name, text in {**files, **about, "theirs-1.0.dist-info/entry_points.txt": points}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """Lays a package where this process imports from."""

    def laid(points: str, files: Mapping[str, str]) -> Path:
        monkeypatch.syspath_prepend(str(lay(tmp_path / "site", points, files)))
        measure.plugged.cache_clear()
        return tmp_path / "site"

    yield laid
    measure.plugged.cache_clear()
    sys.modules.pop("theirs", None)


def standards(package: Package, module: str) -> LoadedPlugins:
    package("[poolproof.standards]\nmine = theirs:MINE\n", {"theirs.py": STANDARD + module})
    return measure.plugged()


@pytest.mark.parametrize(
    ("module", "fault"),
    [
        ("import surely_not_there", "it raised ModuleNotFoundError: No module named 'surely_not_there'"),
        ("MINE = 1 / 0", "it raised ZeroDivisionError: division by zero"),
        ("raise SystemExit('no')", "it raised SystemExit: no"),
        ("raise KeyboardInterrupt", "it raised KeyboardInterrupt"),
        ("raise RuntimeError('all\\n' * 9 + '\\x1b[2J')", "it raised RuntimeError: " + "all " * 9 + "\\x1b[2J"),
        ("import os; os._exit(0)", "it ended its process, by status 0, while it was loaded"),
        ("import os; os.abort()", "it ended its process, by signal SIGABRT, while it was loaded"),
        ("while True: pass", "it was not loaded after 1 s"),
        ("", "it raised AttributeError: module 'theirs' has no attribute 'MINE'"),
        ("MINE = 5", "it names 5, no Standard with a name"),
        ("MINE = (told('a', True), 'b')", "it names 'b', no Standard with a name"),
        ("MINE = told(5, True)", "it names Told(name=5, source='us', note='', answer=True), no"),
        ("MINE = told('ttk-close', True)", "there is another standard called 'ttk-close'"),
        ("MINE = told('a', True), told('a', True)", "there is another standard called 'a'"),
    ],
)
def test_a_broken_standard_is_told(package: Package, monkeypatch: pytest.MonkeyPatch, module: str, fault: str) -> None:
    monkeypatch.setattr(plugging, "LOAD_SECONDS", 1)
    found = standards(package, module)
    (record,) = found.records
    assert not found.used
    assert record == {"kind": "standard", "name": "mine", "package": "theirs 1.0", "fault": record["fault"]}
    assert record["fault"].startswith(fault)
    assert judge(LINE, Scatter())["verdict"] == "conforms"


_EXIT, _ABORT = "lambda: __import__('os')._exit(0)", "lambda: __import__('os').abort()"


@pytest.mark.parametrize(
    ("answer", "column", "said"),
    [
        ("True", "standards_passed", "mine"),
        ("False", "standards_failed", "mine"),
        ("None", None, ""),
        ("5", "standards_broken", "mine: it said 5, not True, False or None"),
        ("ValueError('odd')", "standards_broken", "mine: it raised ValueError: odd"),
        ("SystemExit(0)", "standards_broken", "mine: it raised SystemExit: 0"),
        (_EXIT, "standards_broken", "mine: it ended its process, by status 0, while it was applied"),
        (_ABORT, "standards_broken", "mine: it ended its process, by signal SIGABRT, while it was applied"),
    ],
)
def test_a_plugins_standard_is_beside_the_verdict(package: Package, answer: str, column: str | None, said: str) -> None:
    found = standards(package, f"MINE = told('mine', {answer})")
    assert [record["fault"] for record in found.records] == [""]
    row = judge(LINE, Scatter())
    assert row["verdict"] == "conforms"
    told = {name for name in ("standards_passed", "standards_failed", "standards_broken") if row[name]}
    mine = {name: [text for text in row[name] if text.startswith("mine")] for name in told}
    assert {name: texts for name, texts in mine.items() if texts} == ({column: [said]} if column else {})


def test_standards_of_plugins_are_left_out_where_memory_is_short(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    standards(package, "MINE = told('mine', True)")
    case = Case.of(operator="MaxPool2dWithIndicesBackward", shape=(1, 4, 64, 64), kernel_size=(2,))
    needed = budget.needed_memory(case, EVERYTHING.repeats)
    for room, is_asked in ((needed, False), (needed + budget.PLUGGED_BYTES * 4 * 64 * 64, True)):
        monkeypatch.setenv(budget.VARIABLE, str(room))
        row = CaseQuestion(case, EVERYTHING).judge(Scatter())
        assert row["verdict"] == "conforms"
        assert ("mine" in row["standards_passed"], "ttk-close" in row["standards_passed"]) == (is_asked, True)


HAD = {"kind": "standard", "name": "mine", "package": "theirs 1.0", "fault": ""}
WITH = "with standard 'mine' of theirs"


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ([HAD], ""),
        ([], f"{WITH} 1.0, which is not installed now"),
        ([HAD, HAD | {"name": "other"}], "without standard 'other' of theirs 1.0, which is installed now"),
        ([HAD | {"package": "theirs 1.1"}], f"{WITH} 1.0, and now it would be {WITH} 1.1"),
        ([HAD | {"fault": "odd"}], f"{WITH} 1.0, and now it would be {WITH} 1.0, left out: odd"),
    ],
)
def test_other_plugins_than_a_run_had_are_told(now: list[Mapping[str, str]], said: str) -> None:
    assert other_plugins([HAD], now) == said


def waiver_plugins(package: Package, files: Mapping[str, str], point: str = "theirs.waivers") -> list[str]:
    """(faults of the plugins), having chosen the waivers of a run."""
    package(f"[poolproof.waivers]\nmine = {point}\n", {f"theirs/{name}": text for name, text in files.items()})
    waivers, records = choose((), date.today())
    assert ("known" in {waiver.id for waiver in waivers.all}) == (records[0]["fault"] == "")
    return [record["fault"] for record in records]


def test_waivers_of_a_package_are_used_and_nothing_of_it_is_imported(package: Package) -> None:
    assert waiver_plugins(package, {"__init__.py": "1 / 0", "waivers/a.toml": waiver()}) == [""]
    waivers, records = choose(("none",), date.today())
    assert (waivers.all, records) == ((), [])


@pytest.mark.parametrize(
    ("files", "point", "fault"),
    [
        ({"waivers/a.toml": "waiver"}, "theirs.waivers", "a.toml is not TOML"),
        ({"waivers/a.md": ""}, "theirs.waivers", "there is no *.toml in "),
        ({"waivers/a.toml": waiver()}, "nobodys.waivers", "there is no package 'nobodys'"),
        ({"waivers/a.toml": waiver()}, "json", "there is no *.toml in "),
        ({"waivers/a.toml": waiver()}, "math", "there is no package 'math'"),
        ({"waivers/a.toml": waiver(expires=date(2090, 1, 1))}, "theirs.waivers", "waiver known expires on 2090-01-01"),
        ({"waivers/a.toml": waiver("torch-3d-unit-strides")}, "theirs.waivers", "there is another waiver called"),
        ({"waivers/a.toml": waiver(), "waivers/b.toml": waiver()}, "theirs.waivers", "there is another waiver called"),
        ({"waivers/a.toml": waiver(scope='dtype = "*"')}, "theirs.waivers", "the scope of waiver known has to name"),
        ({"waivers/a.toml": waiver(scope='backend = "*"')}, "theirs.waivers", "the scope of waiver known has to name"),
    ],
)
def test_broken_waivers_are_one_line(package: Package, files: Mapping[str, str], point: str, fault: str) -> None:
    (told,) = waiver_plugins(package, files, point)
    assert fault in told


def test_no_package_takes_the_name_of_a_backend_of_the_suite(package: Package) -> None:
    pytest.importorskip("torch")
    package("[poolproof.backends]\ntorch-cpu = theirs:Mine\nmine = theirs:Mine\n", {"theirs.py": _BACKEND})
    assert "mine" in names()
    assert isinstance(create("mine"), Scatter)
    assert not isinstance(create("torch-cpu"), Scatter)


_BACKEND = "from scatter import Scatter\nclass Mine(Scatter): pass\n"

_POINTS = """
[poolproof.backends]
mine = theirs.backend:Mine
[poolproof.waivers]
mine = theirs.waivers
[poolproof.standards]
aborts = theirs.aborting:MINE
breaks = theirs.breaking:MINE
ends = theirs.ending:MINE
tells = theirs.telling:MINE
"""


def test_a_run_with_broken_plugins_tells_a_line_of_each_and_loses_nothing(tmp_path: Path) -> None:
    site = lay(
        tmp_path / "site",
        _POINTS,
        {
            "theirs/backend.py": _BACKEND,
            "theirs/waivers/a.toml": "waiver",
            "theirs/aborting.py": "import os; os.abort()",
            "theirs/breaking.py": STANDARD + "MINE = told('breaks', ValueError('odd'))",
            "theirs/ending.py": STANDARD + f"MINE = told('ends', {_EXIT})",
            "theirs/telling.py": STANDARD + "MINE = told('tells', False)",
        },
    )
    asked = ["--operator", "MaxPool2dWithIndicesBackward", "--dtype", "float32", "--aspect", "precision"]
    path = {"PYTHONPATH": f"{SUPPORT}:{site}"}
    ended = run_session(tmp_path / "run", "mine", "--cases", "6", asked=asked, variables=path)
    assert ended.status == Overall.CONFORMS, ended.output
    faults = read_digest(ended.folder).plugin_faults
    assert faults[0].startswith("waivers 'mine' of theirs 1.0 is left out: ")
    assert faults[1:] == [
        "standard 'aborts' of theirs 1.0 is left out: it ended its process, by signal SIGABRT, while it was loaded",
        "standard 'breaks' could not tell in 12 cases; in one, it raised ValueError: odd",
        "standard 'ends' could not tell in 12 cases; in one, it ended its process, by status 0, while it was applied",
    ]
    summary = (ended.folder / "summary.md").read_text()
    for fault in faults[1:]:
        assert fault in " ".join(ended.output.split())
        assert fault.replace("'", "&#39;") in ended.page
        assert fault in summary
    records = json.loads((ended.folder / "run.json").read_text())["plugins"]
    assert [record["name"] for record in records if not record["fault"]] == ["breaks", "ends", "tells", "mine"]
    verified(ended.folder, tmp_path)
    (site / "theirs/telling.py").unlink()
    again = run_session(tmp_path / "run", "mine", "--cases", "6", "--resume", asked=asked, variables=path)
    assert again.status == Overall.COULD_NOT_RUN
    assert (
        "begun with standard 'tells' of theirs 1.0, and now it would be with standard 'tells' of theirs 1.0, left out"
        in (" ".join(again.output.split()))
    )


FORMAT = """
from poolproof.suites.cases.lists.lines import Lines

class Mine(Lines):
    name = "mine"

    def recognises(self, text):
        return text.startswith("mine") or not text[100]

    def entries(self, text, label):
        return super().entries(text[4:], label)

MINE = Mine()
"""


@pytest.fixture
def formats(package: Package) -> Iterator[Callable[[str], None]]:
    """Lays a package with the format ``mine``."""

    def laid(module: str) -> None:
        package("[poolproof.case_lists]\nmine = theirs:MINE\n", {"theirs.py": module})
        formats_of_packages.cache_clear()

    yield laid
    formats_of_packages.cache_clear()


Formats = Callable[[str], None]


@pytest.mark.parametrize(
    ("module", "text"), [(FORMAT, f"mine{LINE}"), (FORMAT.replace('"mine") or not', '"{") or'), LINE)]
)
def test_a_case_list_is_read_by_the_format_of_a_package_unless_it_is_one_of_ours(
    formats: Formats, tmp_path: Path, module: str, text: str
) -> None:
    formats(module)
    (tmp_path / "list").write_text(text)
    (entry,) = read_lists([tmp_path / "list"])
    assert entry.case == Case.from_json(LINE)


@pytest.mark.parametrize(
    ("module", "text", "said"),
    [
        (FORMAT, "other", "formats atk, ttk, json, mine; case list format 'mine' could not tell: it raised IndexError"),
        (
            FORMAT.replace("return super()", "return 1 / 0 or super()"),
            f"mine{LINE}",
            "as mine: it raised ZeroDivisionError",
        ),
        ("1 / 0", "other", "json; case list format 'mine' of theirs 1.0 is left out: it raised ZeroDivisionError"),
        (FORMAT.replace('"mine"', '"atk"', 1), "other", "is left out: there is another case list format called 'atk'"),
    ],
)
def test_a_broken_format_is_one_line(formats: Formats, tmp_path: Path, module: str, text: str, said: str) -> None:
    formats(module)
    (tmp_path / "list").write_text(text)
    with pytest.raises(ListError, match="case list ") as error:
        read_lists([tmp_path / "list"])
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def exported(path: Path) -> Result:
    """How the command ends that writes the case of `LINE` in the format ``mine``."""
    return poolproof("export", "--format", "mine", "-o", path, "--case", LINE)


def test_cases_are_written_in_the_format_of_a_package(formats: Formats, tmp_path: Path) -> None:
    formats(FORMAT)
    ended = exported(tmp_path / "list")
    assert (ended.exit_code, ended.output) == (0, f"1 of 1 cases written to {tmp_path / 'list'}\n")
    assert Case.from_json((tmp_path / "list").read_text()) == Case.from_json(LINE)


def writing(statement: str) -> str:
    """The module of the format, which writes a case by this statement."""
    return FORMAT.replace("\nMINE", f"\n    def write(self, case, number):\n        {statement}\n\nMINE")


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (writing("1 / 0"), "format 'mine' cannot write these cases: it raised ZeroDivisionError"),
        (writing("return [][0]"), "format 'mine' cannot write these cases: it raised IndexError"),
        ("1 / 0", "choose from atk, ttk, json; case list format 'mine' of theirs 1.0 is left out: it raised Zero"),
        (FORMAT.replace('"mine"', '"yours"', 1), "unknown format 'mine': choose from atk, ttk, json, yours"),
    ],
)
def test_a_format_that_cannot_write_is_one_line(formats: Formats, tmp_path: Path, module: str, said: str) -> None:
    formats(module)
    ended = exported(tmp_path / "list")
    assert ended.exit_code == Overall.COULD_NOT_RUN
    assert said in " ".join(ended.output.split())
    assert not (tmp_path / "list").exists()


def test_every_kind_of_plugins_is_listed() -> None:
    groups = tomllib.loads((ROOT / "examples" / "plugin" / "pyproject.toml").read_text())["project"]["entry-points"]
    assert set(LISTED) == set(PluginKind) == set(groups)


def test_the_floor_is_that_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = dict(each.split(">=") for each in (*project["dependencies"], *extras["history"], *extras["attest"]))
    lines = (ROOT / "constraints-floor.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert set(tested) == {name.partition("[")[0] for name in wanted}
    for name, oldest in wanted.items():
        assert (tested[name.partition("[")[0]] + ".").startswith(oldest + "."), name
