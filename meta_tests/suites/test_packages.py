"""Backends and formats of case lists that installed packages bring by entry points."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from poolproof.backends.base import UnknownBackend
from poolproof.backends.registry import create, names
from poolproof.reports.rows.verdicts import Overall
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.lists import ListError, all_formats, format_named, read_lists
from scatter import Scatter
from sessions import poolproof

LINE = '{"operator":"MaxPool2dWithIndicesBackward","shape":[1,1,4,4],"kernel_size":[3],"stride":[1]}'
BACKEND = "from scatter import Scatter\nclass Mine(Scatter): pass\n"
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

Package = Callable[[str, str], None]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """Lays the package ``theirs`` of one module where this process imports from, with its entry points."""

    def lay(points: str, module: str) -> None:
        about = tmp_path / "site" / "theirs-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(points)
        (tmp_path / "site" / "theirs.py").write_text(module)
        monkeypatch.syspath_prepend(str(tmp_path / "site"))
        all_formats.cache_clear()

    yield lay
    all_formats.cache_clear()
    sys.modules.pop("theirs", None)


def lay_format(package: Package, module: str) -> None:
    package("[poolproof.case_lists]\nmine = theirs:MINE\n", module)


def test_no_package_takes_the_name_of_a_backend_of_the_suite(package: Package) -> None:
    pytest.importorskip("torch")
    package("[poolproof.backends]\ntorch-cpu = theirs:Mine\nmine = theirs:Mine\n", BACKEND)
    assert "mine" in names()
    assert isinstance(create("mine"), Scatter)
    assert not isinstance(create("torch-cpu"), Scatter)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("import surely_not_there", "ModuleNotFoundError: No module named 'surely_not_there'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise RuntimeError('all\\n' * 9)", "RuntimeError: " + "all " * 8 + "all"),
        ("", "AttributeError: module 'theirs' has no attribute 'MINE'"),
    ],
)
def test_a_package_that_cannot_be_loaded_is_named(package: Package, module: str, said: str) -> None:
    package("[poolproof.case_lists]\nmine = theirs:MINE\n[poolproof.backends]\nmine = theirs:MINE\n", module)
    with pytest.raises(ListError) as error:
        format_named("mine")
    assert str(error.value) == f"case list format 'mine' of package theirs cannot be loaded: {said}"
    with pytest.raises(UnknownBackend) as unknown:
        create("mine")
    assert str(unknown.value) == f"backend 'mine' of package theirs cannot be loaded: {said}"
    assert format_named("json") and "mine" in names()


@pytest.mark.parametrize(
    ("module", "text"), [(FORMAT, f"mine{LINE}"), (FORMAT.replace('"mine") or not', '"{") or'), LINE)]
)
def test_a_case_list_is_read_by_the_format_of_a_package_unless_it_is_one_of_ours(
    package: Package, tmp_path: Path, module: str, text: str
) -> None:
    lay_format(package, module)
    (tmp_path / "list").write_text(text)
    (entry,) = read_lists([tmp_path / "list"])
    assert entry.case == Case.from_json(LINE)


@pytest.mark.parametrize(
    ("module", "text", "said"),
    [
        (FORMAT.replace(" or not text[100]", ""), "other", "is none of the formats that poolproof reads: atk.* mine,"),
        (FORMAT, "other", "case list format 'mine' cannot recognise .*list: IndexError"),
        (
            FORMAT.replace("super()", "1 / 0 or super()"),
            f"mine{LINE}",
            "format 'mine' cannot read .*: ZeroDivisionError",
        ),
        (FORMAT.replace('"mine"', '"atk"', 1), "other", "of package theirs is called 'atk', and so is another format"),
        ("MINE = 5", "other", "of package theirs is 5, no ListFormat"),
    ],
)
def test_a_broken_format_is_one_sentence(package: Package, tmp_path: Path, module: str, text: str, said: str) -> None:
    lay_format(package, module)
    (tmp_path / "list").write_text(text)
    ended = poolproof("export", "--format", "json", "-o", tmp_path / "out", "--case-list", tmp_path / "list")
    assert ended.exit_code == Overall.COULD_NOT_RUN
    assert re.search(said, " ".join(ended.output.split()))


def test_cases_are_written_in_the_format_of_a_package(package: Package, tmp_path: Path) -> None:
    lay_format(package, FORMAT)
    ended = poolproof("export", "--format", "mine", "-o", tmp_path / "list", "--case", LINE)
    assert (ended.exit_code, ended.output) == (0, f"1 of 1 cases written to {tmp_path / 'list'}\n")
    assert Case.from_json((tmp_path / "list").read_text()) == Case.from_json(LINE)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (
            FORMAT.replace("\nMINE", "\n    def write(self, case, number):\n        1 / 0\n\nMINE"),
            "format 'mine' cannot write these cases: ZeroDivisionError",
        ),
        (FORMAT.replace('"mine"', '"yours"', 1), "unknown format 'mine': choose from atk, json, yours"),
    ],
)
def test_a_format_that_cannot_write_is_one_sentence(package: Package, tmp_path: Path, module: str, said: str) -> None:
    lay_format(package, module)
    ended = poolproof("export", "--format", "mine", "-o", tmp_path / "list", "--case", LINE)
    assert ended.exit_code == Overall.COULD_NOT_RUN
    assert said in " ".join(ended.output.split())
    assert not (tmp_path / "list").exists()
