"""Check the English: python release/prose.py, or with the file of a commit message for that message only.

A page may have a mean sentence of 18 words. Pages and messages have none of the words that read like a riddle. A
commit has a subject of 72 characters. Readability tools such as textstat know no Markdown, and proselint other rules.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST_MEAN, LONGEST_SUBJECT = 18.0, 72

WORDS = ("asked", "said", "told", "owed", "alone", "besides", "goes on", "lies", "so many", "of others", "whose")
RIDDLES = re.compile(rf"\b({'|'.join((*WORDS, 'that which', 'none such'))})\b", re.IGNORECASE)

RIDDLES_IN_MESSAGES = 15
"""Those left are data: `asked` as a column of a history, and as a manner of actions. Never raise it."""

_CODE = re.compile(r"^[ \t]*(```|~~~).*?^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4,}(?![-*] |\d+\. ).*\n)+")
_LEFT_OUT = re.compile(r"^\s*(?:#|\||<|!\[|\[!).*$", re.MULTILINE)
_MARK = re.compile(r"^\s*(?:[-*>]|\d+\.)\s+|^: ", re.MULTILINE)


def plain(page: str) -> str:
    """Return the paragraphs and list items of Markdown, with each piece of code as one word."""
    for pattern in (_CODE, _INDENTED, _LEFT_OUT):
        page = pattern.sub("\n", page)
    page = re.sub(r"`[^`]+`", "code", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", page))
    return _MARK.sub("\n\n", page)


def sentences(page: str) -> list[str]:
    """Return what ends like a sentence; an item of a list need not."""
    parts = (re.split(r"(?<=[.!?])[*\")]*\s+", part.strip()) for part in plain(page).split("\n\n"))
    return [sentence for part in parts for sentence in part if re.search(r"\w.*[.!?:][*\")]*$", sentence, re.DOTALL)]


def mean_sentence(page: str) -> float:
    """Return the mean number of words of a sentence."""
    found = sentences(page)
    return sum(len(sentence.split()) for sentence in found) / max(len(found), 1)


def riddles(text: str) -> list[str]:
    return [found[0].lower() for found in RIDDLES.finditer(text)]


def messages(source: str) -> Iterator[str]:
    """Find the texts of several words in a module that are no docstrings."""
    tree = ast.parse(source)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docs
            and " " in node.value
        ):
            yield node.value


def wrong_subject(subject: str) -> str:
    if len(subject) > LONGEST_SUBJECT:
        return f"{len(subject)} characters, at most {LONGEST_SUBJECT}: {subject}"
    if not re.match(r"(Merge|Revert|fixup!|squash!) |[a-z][\w./, -]*: \S.*[^.]$", subject):
        return f"not `area: imperative subject` without a full stop: {subject}"
    return ""


def subjects() -> list[str]:
    """List those of the commits after the one that added this file, as far as this clone has them."""
    git = ("git", "-C", str(ROOT), "log")
    added = subprocess.run([*git, "--diff-filter=A", "--format=%H", "--", __file__], capture_output=True, text=True)
    if added.returncode or not added.stdout:
        return []
    since = added.stdout.split()[-1]
    return subprocess.check_output([*git, "--format=%s", f"{since}..HEAD"], text=True).splitlines()


def pages() -> list[Path]:
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    return [path for path in sorted(texts) if not path.name.endswith(".zh.md")]


def faults() -> Iterator[str]:
    for path in pages():
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        if (mean := mean_sentence(text)) > LONGEST_MEAN:
            yield f"{name}: its mean sentence has {mean:.1f} words, at most {LONGEST_MEAN:g}"
        if found := riddles(plain(text)):
            yield f"{name}: write {', '.join(sorted(set(found)))} in other words"
    modules = (path for room in ("references", "backends", "suites", "reports") for path in (ROOT / room).rglob("*.py"))
    texts = [text for path in modules for text in messages(path.read_text(encoding="utf-8"))]
    if (count := sum(len(riddles(re.sub(r"`[^`]+`", "code", text))) for text in texts)) > RIDDLES_IN_MESSAGES:
        yield f"messages have {count} of the words {', '.join(WORDS)}, at most {RIDDLES_IN_MESSAGES}"
    yield from (f"commit: {fault}" for fault in map(wrong_subject, subjects()) if fault)


def main(arguments: list[str]) -> int:
    if arguments:
        found = list(filter(None, [wrong_subject(Path(arguments[0]).read_text(encoding="utf-8").partition("\n")[0])]))
    else:
        found = list(faults())
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
