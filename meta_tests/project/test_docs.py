"""What the pages show works: backends, tests, commands, a waiver, a list, names."""

import re
import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from places import ROOT
from poolproof.backends.base import Backend
from poolproof.references.forward import forward_maximum
from poolproof.references.windows import Windowed
from poolproof.reports.waivers import loads
from poolproof.suites.api import judge
from poolproof.suites.cli import COMMANDS
from poolproof.suites.options import OPTIONS
from sessions import poolproof

HOW_TO = ROOT / "docs" / "how-to"
BACKENDS = (HOW_TO / "write-a-backend.md").read_text(encoding="utf-8")
CASE = """{"operator":"MaxPool2dWithIndices","shape":[2,3,5,5],"index_dtype":"int32","kernel_size":[3],"stride":[2],
"padding":[1]}"""


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Backend:
    """The example as it stands, on what stands in for tinygrad."""
    program = re.findall(r"```python\n(import tinygrad\n.*?)```", BACKENDS, re.DOTALL)[0]
    assert len([line for line in program.splitlines() if line]) <= 20
    stand_in: Any = ModuleType("tinygrad")
    stand_in.Tensor = Tensor
    monkeypatch.setitem(sys.modules, "tinygrad", stand_in)
    namespace: dict[str, Any] = {}
    exec(program, namespace)
    return namespace["Tiny"]()


class Tensor:
    """As much of a tinygrad tensor as the example asks for."""

    shift = 0

    def __init__(self, array: NDArray) -> None:
        self.array = array

    def max_pool2d(self, kernel: Any, stride: Any, dilation: Any, padding: Any, ceil_mode: bool, indices: bool) -> Any:
        windows = Windowed(kernel, stride, padding, dilation, ceil_mode)
        batch, channels, *sizes = self.array.shape
        maxima, picked = forward_maximum(self.array.reshape(-1, *sizes), windows.axes(tuple(sizes)))
        shape = (batch, channels, *maxima.shape[1:])
        return Tensor(maxima.reshape(shape)), Tensor((picked + self.shift).astype(np.int32).reshape(shape))

    def numpy(self) -> NDArray:
        return self.array


def test_the_example_of_a_framework_is_a_backend(tiny: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge(CASE, tiny)["verdict"] == "conforms"
    monkeypatch.setattr(Tensor, "shift", 1)
    assert judge(CASE, tiny)["verdict"] == "violates"


@pytest.mark.parametrize("layouts", ["", ',"layouts":{"grad_input":"sliced","indices":"padded_rows+3"}'])
def test_the_first_example_judges_as_it_stands(layouts: str) -> None:
    program = re.findall(r"```python\n(.*?)```", BACKENDS, re.DOTALL)[0]
    case = CASE.replace("Indices", "IndicesBackward")[:-1] + layouts + "}"
    for text, verdict in ((program, "conforms"), (program.replace("np.add.at", "np.subtract.at"), "violates")):
        namespace: dict[str, Any] = {"__name__": "my_module"}
        exec(text, namespace)
        assert judge(case, namespace["Mine"]())["verdict"] == verdict


def test_the_example_of_a_documented_refusal_is_refused_as_documented() -> None:
    first, _, own = re.findall(r"```python\n(.*?)```", BACKENDS, re.DOTALL)
    namespace: dict[str, Any] = {"__name__": "my_module"}
    exec(first + own, namespace)
    case = CASE.replace("Indices", "IndicesBackward")
    found = [judge(text, namespace["WithoutMode"]()) for text in (case, case[:-1] + ',"deterministic":true}')]
    assert [row["verdict"] for row in found] == ["conforms", "refused as documented"]
    assert found[1]["reason"] == "as its adapter declares: my_kernel.md, Limits: no deterministic mode"


def test_the_mistake_of_the_tutorial_is_found_and_its_line_repairs_it() -> None:
    page = (ROOT / "docs" / "tutorial" / "first-backend.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (repaired,) = re.findall(r"^    (np\.add\.at.*)$", page, re.MULTILINE)
    mistake = "out[plane][rows, columns] += grad_output[plane]"
    assert mistake in program
    for text, verdict in ((program, "violates"), (program.replace(mistake, repaired), "conforms")):
        namespace: dict[str, Any] = {"__name__": "my_module"}
        exec(text, namespace)
        assert judge(CASE.replace("Indices", "IndicesBackward"), namespace["Mine"]())["verdict"] == verdict


def test_the_tests_of_the_page_about_hypothesis_pass() -> None:
    namespace: dict[str, Any] = {"__name__": "test_my_kernel"}
    page = (HOW_TO / "hypothesis.md").read_text(encoding="utf-8")
    for program in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(program, namespace)
    for name in ("test_my_kernel", "test_rounding"):
        namespace[name]()


def test_the_way_of_a_case_has_the_names_that_it_has() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## One case")[2].partition("\n## ")[0]
    steps = re.findall(r"\| `([\w.]+)` \| `([\w.]+)` \|", page)
    assert len(steps) == len(page.splitlines()) - 6
    for module, name in steps:
        attrgetter(name)(import_module(f"poolproof.{module}"))


def test_the_list_that_the_page_exports_has_rows(tmp_path: Path) -> None:
    ((command, rest),) = re.findall(
        r"^    poolproof (export) (.*)$", (HOW_TO / "case-lists.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    asked = [word.replace("cases.json", str(tmp_path / "cases.json")) for word in rest.split()]
    written = poolproof(command, *asked, "--aspect", "values")
    assert written.exit_code == 0, written.output


# Commands of the pages

SHOWN = [
    ROOT / "README.md",
    *(path for kind in ("tutorial", "how-to", "explanation") for path in sorted((ROOT / "docs" / kind).glob("*.md"))),
    *sorted((ROOT / "docs" / "ci").glob("*.yml")),
]
OF_PYTEST = {"-n", "-k", "--junitxml", "--dist", "--tx"}


def shown_commands(text: str) -> list[tuple[str, str]]:
    """(command, what follows it) of each that a page shows."""
    names = "|".join(["(?:history|emulator) \\w+", *(name for name in COMMANDS if name not in ("history", "emulator"))])
    return re.findall(rf"poolproof ({names})(?![\w-])([^`\n|]*)", text)


def test_the_waiver_of_the_page_is_one() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", (HOW_TO / "waivers.md").read_text(encoding="utf-8"), re.DOTALL)
    assert loads(text, "the page")[0].id == "strided-outputs"


def test_every_command_is_shown() -> None:
    shown = {name.partition(" ")[0] for path in SHOWN for name, _ in shown_commands(path.read_text(encoding="utf-8"))}
    assert set(COMMANDS) - shown == set()


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.name)
def test_commands_and_their_options_exist(path: Path) -> None:
    of_a_run = OF_PYTEST.union(*OPTIONS.values())
    for name, rest in shown_commands(path.read_text(encoding="utf-8")):
        group, _, inner = name.partition(" ")
        command: Any = COMMANDS[group].load()
        command = command.commands[inner] if inner else command
        spelled = {"--help", *(option for parameter in command.params for option in parameter.opts)}
        used = set(re.findall(r"(?<=\s)--?[a-z][\w-]*", rest.split(" tail ")[0]))
        assert used <= (of_a_run if name == "run" else spelled), (path.name, name, rest)
