"""What docs/findings says about frameworks; programs of torch run in its own tests and in `inductor_findings.py`."""

import re
from importlib.util import find_spec

import pytest

from finding_programs import PAGES, Program, programs, run_afresh
from places import ROOT

PACKAGES = ("jax", "mindspore", "mlx", "numpy", "onnx", "onnxruntime", "openvino", "paddle", "tensorflow", "tinygrad")
"""Pages that have the name of what has to be installed."""

NAMES = sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "ascend_kernels")

ALL = [
    pytest.param(
        program,
        id=f"{package}-{program.path.stem}",
        marks=pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed"),
    )
    for package in PACKAGES
    for program in programs(package)
]


@pytest.mark.parametrize("name", NAMES)
def test_every_finding_has_a_program_that_says_what_it_gives(name: str) -> None:
    page, made = (PAGES / f"{name}.md").read_text(encoding="utf-8"), programs(name)
    assert len(made) == len(re.findall(r"^## \d\. ", page, re.MULTILINE))
    assert sorted(program.path for program in made) == sorted((PAGES / name).iterdir())
    assert all(program.said or program.dies for program in made)


def test_the_table_counts_the_findings_of_every_page() -> None:
    rows = re.findall(r"\| (\d+) \|.*\| \[(\w+)\]\(", (ROOT / "FINDINGS.md").read_text(encoding="utf-8"))
    kernels = re.findall(r"^# V\d+ ", (PAGES / "ascend_kernels" / "cases.jsonl").read_text(), re.MULTILINE)
    counted = {name: len(programs(name)) for name in NAMES} | {"ascend_kernels": len(kernels)}
    assert {name: int(count) for count, name in rows} == counted


@pytest.mark.parametrize("program", ALL)
def test_the_program_still_shows_it(program: Program) -> None:
    ended = run_afresh(program)
    assert program.still_shows(ended), (ended.returncode, ended.stdout, ended.stderr)
