"""Bad inputs: none gives a traceback, hangs, has a wrong exit status, accuses or loses anything.

Half of those that there are; the variable POOLPROOF_BAD_INPUTS says how many else.
"""

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bad_inputs import Ending, Given, folders, libraries, lines, options, plugins, surroundings, waivers
from bad_inputs.trying import LEFT, attempt, contents, make, objections, targets
from places import SUPPORT
from poolproof.references.contract.call import ContractError
from poolproof.reports.rows.store import RowWriter
from poolproof.reports.waivers import WaiverError, load
from poolproof.suites.cases.case import CaseError
from poolproof.suites.plan.lines import parse_line
from shared_runs import made_once


def chosen(number: int, seed: int = 0) -> list[Given]:
    """Inputs for a number and a seed, no two of one name: the first about each option, then of every kind in turn."""
    lots, modules = random.Random(seed), (options, lines, waivers, plugins, libraries, folders, surroundings)
    kinds = [list(module.listed()) for module in modules]
    for kind in kinds:
        lots.shuffle(kind)
    inputs = [given for given in chain.from_iterable(zip_longest(*kinds)) if given]
    first = {given.about: given for given in reversed(inputs) if given.about}
    names = {given.name: given for given in [*first.values(), *inputs]}
    return list(names.values())[:number]


INPUTS = chosen(int(os.environ.get("POOLPROOF_BAD_INPUTS", "250")))


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "bad-inputs", make)


@pytest.mark.parametrize("bad", INPUTS, ids=[ascii(given.name) for given in INPUTS])
def test_a_bad_input_ends_as_it_should(bad: Given, made: Path, tmp_path: Path) -> None:
    assert attempt(bad, made, tmp_path) == ""


# whoever hangs while it is loaded is given minutes by a process of its own, and only children are kept from devices
PATIENT = [given for given in INPUTS if not re.search("hang|device", f"{given.name} {given.arguments}")]


@pytest.mark.parametrize("bad", PATIENT[::60], ids=lambda given: ascii(given.name))
def test_a_bad_input_ends_so_in_a_process_of_its_own(bad: Given, made: Path, tmp_path: Path) -> None:
    assert attempt(bad, made, tmp_path, real=True) == ""


def test_every_option_has_a_bad_input() -> None:
    assert options.every_option() <= {given.about for given in INPUTS}


def test_the_same_seed_gives_the_same_inputs() -> None:
    assert len({given.name for given in INPUTS}) == len(INPUTS)
    names = [given.name for given in chosen(100)]
    assert names == [given.name for given in chosen(100)]
    assert set(names) != {given.name for given in chosen(100, seed=1)}


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-2, 9) | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
)
GARBAGE = st.sampled_from(["", "\0\1", "}{", '"""', "\\x", "]["])


@st.composite
def broken_lines(draw: st.DrawFn) -> str:
    """Good lines with a field that is anything, left out or unknown, or with garbage in place of some of the text."""
    good = draw(st.sampled_from(lines.GOOD))
    name = draw(st.sampled_from([*good, "Shape", "kernel", ""]))
    fields = {key: value for key, value in good.items() if key != name}
    if draw(st.booleans()):
        fields[name] = draw(ANY_JSON | st.lists(st.integers(-2, 9) | st.integers(), max_size=6))
    line = json.dumps(fields)
    begin, end = sorted(draw(st.tuples(*[st.integers(0, len(line))] * 2)))
    return line if draw(st.booleans()) else line[:begin] + draw(GARBAGE) + line[end:]


def refusal(ask: Callable[[], object]) -> str | None:
    try:
        ask()
    except (CaseError, ContractError, WaiverError) as error:
        return str(error)
    return None


@settings(max_examples=300, deadline=None)
@given(broken_lines())
def test_any_line_is_asked_or_refused_in_one_sentence(line: str) -> None:
    said = refusal(lambda: parse_line(line))
    assert said is None or (said and "\n" not in said)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_file_of_waivers_is_read_or_refused_with_its_name(data: Any, tmp_path_factory: Any) -> None:
    good = waivers.table(waivers.GOOD).encode()
    begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(good))] * 2)))
    path = tmp_path_factory.getbasetemp() / "mine.toml"
    path.write_bytes(good[:begin] + data.draw(st.binary(max_size=4)) + good[end:])
    said = refusal(lambda: load(path))
    assert said is None or "mine.toml" in said


