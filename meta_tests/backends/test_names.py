"""Names of backends, with a device behind a colon and without."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from poolproof.backends.base import BackendUnavailable
from poolproof.backends.registry import UnknownBackend, canonical, check_name, create, names
from poolproof.suites import commands
from poolproof.suites.cli import main


@pytest.mark.parametrize(
    ("typed", "known_as"),
    [
        ("torch:cpu", "torch-cpu"),
        ("torch:npu", "torch-npu"),
        ("torch-compile:cpu", "torch-compile"),
        ("torch-compile:cuda", "torch-compile:cuda"),
        ("torch-cpu", "torch-cpu"),
        ("my.module:Mine", "my.module:Mine"),
    ],
)
def test_a_device_is_an_argument(typed: str, known_as: str) -> None:
    check_name(typed)
    assert canonical(typed) == known_as


def test_both_names_make_the_same_backend() -> None:
    for name in ("torch:cpu", "torch-cpu"):
        assert create(name).interface == "torch-cpu"


def test_every_short_name_is_listed() -> None:
    assert {"torch-cpu", "torch-cuda", "torch-npu", "torch-autograd", "torch-compile"} <= set(names())


@pytest.mark.parametrize("device", ["tpu", "", "cuda:1"])
def test_a_device_that_torch_is_not_asked_on_is_told(device: str) -> None:
    with pytest.raises(UnknownBackend, match="torch runs on cpu, cuda, npu, such as torch:cuda"):
        check_name(f"torch:{device}")


def test_commands_say_so() -> None:
    ended = CliRunner().invoke(main, ["list", "--backend", "torch:tpu"])
    assert (ended.exit_code, "backend 'torch:tpu': torch runs on" in ended.output) == (3, True)


def test_the_list_of_backends_says_in_short_what_each_is_and_whole_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = {"library liba.so": f"sha256:{'ab' * 32}, /liba.so", "wheel a": "1.0, RECORD", "abilities of X": "none"}

    def survey(name: str) -> SimpleNamespace:
        if name == "jax":
            raise BackendUnavailable("pip install 'poolproof[jax]'")
        return SimpleNamespace(environment={"torch": "[2.13.0]"} | long)

    monkeypatch.setattr(commands, "survey", survey)
    monkeypatch.setattr(commands, "names", lambda: ["jax", "torch-cpu"])
    _, _, first, second, *_ = CliRunner().invoke(main, ["backends"]).output.splitlines()[1:]
    assert first.split() == ["jax", "no", "pip", "install", "'poolproof[jax]'"]
    name, here, *said, library = second.split()
    assert (name, here, said, len(library)) == ("torch-cpu", "yes", ["torch", "[2.13.0],", "library"], 12)
