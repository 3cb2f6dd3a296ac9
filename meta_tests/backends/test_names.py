"""Names of backends, with a device behind a colon and without."""

import pytest

from poolproof.backends.base import BackendUnavailable, UnknownBackend
from poolproof.backends.registry import canonical, check_name, create, names
from poolproof.suites import commands
from poolproof.suites.plan.plans import Survey
from sessions import poolproof


def test_a_device_is_an_argument() -> None:
    for typed, known_as in (
        ("torch:cpu", "torch-cpu"),
        ("torch:npu", "torch-npu"),
        ("torch-compile:cpu", "torch-compile"),
        ("torch-compile:cuda", "torch-compile:cuda"),
        ("torch-cpu", "torch-cpu"),
        ("my.module:Mine", "my.module:Mine"),
    ):
        check_name(typed)
        assert canonical(typed) == known_as
    assert create("torch:cpu").interface == create("torch-cpu").interface == "torch-cpu"
    assert {"torch-cpu", "torch-cuda", "torch-npu", "torch-autograd", "torch-compile"} <= set(names())


def test_a_device_that_torch_is_not_asked_on_is_told() -> None:
    for device in ("tpu", "", "cuda:1"):
        with pytest.raises(UnknownBackend, match="torch runs on cpu, cuda, npu, such as torch:cuda"):
            check_name(f"torch:{device}")
    ended = poolproof("list", "--backend", "torch:tpu")
    assert (ended.exit_code, "backend 'torch:tpu': torch runs on" in ended.output) == (3, True)


def test_the_list_of_backends_says_in_short_what_each_is_and_whole_what_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    long = {"library liba.so": f"sha256:{'ab' * 32}, /liba.so", "wheel a": "1.0, RECORD", "abilities of X": "none"}

    here = Survey({"torch": "[2.13.0]"} | long, [], None)
    found = {"jax": BackendUnavailable("pip install 'poolproof[jax]'"), "torch-cpu": here}
    monkeypatch.setattr(commands, "surveys", lambda _: found.items())
    _, _, first, second, *_ = poolproof("backends").output.splitlines()[1:]
    assert first.split() == ["jax", "no", "pip", "install", "'poolproof[jax]'"]
    name, used, *said, library = second.split()
    assert (name, used, said, len(library)) == ("torch-cpu", "yes", ["torch", "[2.13.0],", "library"], 12)