GIVEN = Given("a number that is none", "pytest", ("--cases=x",), names=("--cases",))
SENTENCE = "Exit: --cases x: no number\n"


@pytest.mark.parametrize(
    ("status", "output", "objection"),
    [
        (3, SENTENCE, ""),
        (1, SENTENCE, "exit status 1, expected 3"),
        (0, SENTENCE, "exit status 0, expected 3"),
        (-11, SENTENCE, "exit status -11, expected 3"),
        (3, SENTENCE + "Traceback (most recent call last):", "a traceback"),
        (3, SENTENCE + "INTERNALERROR> KeyError", "a traceback"),
        (3, "Exit: something is wrong\n", "names none of '--cases'"),
        (3, "", "says nothing"),
        (3, SENTENCE * 20, "20 lines"),
        (3, "x" * 9_999 + SENTENCE, "1 lines, 10026 characters"),
    ],
)
def test_what_is_wrong_with_an_ending_is_noticed(status: int, output: str, objection: str, tmp_path: Path) -> None:
    found = list(objections(GIVEN, status, output, {}, tmp_path))
    assert bool(found) == bool(objection)
    assert not objection or any(objection in each for each in found)


def test_what_is_lost_is_noticed(tmp_path: Path) -> None:
    for name in ("kept", "changed", "gone"):
        (tmp_path / name).write_text(name)
    (tmp_path / "pipe").symlink_to("kept")
    before = contents(tmp_path)
    assert not list(objections(GIVEN, 3, SENTENCE, before, tmp_path))
    (tmp_path / "changed").write_text("other")
    (tmp_path / "gone").unlink()
    (tmp_path / "pipe").unlink()
    (tmp_path / "pipe").write_text("kept")
    (tmp_path / "new").write_text("new")
    found = list(objections(GIVEN, 3, SENTENCE, before, tmp_path))
    assert found == ["changed changed", "changed gone", "changed pipe"]


@pytest.mark.parametrize(("verdict", "accuses"), [("crashed", True), ("violates", True), ("adapter error", False)])
def test_who_is_accused_is_noticed(verdict: str, accuses: bool, tmp_path: Path) -> None:
    rows = RowWriter(tmp_path / "run", "main")
    rows.append({"backend": "b", "operator": "o", "aspect": "values", "verdict": verdict})
    rows.close()
    harmless = Given("harmless", "pytest", (), ending=Ending.INCOMPLETE)
    assert list(objections(harmless, 2, "said", {}, tmp_path)) == (["accuses in run/rows"] if accuses else [])
    assert not list(objections(harmless, 2, "said", contents(tmp_path), tmp_path))


@pytest.mark.parametrize(
    ("event", "arguments", "changed"),
    [
        ("open", ("a-device", "w", os.O_WRONLY), []),
        ("open", ("kept", "r", os.O_RDONLY), []),
        ("open", ("a-link", "w", os.O_WRONLY | os.O_CREAT), ["/dev/zero"]),
        ("os.rename", ("kept", "a-link", -1, -1), ["{here}/kept", "{here}/a-link"]),
        ("os.rename", ("kept", "/dev/null", -1, -1), ["{here}/kept", "/dev/null"]),
        ("os.remove", ("/dev/null", -1), ["/dev/null"]),
        ("os.truncate", ("a-link", 0), ["/dev/zero"]),
        ("os.listdir", ("/dev",), []),
    ],
)
def test_what_a_command_is_about_to_change_is_known(
    event: str, arguments: tuple[object, ...], changed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, target in (("a-device", os.devnull), ("a-link", "/dev/zero")):
        Path(name).symlink_to(target)
    assert targets(event, arguments) == [each.format(here=tmp_path) for each in changed]


@pytest.mark.parametrize(("target", "status"), [("inside/new", 0), ("outside", LEFT)])
def test_a_command_ends_before_it_changes_what_is_outside(target: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "old").write_text("old")
    (tmp_path / "outside").write_text("years of work")
    program = (
        f"from bad_inputs.trying import keep_inside; from pathlib import Path; keep_inside(Path({str(tmp_path)!r}, "
        f"'inside')); Path({str(tmp_path)!r}, 'inside/old').rename(Path({str(tmp_path)!r}, {target!r}))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=SUPPORT, capture_output=True).returncode == status
    assert (tmp_path / "outside").read_text() == "years of work"
