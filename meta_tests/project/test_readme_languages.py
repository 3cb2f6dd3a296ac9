"""README.md and README.zh.md say the same: commands, code, links and figures of one are those of the other."""

import re
from collections import Counter
from collections.abc import Callable

import pytest

from places import ROOT

ENGLISH, CHINESE = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md"))


def blocks(text: str) -> list[str]:
    """Lines of code, in their order."""
    return [line for line in text.splitlines() if line.startswith("    ")]


def prose(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("    "))


def spans(text: str) -> Counter[str]:
    """Code within sentences, which a line may break."""
    return Counter(re.sub(r"\s+", " ", span) for span in re.findall(r"`([^`]+)`", prose(text)))


def links(text: str) -> Counter[str]:
    """But those from one language to another."""
    return Counter(re.findall(r"\]\((?!README)([^)]+)\)", text))


def figures(text: str) -> Counter[str]:
    """Numbers of the sentences, but those of code, links and axes ("2-D")."""
    plain = re.sub(r"`[^`]+`|\]\([^)]+\)|\d-D", "", prose(text))
    return Counter(re.findall(r"\d+(?:[.,^-]\d+)*", plain))


def sections(text: str) -> list[int]:
    """How many bullets and rows of tables each section has."""
    return [len(re.findall(r"^\s*(?:- |\|)", part, re.MULTILINE)) for part in prose(text).split("\n## ")]


@pytest.mark.parametrize(
    ("said", "was", "becomes"),
    [
        (blocks, "    poolproof run -n 2\n", "    poolproof run -n 3\n"),
        (spans, "`tox -e docs`", "`tox -e pages`"),
        (links, "](docs/explanation/score.md)", "](docs/scores.md)"),
        (figures, "1,020,766", "1,020,767"),
        (sections, "| 它不冤枉", "它不冤枉"),
    ],
)
def test_both_say_the_same_and_what_one_says_alone_is_seen(
    said: Callable[[str], object], was: str, becomes: str
) -> None:
    assert said(ENGLISH) == said(CHINESE)
    assert was in CHINESE
    assert said(ENGLISH) != said(CHINESE.replace(was, becomes, 1))


def test_each_leads_to_the_other() -> None:
    assert "[简体中文](README.zh.md)" in ENGLISH.splitlines()[2]
    assert "[English](README.md)" in CHINESE.splitlines()[2]
