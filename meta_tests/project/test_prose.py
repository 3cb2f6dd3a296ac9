"""The check of our English sees what it should, and nothing in code, tables or names."""

import subprocess
from pathlib import Path

import pytest

import prose

PAGE = """# A heading of which no word counts, so that it may be as long as anybody likes

One two three. Four `five six` [seven eight](nine.md) ten? A list:

- eleven twelve (thirteen.)
- no sentence

| asked | told |
|---|---|

```python
whose = alone
```

    besides
"""


def test_sentences_are_those_of_paragraphs_and_lists() -> None:
    assert [len(each.split()) for each in prose.sentences(PAGE)] == [3, 5, 2, 3]
    assert prose.mean_sentence(PAGE) == pytest.approx(13 / 4)
    assert prose.riddles(prose.plain(PAGE)) == []


def test_pages_that_break_the_rules_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ("docs", "examples", "references", "backends", "suites", "reports"):
        (tmp_path / room).mkdir()
    (tmp_path / "docs" / "long.md").write_text("word " * 19 + "end.\n")
    (tmp_path / "README.zh.md").write_text("word " * 99 + "whose.\n")
    (tmp_path / "README.md").write_text("It is whose.\n\nWhat is `owed` counts not.\n")
    said = '"""Whose."""\ntext, more, name = "it is asked", "unless `asked`", "asked"\n'
    (tmp_path / "suites" / "a.py").write_text(said)
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(prose, "RIDDLES_IN_MESSAGES", 0)
    first, second, third = prose.faults()
    assert first == "README.md: write whose in other words"
    assert second == "docs/long.md: its mean sentence has 20.0 words, at most 18"
    assert third.startswith("messages have 1 of")


def test_subjects_of_commits(tmp_path: Path) -> None:
    right = ("state: vary one axis", "call, rerun: name it", "Merge branch 'main'", f"state: {'x' * 65}")
    wrong = ("state: vary one axis.", "Vary one axis", "State: vary one axis", f"state: {'x' * 66}")
    for subject in (*right, *wrong):
        (tmp_path / "message").write_text(f"{subject}\n\nA body.\n")
        assert prose.main([str(tmp_path / "message")]) == (subject in wrong), subject


def test_subjects_count_from_the_commit_that_brought_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def subjects(clone: Path) -> list[str]:
        monkeypatch.setattr(prose, "ROOT", clone)
        monkeypatch.setattr(prose, "__file__", str(clone / "prose.py"))
        return prose.subjects()

    assert subjects(tmp_path) == []
    git = ("git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run([*git, "init", "-q"], check=True)
    for name in ("before", "prose.py", "after"):
        (tmp_path / name).touch()
        subprocess.run([*git, "add", name], check=True)
        subprocess.run([*git, "commit", "-q", "-m", name], check=True)
    assert subjects(tmp_path) == ["after"]
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{tmp_path}", str(tmp_path / "shallow")], check=True)
    assert subjects(tmp_path / "shallow") == []
