"""Folders of the project that tests read from."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SUPPORT = Path(__file__).parent
GOLDEN = ROOT / "meta_tests" / "golden"
