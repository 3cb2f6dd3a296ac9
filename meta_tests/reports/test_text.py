"""Text from outside does nothing to whoever reads it."""

import re
from io import StringIO
from pathlib import Path
from zipfile import ZipFile

import pytest
from rich.table import Table
from rich.text import Text

from forging import rewrite
from poolproof.reports.bundle.packing import package
from poolproof.reports.ci.services import github_lines, gitlab_report, remarks_about
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.pages.publishing import publish
from poolproof.reports.rows.failures import progress_of
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.text import safe, visible, without_commands
from poolproof.reports.terminal.painting import SafeConsole
from reports_made_up import Recipe, make_run


def test_what_a_terminal_would_obey_is_spelled_out_and_what_people_write_stays() -> None:
    assert visible("a\x1b[2Jb\rc\x00\x9b") == "a\\x1b[2Jb\\rc\\x00\\x9b"
    assert visible("right\u202eto left") == "right\\u202eto left"
    assert visible("half \ud800") == "half \\ud800"
    for text in ("two\nlines", "a\ttab", "ünïcödé 中文 ≤ 😀", ""):
        assert visible(text) == text


HOSTILE = "</pre><img src=x>\x1b[2J\u202e\n```\n![a](http://x)|*b*\n::error::c"


def test_text_from_outside_is_text_in_every_file(tmp_path: Path) -> None:
    """What a library, a bundle or a waiver says, in rows, in run.json and in the name of a backend."""
    waiver = {"expires": "2027-06-01", "scope": {"backend": "torch-*"}}
    waiver |= dict.fromkeys(("id", "reason", "owner"), HOSTILE)
    cell = ("MaxPool2dWithIndicesBackward", "float32", "values")
    recipe = Recipe({"torch-cpu": "", HOSTILE: ""}, verdicts={cell: ["violates", "not run"]}, waivers=[waiver])
    run = make_run(tmp_path / "run", recipe)
    said_in = ("reason", "case")
    rewrite(run, lambda rows: [row | {name: f"={HOSTILE}{row[name]}" for name in said_in if row[name]} for row in rows])
    package(run, tmp_path / "it.zip")
    remarks = remarks_about(read_digest(run))
    annotations = gitlab_report(remarks) + "".join(github_lines(remarks))
    with ZipFile(tmp_path / "it.zip") as archive:
        names = [name for name in archive.namelist() if not name.startswith(("rows/", "run.json", "waivers.toml"))]
        said = {name: archive.read(name).decode() for name in names} | {"annotations": annotations}
    said |= {name: path.read_text(encoding="utf-8") for name, path in publish(read_digest(run), tmp_path).items()}
    failed = [row for row in read_rows(run).to_pylist() if row["verdict"] == "violates"]
    _, _, firsts = progress_of({}, failed)
    said["while the run lasts"] = "\n".join(firsts.values())
    assert said["while the run lasts"]
    pages = [name for name in said if name.endswith((".html", ".md", ".xml"))]
    assert {"index.html", "summary.md", "tables/failures.csv"} <= said.keys()
    for name, text in said.items():
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text), name
        assert name not in pages or "<img" not in re.sub(r"(?m)^ *poolproof replay .*$", "", text), name
    assert not re.search(r"(?m)^(```\n!|::)", said["summary.md"])
    assert "![a](" not in re.sub(r"(?m)^ *poolproof replay .*$", "", said["summary.md"])
    assert not re.search(r"(?m)(^|,)\"?[=+@-]", said["tables/failures.csv"])
    scripts = [text for name, text in said.items() if name.endswith(".sh")]
    assert scripts
    assert all(not re.search(r"(?m)^(?!#|poolproof|'|!|```|::error)", text.rstrip()) for text in scripts)


def test_a_sentence_quotes_no_file() -> None:
    said = safe(f"poolproof: no operator '{100_000 * 'x'}\x1b[2J\n::error::': name another")
    assert "xxx... (100,0" in said
    assert said.endswith("characters)\n\\x3a:error::': name another")
    assert len(said) < 300
    assert all(len(safe(50_000 * words)) < 4_010 for words in ("a ", "\x1b ", "\x1b\n", "::\n"))
    assert safe(3 * "a\n") == 3 * "a\n" and "\n" not in safe(50 * "a\n")


def test_a_console_shows_foreign_text_and_paints_its_own() -> None:
    target = StringIO()
    console = SafeConsole(file=target, force_terminal=True, width=80)
    console.print(Text("now \x1b]0;title\x07", style="bold"))
    assert "\\x1b]0;title" in target.getvalue()
    assert "\x1b]0;" not in target.getvalue()
    assert "\x1b[1m" in target.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("lost\n::error title=x::y", "lost\n\\x3a:error title=x::y"),
        ("  \t::set-output name=a::b", "  \t\\x3a:set-output name=a::b"),
        ("\x1b[31m::stop-commands::x", "\x1b[31m\\x3a:stop-commands::x"),
        ("said ##[error]x", "said \\x23#[error]x"),
        ("##vso[task.complete]x", "\\x23#vso[task.complete]x"),
        ("a::b, # [1] ## x: y", "a::b, # [1] ## x: y"),
    ],
)
def test_no_line_of_a_log_is_a_command(text: str, shown: str) -> None:
    assert without_commands(text) == shown


def test_what_a_console_prints_is_no_command_wherever_its_lines_are_broken() -> None:
    target = StringIO()
    console = SafeConsole(file=target, width=30)
    console.print(Text("words that take the whole line ::error::from a library"))
    table = Table(box=None)
    table.add_row("", Text("folded at some width::error::x ::warning::y", overflow="fold"))
    console.print(table)
    console.print(Text("a"), Text("::notice::z"))
    lines = [line.strip() for line in target.getvalue().splitlines()]
    assert not [line for line in lines if line.startswith("::")]
    assert "a ::notice::z" in lines
    assert "\\x3a:error::from a library" in target.getvalue()
